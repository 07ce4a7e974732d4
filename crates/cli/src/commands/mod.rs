//! One file per command.

mod adopt;
mod agents;
mod answer;
mod archive;
mod attach;
pub mod checkpoints;
mod completion;
mod dashboard;
mod doctor;
mod du;
mod events;
mod foreign;
mod fork;
pub mod help;
mod interrupt;
mod logs;
pub mod ls;
mod purge;
mod reference;
mod rename;
mod repair;
mod restore;
mod resume;
mod run;
mod search;
mod send;
mod several;
mod show;
mod stats;
mod stop;
mod upgrade;
mod wait;
mod who;

pub use ostler_engine::logs::to_json;

use crate::args::{Cli, Command};
use crate::context::Context;
use crate::dashes;
use crate::exit::{Code, Failure, Result};
use crate::usage;
use std::ffi::OsString;
use std::io::Write;

/// Parses, runs one command, and turns what came of it into words and an exit code.
pub fn main(arguments: impl Iterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.collect();
    if let Some(answered) = completion::answer(&arguments) {
        return answered.unwrap_or_else(|failure| complain(&failure)).number();
    }
    let arguments = dashes::mark(arguments);
    let parse_fast = Command::parse_fast(&arguments).map(|command| Ok(Cli { command: Some(command) }));
    let done = match parse_fast.unwrap_or_else(|| usage::parse(&arguments)) {
        Ok(cli) => dispatch(cli),
        Err(error) => usage::explain(&error, &arguments),
    };
    done.unwrap_or_else(|failure| complain(&failure)).number()
}

fn dispatch(cli: Cli) -> Result<Code> {
    // These need no home.
    match &cli.command {
        Some(Command::Completions { shell }) => return reference::completions(*shell),
        Some(Command::Man { folder }) => return reference::man(folder.as_deref()),
        Some(Command::Help(args)) => return help::run(args),
        _ => {}
    }
    let context = Context::new()?;
    match &cli.command {
        // Lists all that is wrong itself.
        Some(Command::Doctor(_)) => {}
        // Warns once nothing else is wrong.
        Some(Command::Run(_)) => context.engine.config.needs_for_launch()?,
        Some(Command::Resume(_) | Command::Fork(_) | Command::Adopt(_)) => {
            context.engine.config.needs_for_launch()?;
            context.warn();
        }
        Some(_) | None => context.warn(),
    }
    match cli.command {
        None => ls::bare(&context),
        Some(Command::Run(args)) => run::run(&context, args),
        Some(Command::Ls(args)) => ls::run(&context, &args),
        Some(Command::Agents(args)) => agents::run(&context, &args),
        Some(Command::Who(args)) => who::run(&context, &args),
        Some(Command::Show(args)) => show::run(&context, &args),
        Some(Command::Logs(args)) => logs::run(&context, &args),
        Some(Command::Search(args)) => search::run(&context, &args),
        Some(Command::Wait(args)) => wait::run(&context, &args),
        Some(Command::Send(args)) => send::run(&context, args),
        Some(Command::Answer(args)) => answer::run(&context, args),
        Some(Command::Attach(args)) => attach::run(&context, &args),
        Some(Command::Interrupt(args)) => interrupt::run(&context, &args),
        Some(Command::Stop(args)) => stop::run(&context, &args),
        Some(Command::Checkpoints(args)) => checkpoints::run(&context, &args),
        Some(Command::Archive(args)) => archive::run(&context, &args),
        Some(Command::Rename(args)) => rename::run(&context, &args),
        Some(Command::Resume(args)) => resume::run(&context, args),
        Some(Command::Adopt(args)) => adopt::run(&context, args),
        Some(Command::Fork(args)) => fork::run(&context, args),
        Some(Command::Repair(args)) => repair::run(&context, &args),
        Some(Command::Restore(args)) => restore::run(&context, &args),
        Some(Command::Purge(args)) => purge::run(&context, &args),
        Some(Command::Du(args)) => du::run(&context, &args),
        Some(Command::Stats(args)) => stats::run(&context, &args),
        Some(Command::Doctor(args)) => doctor::run(&context, &args),
        Some(Command::Events(args)) => events::run(&context, &args),
        Some(Command::Upgrade(args)) => upgrade::run(&context, &args),
        Some(Command::Ui) => dashboard::run(&context),
        Some(Command::Completions { .. } | Command::Man { .. } | Command::Help(_)) => Ok(Code::Succeeded),
    }
}

fn complain(failure: &Failure) -> Code {
    // A terminal that went away is no reason to panic.
    let _ = writeln!(std::io::stderr(), "ostler: {failure}");
    failure.code
}
