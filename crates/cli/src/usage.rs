//! Mistakes on the command line, as one line that says what was probably meant.

use crate::args::Cli;
use crate::commands::help;
use crate::exit::{Code, Failure};
use crate::say::not_written;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};
use ostler_engine::installed;
use ostler_engine::suggest::{did_you_mean, nearest};
use std::ffi::OsString;

/// Commands of other tools, and what to use here.
const ELSEWHERE: [(&str, &str); 16] = [
    ("rm", "ostler purge ID (first ostler stop ID if it runs)"),
    ("remove", "ostler purge ID (first ostler stop ID if it runs)"),
    ("delete", "ostler purge ID (first ostler stop ID if it runs)"),
    ("kill", "ostler stop --kill ID"),
    ("start", "ostler run"),
    ("new", "ostler run"),
    ("exec", "ostler run"),
    ("status", "ostler ls, or ostler show ID"),
    ("inspect", "ostler show ID"),
    ("tail", "ostler logs -f ID"),
    ("cancel", "ostler interrupt ID"),
    ("continue", "ostler resume ID"),
    ("chat", "ostler attach ID"),
    ("open", "ostler attach ID"),
    ("version", "ostler --version"),
    ("config", "ostler help config"),
];

/// Parses with the whole tree of commands, examples included.
pub fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = help::with_examples(Cli::command());
    let matches = command.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Help and version as they are; a mistake as one line.
pub fn explain(error: &clap::Error, arguments: &[OsString]) -> Result<Code, Failure> {
    if error.kind() == ErrorKind::DisplayHelp
        && let Some(text) = text_read_as_help(arguments)
    {
        return Err(Failure::usage(unknown_argument(text, command_in(arguments), arguments)));
    }
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            match error.print() {
                // A closed pipe is not an error.
                Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(not_written(error)),
                Ok(()) | Err(_) => Ok(Code::Succeeded),
            }
        }
        _ => Err(Failure::usage(words(error, arguments))),
    }
}

/// A word like `-hello`, which clap reads as `-h` with more flags behind it. `None`: help was asked for.
fn text_read_as_help(arguments: &[OsString]) -> Option<&str> {
    let words = || arguments.iter().map_while(|word| word.to_str().filter(|word| *word != "--"));
    if words().any(|word| word == "-h" || word == "--help") {
        return None;
    }
    words().find(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('h') && !word.ends_with('h'))
}

fn command_in(arguments: &[OsString]) -> Option<&str> {
    arguments.get(1).and_then(|word| word.to_str()).filter(|word| !word.starts_with('-'))
}

fn words(error: &clap::Error, arguments: &[OsString]) -> String {
    let of = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let command = command_in(arguments);
    match (error.kind(), of(ContextKind::InvalidSubcommand), of(ContextKind::InvalidArg)) {
        (ErrorKind::InvalidSubcommand, Some(typed), _) if command == Some(typed) => unknown_command(typed),
        (ErrorKind::MissingRequiredArgument, _, _) if command == Some("stop") => {
            "a session is missing; name it: ostler stop ID, or stop every running session: --all, or those in this folder: \
             --here"
                .to_owned()
        }
        (ErrorKind::UnknownArgument, _, Some(flag)) => unknown_argument(flag, command, arguments),
        _ => {
            let more = command.map_or("ostler --help".to_owned(), |command| format!("ostler {command} --help"));
            format!("{}; see {more}", in_one_line(error))
        }
    }
}

fn unknown_command(typed: &str) -> String {
    if let Some((_, instead)) = ELSEWHERE.iter().find(|(name, _)| *name == typed) {
        return format!("there is no command {typed:?}; use {instead}");
    }
    if installed::find(typed).is_some() {
        return format!("{typed:?} is an agent; start it with ostler run {typed}");
    }
    let tree = Cli::command();
    let names: Vec<&str> =
        tree.get_subcommands().filter(|one| !one.is_hide_set()).map(clap::Command::get_name).collect();
    // An unfinished word is more likely than a wrong letter.
    let begun: Vec<String> =
        names.iter().filter(|name| name.starts_with(typed)).map(|name| format!("ostler {name}")).collect();
    if (1..=4).contains(&begun.len()) {
        return format!("there is no command {typed:?}; did you mean {}?", begun.join(" or "));
    }
    match nearest(typed, names) {
        Some(name) => format!("there is no command {typed:?}; did you mean ostler {name}?"),
        None => format!("there is no command {typed:?}; see ostler --help"),
    }
}

fn unknown_argument(flag: &str, command: Option<&str>, arguments: &[OsString]) -> String {
    let tree = Cli::command();
    let found = command.and_then(|name| tree.find_subcommand(name));
    let name = found.map_or("ostler", |found| found.get_name());
    let help = found.map_or("ostler --help".to_owned(), |found| format!("ostler {} --help", found.get_name()));
    if !flag.starts_with('-') {
        return format!("{flag:?} is one word too many; put text in quotes, or see {help}");
    }
    let bare = flag.split('=').next().unwrap_or(flag);
    let flags: Vec<String> = found
        .into_iter()
        .flat_map(clap::Command::get_arguments)
        .filter_map(|one| one.get_long().map(|long| format!("--{long}")))
        .collect();
    let meant = nearest(bare, flags.iter().map(String::as_str));
    let mut words = format!("{name} has no flag {bare}{}", did_you_mean(meant));
    // After the name of an agent it is most likely a flag of that agent.
    let agent = arguments.iter().skip(2).filter_map(|word| word.to_str()).find(|word| is_agent(word));
    match (name, agent, meant) {
        ("run", Some(agent), None) => {
            words.push_str(&format!(
                "; flags for the agent go after --: ostler run {agent} \"…\" -- {flag} (a prompt: -p TEXT)"
            ));
        }
        ("run" | "send" | "resume" | "fork", _, None) => {
            words.push_str(&format!("; for text that begins with a dash: ostler {name} … -{} TEXT", text_flag(name)));
        }
        (_, _, None) => words.push_str(&format!("; see {help}")),
        (_, _, Some(_)) => {}
    }
    words
}

fn text_flag(command: &str) -> char {
    if command == "run" { 'p' } else { 'm' }
}

fn is_agent(word: &str) -> bool {
    installed::known().any(|agent| agent.name() == word)
}

/// clap's long error in one line, without its usage.
fn in_one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first).trim_end_matches(':');
    let detail: Vec<&str> = text.lines().skip(1).take_while(|line| line.starts_with("  ")).map(str::trim).collect();
    let detail = if detail.is_empty() { String::new() } else { format!(": {}", detail.join(", ")) };
    format!("{first}{detail}")
}
