//! `ostler repair`: shows what is wrong with a transcript, and repairs it.

use super::ls::tilde;
use crate::args::Repair as Args;
use crate::context::Context;
use crate::exit::{Code, Result};
use crate::say::say;
use ostler_core::limits::counted;
use ostler_engine::repair::{End, Remedy, Repair, Step};
use std::path::Path;

pub fn run(context: &Context, args: &Args) -> Result<Code> {
    let how = Repair { split: args.split, dry_run: args.dry_run };
    let mut said = Ok(());
    let repaired = context.engine.repair(&args.id, how, &mut |step| {
        if said.is_ok() {
            said = tell(&step);
        }
    });
    said?;
    let repaired = repaired?;
    let messages = counted(repaired.messages as u64, "message", "messages");
    let whole = format!("{messages} in {}", shown(&repaired.file));
    let (words, code) = match repaired.end {
        End::NothingToRepair => (format!("nothing to repair: {whole}"), Code::Succeeded),
        End::PutBack => (whole, Code::Succeeded),
        End::NotYet => (format!("not repaired yet: {whole}; repair it: run this without --dry-run"), Code::Failed),
        End::CannotBeRepaired => (format!("cannot be repaired, no copy has it: {whole}"), Code::Failed),
        End::Changed { left } => return Ok(if left { Code::Failed } else { Code::Succeeded }),
    };
    say!("{words}")?;
    Ok(code)
}

fn tell(step: &Step) -> Result<()> {
    match step {
        Step::FromCopy { words, backup: None } => say!("to repair: {words}"),
        Step::FromCopy { words, backup: Some(backup) } => say!("repaired: {words}\nbackup: {}", shown(backup)),
        Step::Lacks { words } => say!("note: {words}"),
        Step::Found { words, remedy: Remedy::Repair, repaired: true } => say!("repaired: {words}"),
        Step::Found { words, remedy: Remedy::Repair, repaired: false } => say!("to repair: {words}"),
        Step::Found { words, remedy: Remedy::Note, .. } => say!("note: {words}"),
        Step::Found { words, remedy: Remedy::None, .. } => say!("cannot be repaired: {words}"),
        Step::Backup(backup) => say!("backup: {}", shown(backup)),
        Step::SplitOff { file, native_id, agent, session } => {
            let continue_with = match session {
                Some(id) => format!("ostler resume {id}"),
                None => format!("{agent} --resume {native_id}"),
            };
            say!("the other conversation: {}; continue it with: {continue_with}", shown(file))
        }
    }
}

fn shown(path: &Path) -> String {
    tilde(&path.to_string_lossy())
}
