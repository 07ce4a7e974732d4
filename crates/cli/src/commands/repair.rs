//! `ostler repair`: what is wrong with a transcript, and repairing it.

use super::ls::tilde;
use crate::args::Repair;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::say;
use crate::ui::called::called;
use ostler_core::limits::counted;
use ostler_core::view::View;
use ostler_engine::process::now;
use ostler_engine::quiesced::{NotQuiesced, Quiesced};
use ostler_engine::repair::file::Looked;
use ostler_engine::repair::lost::Kept;
use ostler_engine::repair::rehearsal::Rehearsal;
use ostler_engine::repair::target::Target;
use ostler_engine::repair::{changes, note, owner, split_off};
use ostler_store::checkpoints;
use ostler_store::folder::Folder;
use ostler_transcript::{Branches, Finding, Remedy};
use std::path::Path;

pub fn run(context: &Context, args: &Repair) -> Result<Code> {
    let target = Target::find(&context.engine, &args.id)?;
    let shown = |path: &Path| tilde(&path.to_string_lossy());
    if let Some(id) = &target.native_id
        && let Some(owner) = owner(&context.engine, target.format, id)?
    {
        let terminal = owner.terminal.as_ref().map(|terminal| format!(" on {terminal}")).unwrap_or_default();
        return Err(Failure::new(
            Code::Refused,
            format!(
                "process {}{terminal} is using the conversation ({}); end it first",
                owner.pid,
                words(&owner.command)
            ),
        ));
    }
    // Nobody may begin the session's next run meanwhile.
    let still = match &target.session {
        Some(view) if !args.dry_run => Some(take(context, view)?),
        Some(view) if view.alive => return Err(runs(view)),
        Some(_) | None => None,
    };
    let cannot = |error| Failure::ours(format!("{} cannot be repaired: {error}", shown(&target.file)));
    let whole = |looked: &Looked| {
        let messages = counted(looked.examination.messages as u64, "message", "messages");
        format!("{messages} in {}", shown(&target.file))
    };
    let branches = if args.split { Branches::Split } else { Branches::Join };
    let rehearsal = args.dry_run.then(|| Rehearsal::of(&target.file)).transpose().map_err(cannot)?;
    let as_it_is = || Looked::at(&target.file, target.format, branches).map_err(cannot);
    let file = rehearsal.as_ref().map_or(target.file.as_path(), Rehearsal::file);
    let lost = match &target.session {
        Some(view) => bring_back(context, view, &target, file, args.dry_run)?,
        None => Lost::Nothing,
    };
    let looked = Looked::at(file, target.format, branches).map_err(cannot)?;
    let beyond = looked.examination.cannot_be_repaired();
    if !looked.examination.repairs() {
        report(&looked.examination.findings, "to repair")?;
        return match (lost, beyond) {
            (Lost::ToBringBack, _) => not_repaired(&whole(&as_it_is()?)),
            (Lost::Nothing | Lost::BroughtBack, true) => {
                say!("cannot be repaired, no copy has it: {}", whole(&looked)).map(|()| Code::Failed)
            }
            (Lost::BroughtBack, false) => say!("{}", whole(&looked)).map(|()| Code::Succeeded),
            (Lost::Nothing, false) => say!("nothing to repair: {}", whole(&looked)).map(|()| Code::Succeeded),
        };
    }
    let written = looked.repair().map_err(cannot)?;
    if args.dry_run {
        report(&written.findings, "to repair")?;
        return not_repaired(&whole(&as_it_is()?));
    }
    report(&written.findings, "repaired")?;
    if let (Some(view), Some(_still)) = (&target.session, &still) {
        let folder = context.engine.home.select(view.id.as_str())?.open()?;
        note(&folder, view.run, changes(&written.findings), &written.backup)?;
        settle(&folder, &target.file)?;
    }
    say!("backup: {}", shown(&written.backup))?;
    for (id, path) in &written.moved {
        // What leaves may be cut off too.
        let other = Looked::at(path, target.format, Branches::Join).map_err(cannot)?;
        if other.examination.repairs() {
            std::fs::remove_file(other.repair().map_err(cannot)?.backup).map_err(cannot)?;
        }
        let goes_on = match &target.session {
            Some(view) => {
                let original = context.engine.home.select(view.id.as_str())?.open()?.session()?;
                format!("ostler resume {}", split_off::keep(&context.engine, original, id, path)?)
            }
            None => format!("{} --resume {id}", target.format.agent()),
        };
        say!("the other conversation: {}; continue it with: {goes_on}", shown(path))?;
    }
    Ok(if beyond { Code::Failed } else { Code::Succeeded })
}

fn not_repaired(whole: &str) -> Result<Code> {
    say!("not repaired yet: {whole}; repair it: run this without --dry-run").map(|()| Code::Failed)
}

/// What the copies of a session's transcript have and the transcript has not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lost {
    Nothing,
    ToBringBack,
    BroughtBack,
}

fn bring_back(context: &Context, view: &View, target: &Target, file: &Path, dry_run: bool) -> Result<Lost> {
    let folder = context.engine.home.select(view.id.as_str())?.open()?;
    let kept = Kept { folder: &folder, id: view.id, transcript: &target.file, file, format: Some(target.format) };
    let mut lost = Lost::Nothing;
    let mut lines = String::new();
    let left = if dry_run {
        kept.bring_back(None, &mut |words, _| {
            lost = Lost::ToBringBack;
            lines += &format!("to repair: {words}\n");
        })
    } else {
        kept.bring_back(Some(view.run), &mut |words, backup| {
            lost = Lost::BroughtBack;
            lines += &format!("repaired: {words}\nbackup: {}\n", tilde(&backup.to_string_lossy()));
        })
    };
    crate::say::text(&lines)?;
    let left = left?;
    if let Some(loss) = left {
        say!("note: {}", loss.words)?;
    }
    if lost == Lost::BroughtBack {
        settle(&folder, &target.file)?;
    }
    Ok(lost)
}

/// Where there are copies, another one is begun: what we do ourselves is no surprise at the next resume.
fn settle(folder: &Folder, transcript: &Path) -> Result<()> {
    if !checkpoints::earlier(folder, transcript)?.is_empty() {
        checkpoints::settle(folder, transcript, now())?;
    }
    Ok(())
}

fn report(findings: &[Finding], repairing: &str) -> Result<()> {
    for finding in findings {
        match finding.remedy() {
            Remedy::Repair => say!("{repairing}: {finding}")?,
            Remedy::Note => say!("note: {finding}")?,
            Remedy::None => say!("cannot be repaired: {finding}")?,
        }
    }
    Ok(())
}

fn take(context: &Context, view: &View) -> Result<Quiesced> {
    match Quiesced::take(&context.engine.home.select(view.id.as_str())?) {
        Ok(still) => Ok(still),
        Err(NotQuiesced::Runs) => Err(runs(view)),
        Err(NotQuiesced::Failed(error)) => Err(error.into()),
    }
}

fn runs(view: &View) -> Failure {
    let who = view.pid.map_or("a process".to_owned(), |pid| format!("process {pid}"));
    Failure::new(
        Code::Refused,
        format!("{} is running: {who} is using the conversation; stop it first: ostler stop {}", called(view), view.id),
    )
}

fn words(command: &[String]) -> String {
    command.first().map_or("a program", |program| program.rsplit('/').next().unwrap_or(program)).to_owned()
}
