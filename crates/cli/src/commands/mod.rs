//! One file per command.

mod agents;
mod answer;
mod archive;
mod attach;
pub mod checkpoints;
mod doctor;
mod events;
mod foreign;
mod fork;
mod interrupt;
mod logs;
mod ls;
mod purge;
mod reference;
mod repair;
mod restore;
mod resume;
mod run;
mod send;
mod several;
mod show;
mod stop;
mod sweep;
mod upgrade;
mod wait;
mod who;

pub use logs::to_json;
pub use who::session_of;

use crate::args::{Cli, Command};
use crate::context::Context;
use crate::dashes;
use crate::exit::{Code, Failure, Result};
use crate::say::not_written;
use clap::Parser;
use clap::error::ErrorKind;
use std::ffi::OsString;
use std::io::Write;

/// Parses, runs one command, and turns what came of it into words and an exit code.
pub fn main(arguments: impl Iterator<Item = OsString>) -> u8 {
    let arguments = dashes::mark(arguments.collect());
    let named_alone = Command::named_alone(&arguments).map(|command| Ok(Cli { command: Some(command) }));
    let code = match named_alone.unwrap_or_else(|| Cli::try_parse_from(&arguments)) {
        Ok(cli) => dispatch(cli).unwrap_or_else(|failure| complain(&failure)),
        Err(error) => explain(&error),
    };
    code.number()
}

fn dispatch(cli: Cli) -> Result<Code> {
    // These need no home.
    match &cli.command {
        Some(Command::Completions { shell }) => return reference::completions(*shell),
        Some(Command::Man { folder }) => return reference::man(folder.as_deref()),
        _ => {}
    }
    let context = Context::new()?;
    match cli.command {
        None => ls::bare(&context),
        Some(Command::Run(args)) => run::run(&context, args),
        Some(Command::Ls(args)) => ls::run(&context, &args),
        Some(Command::Agents(args)) => agents::run(&context, &args),
        Some(Command::Who(args)) => who::run(&context, &args),
        Some(Command::Show(args)) => show::run(&context, &args),
        Some(Command::Logs(args)) => logs::run(&context, &args),
        Some(Command::Wait(args)) => wait::run(&context, &args),
        Some(Command::Send(args)) => send::run(&context, args),
        Some(Command::Answer(args)) => answer::run(&context, args),
        Some(Command::Attach(args)) => attach::run(&context, &args),
        Some(Command::Interrupt(args)) => interrupt::run(&context, &args),
        Some(Command::Stop(args)) => stop::run(&context, &args),
        Some(Command::Checkpoints(args)) => checkpoints::run(&context, &args),
        Some(Command::Archive(args)) => archive::run(&context, &args),
        Some(Command::Resume(args)) => resume::run(&context, args),
        Some(Command::Fork(args)) => fork::run(&context, args),
        Some(Command::Repair(args)) => repair::run(&context, &args),
        Some(Command::Restore(args)) => restore::run(&context, &args),
        Some(Command::Purge(args)) => purge::run(&context, &args),
        Some(Command::Doctor(args)) => doctor::run(&context, &args),
        Some(Command::Events(args)) => events::run(&context, &args),
        Some(Command::Upgrade(args)) => upgrade::run(&context, &args),
        Some(Command::Completions { .. } | Command::Man { .. }) => Ok(Code::Succeeded),
    }
}

fn complain(failure: &Failure) -> Code {
    // A terminal that went away is no reason to panic.
    let _ = writeln!(std::io::stderr(), "ostler: {failure}");
    failure.code
}

/// clap's long complaint as our one line; help and version as they are.
fn explain(error: &clap::Error) -> Code {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            match error.print() {
                // A closed pipe is no reason to complain.
                Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => complain(&not_written(error)),
                Ok(()) | Err(_) => Code::Succeeded,
            }
        }
        _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            let first = first.strip_prefix("error: ").unwrap_or(first).trim_end_matches(':');
            let detail: Vec<&str> =
                text.lines().skip(1).take_while(|line| line.starts_with("  ")).map(str::trim).collect();
            let detail = if detail.is_empty() { String::new() } else { format!(": {}", detail.join(", ")) };
            complain(&Failure::usage(format!("{first}{detail}; ostler --help shows the way")))
        }
    }
}
