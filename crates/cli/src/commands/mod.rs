//! One file per command.

mod adopt;
mod agents;
mod answer;
mod archive;
mod attach;
mod bisect;
pub mod checkpoints;
mod compare;
mod completion;
mod continuing;
mod dashboard;
mod diff;
mod doctor;
mod du;
mod each_session;
mod events;
mod fan;
mod foreign;
mod fork;
mod handover;
pub mod help;
mod interrupt;
mod job_follow;
mod land;
mod logs;
mod looping;
pub mod ls;
mod notify;
mod pick;
mod purge;
mod recover;
mod reference;
mod rename;
mod repair;
mod restore;
mod resume;
mod review;
mod rewind;
mod run;
mod search;
mod send;
mod show;
mod stats;
mod stop;
mod up;
mod upgrade;
mod wait;
mod who;
mod worker;
mod worktree;

pub use ostler_engine::logs::to_json;

use crate::args::{Cli, Command, NotifyAction};
use crate::context::Context;
use crate::dashes;
use crate::exit::{Code, Failure, Result};
use crate::usage;
use std::ffi::OsString;
use std::io::Write;

/// Parses the arguments, runs one command, and turns its result into words and an exit code.
pub fn main(arguments: impl Iterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.collect();
    if let Some(answered) = completion::answer(&arguments) {
        return answered.unwrap_or_else(|failure| complain(&failure)).number();
    }
    if let [_, only] = &arguments[..]
        && (only == "--version" || only == "-V")
    {
        return reference::version().unwrap_or_else(|failure| complain(&failure)).number();
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
        // Doctor itself lists everything that is wrong.
        Some(Command::Doctor(_)) => {}
        // These warn later, when nothing else is wrong.
        Some(Command::Run(_) | Command::Loop(_) | Command::Up(_) | Command::Fan(_) | Command::Worker(_)) => {
            context.engine.config.needs_for_launch()?
        }
        Some(Command::Resume(args)) if args.queue.is_some() => {
            context.engine.config.needs_for_launch()?;
            context.engine.config.needs("queues")?;
            context.warn();
        }
        Some(
            Command::Resume(_)
            | Command::Fork(_)
            | Command::Handover(_)
            | Command::Review(_)
            | Command::Adopt(_)
            | Command::Rewind(_),
        ) => {
            context.engine.config.needs_for_launch()?;
            context.warn();
        }
        Some(Command::Notify(args)) if matches!(args.action, NotifyAction::Test) => {
            context.engine.config.needs("notify")?;
            context.warn();
        }
        Some(_) | None => context.warn(),
    }
    match &cli.command {
        // They start the sender themselves, or report that it has to be started.
        Some(Command::Doctor(_) | Command::Notify(_)) => {}
        Some(_) | None => context.engine.revive_sender()?,
    }
    match cli.command {
        None => ls::bare(&context),
        Some(Command::Run(args)) => run::run(&context, args),
        Some(Command::Loop(args)) => looping::run(&context, args),
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
        Some(Command::Diff(args)) => diff::run(&context, &args),
        Some(Command::Land(args)) => land::run(&context, &args),
        Some(Command::Compare(args)) => compare::run(&context, &args),
        Some(Command::Pick(args)) => pick::run(&context, &args),
        Some(Command::Rewind(args)) => rewind::run(&context, &args),
        Some(Command::Bisect(args)) => bisect::run(&context, &args),
        Some(Command::Worktree(args)) => worktree::run(&context, &args),
        Some(Command::Archive(args)) => archive::run(&context, &args),
        Some(Command::Rename(args)) => rename::run(&context, &args),
        Some(Command::Resume(args)) => resume::run(&context, args),
        Some(Command::Adopt(args)) => adopt::run(&context, args),
        Some(Command::Fork(args)) => fork::run(&context, args),
        Some(Command::Handover(args)) => handover::run(&context, args),
        Some(Command::Fan(args)) => fan::run(&context, args),
        Some(Command::Worker(args)) => worker::run(&context, args),
        Some(Command::Up(args)) => up::run(&context, &args),
        Some(Command::Review(args)) => review::run(&context, &args),
        Some(Command::Repair(args)) => repair::run(&context, &args),
        Some(Command::Restore(args)) => restore::run(&context, &args),
        Some(Command::Purge(args)) => purge::run(&context, &args),
        Some(Command::Du(args)) => du::run(&context, &args),
        Some(Command::Stats(args)) => stats::run(&context, &args),
        Some(Command::Doctor(args)) => doctor::run(&context, &args),
        Some(Command::Notify(args)) => notify::run(&context, &args),
        Some(Command::Events(args)) => events::run(&context, &args),
        Some(Command::Upgrade(args)) => upgrade::run(&context, &args),
        Some(Command::Recover(args)) => recover::run(&context, &args),
        Some(Command::InstallService(args)) => recover::install(&context, &args),
        Some(Command::Ui) => dashboard::run(&context),
        Some(Command::Completions { .. } | Command::Man { .. } | Command::Help(_)) => Ok(Code::Succeeded),
    }
}

fn complain(failure: &Failure) -> Code {
    // If the terminal is gone, do not panic.
    let _ = writeln!(std::io::stderr(), "ostler: {failure}");
    failure.code
}
