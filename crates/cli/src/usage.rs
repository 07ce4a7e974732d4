//! Mistakes on the command line, as one line that says what was probably meant.

use crate::args::Cli;
use crate::commands::help;
use crate::dashes;
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

/// Commands that take text, which a person may have typed without quotes.
const TAKE_TEXT: [&str; 7] = ["run", "loop", "send", "resume", "fork", "handover", "answer"];

/// Parses with the whole tree of commands, examples included.
pub fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = help::with_examples(Cli::command());
    let matches = command.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Help and version as they are; a mistake as one line.
pub fn explain(error: &clap::Error, arguments: &[OsString]) -> Result<Code, Failure> {
    let typed = Typed::of(arguments);
    if error.kind() == ErrorKind::DisplayHelp
        && let Some(text) = text_read_as_help(arguments)
    {
        return Err(Failure::usage(typed.unknown_argument(text)));
    }
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match error.print() {
            // A closed pipe is not an error.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(not_written(error)),
            Ok(()) | Err(_) => Ok(Code::Succeeded),
        },
        _ => Err(Failure::usage(typed.words(error))),
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

/// What was typed, and the command that it belongs to.
struct Typed<'a> {
    words: Vec<&'a str>,
    /// `worktree rm`; empty without a command.
    name: String,
    command: clap::Command,
}

impl Typed<'_> {
    fn of(arguments: &[OsString]) -> Typed<'_> {
        let words: Vec<&str> = arguments.iter().skip(1).map_while(|word| word.to_str()).collect();
        let (mut command, mut name) = (Cli::command(), String::new());
        for word in &words {
            let Some(found) = command.find_subcommand(word) else { break };
            name = format!("{name} {}", found.get_name()).trim_start().to_owned();
            command = found.clone();
        }
        Typed { words, name, command }
    }

    fn help(&self) -> String {
        format!("{} --help", format!("ostler {}", self.name).trim_end())
    }

    fn words(&self, error: &clap::Error) -> String {
        let of = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => vec![text.as_str()],
            Some(ContextValue::Strings(texts)) => texts.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        };
        let args = of(ContextKind::InvalidArg);
        match (error.kind(), &args[..], &of(ContextKind::InvalidValue)[..]) {
            (ErrorKind::InvalidSubcommand, ..) => match (&self.name[..], &of(ContextKind::InvalidSubcommand)[..]) {
                ("", [typed]) => unknown_command(typed),
                (name, [typed]) => format!("there is no command \"{name} {typed}\"; use {}", self.subcommands()),
                (..) => self.as_clap_says(error),
            },
            (ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand, ..) => {
                format!("a command is missing after {}; use {}", self.name, self.subcommands())
            }
            (ErrorKind::MissingRequiredArgument, ..) if self.name == "stop" => {
                "a session is missing; name it: ostler stop ID, or stop every running session: --all, or those in this \
                 folder: --here"
                    .to_owned()
            }
            (ErrorKind::MissingRequiredArgument, [_, ..], _) => {
                // Without its first words a command is not understood at all.
                let is_option = |arg: &&str| arg.trim_start_matches('<').starts_with("--");
                let words: Vec<&str> = args.iter().filter(|arg| !is_option(arg)).copied().collect();
                let missing = if words.is_empty() { &args[..1] } else { &words[..] };
                format!("{}; see {}", is_missing(missing), self.help())
            }
            (ErrorKind::UnknownArgument, [flag], _) => self.unknown_argument(flag),
            (ErrorKind::InvalidValue, [option], [] | [""]) => {
                format!("{} needs a value{}", bare(option), one_of(&of(ContextKind::ValidValue)))
            }
            (ErrorKind::InvalidValue, [option], [value]) => {
                format!("{value:?} is not a value of {}{}", bare(option), one_of(&of(ContextKind::ValidValue)))
            }
            (ErrorKind::ValueValidation, [option], [value]) => {
                let why = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
                format!("{value:?} is not a value of {}: {}", bare(option), about_number(&why))
            }
            _ => self.as_clap_says(error),
        }
    }

    fn as_clap_says(&self, error: &clap::Error) -> String {
        format!("{}; see {}", in_one_line(error), self.help())
    }

    fn subcommands(&self) -> String {
        let names = self.command.get_subcommands().filter(|one| !one.is_hide_set()).map(clap::Command::get_name);
        either(&names.collect::<Vec<_>>())
    }

    fn unknown_argument(&self, flag: &str) -> String {
        let Typed { words, name, command } = self;
        let (name, help) = (if name.is_empty() { "ostler" } else { name }, self.help());
        if !flag.starts_with('-') {
            let splits = !flag.contains(char::is_whitespace) && TAKE_TEXT.contains(&name);
            let quotes = if splits { "put text in quotes, or see" } else { "see" };
            return format!("{flag:?} is one word too many; {quotes} {help}");
        }
        // Of `-5s` clap names only `-5`.
        let at = words.iter().position(|word| word.starts_with(flag));
        if let Some((at, option)) = at.and_then(|at| Some((at, words.get(at.checked_sub(1)?)?)))
            && dashes::takes_value(command, option)
        {
            let word = words[at];
            return format!("{word:?} looks like a flag; as the value of {option}, write {option}={word}");
        }
        let bare = bare(flag);
        let flags: Vec<String> =
            command.get_arguments().filter_map(|one| one.get_long().map(|long| format!("--{long}"))).collect();
        let meant = nearest(bare, flags.iter().map(String::as_str));
        let mut said = format!("{name} has no flag {bare}{}", did_you_mean(meant));
        // After the name of an agent it is most likely a flag of that agent.
        let agent = words.iter().skip(1).find(|word| is_agent(word));
        match (name, agent, meant) {
            ("run", Some(agent), None) => {
                said.push_str(&format!(
                    "; flags for the agent go after --: ostler run {agent} \"…\" -- {flag} (a prompt: -p TEXT)"
                ));
            }
            ("run" | "send" | "resume" | "fork", _, None) => {
                let text = text_flag(name);
                said.push_str(&format!("; for text that begins with a dash: ostler {name} … -{text} TEXT"));
            }
            (_, _, None) => said.push_str(&format!("; see {help}")),
            (_, _, Some(_)) => {}
        }
        said
    }
}

/// `--output` of `--output <FORMAT>`.
fn bare(option: &str) -> &str {
    option.split([' ', '=']).next().unwrap_or(option)
}

/// What is missing, by clap's names: `<ID>`, `<MESSAGE|--message <TEXT>>`, `--queue [<NAME>]`.
fn is_missing(args: &[&str]) -> String {
    let plain = |arg: &str| arg.replace(['<', '>', '[', ']'], "").trim_end_matches('.').to_owned();
    let options = |arg: &str| {
        let names: Vec<String> = plain(arg).split('|').map(|one| bare(one).to_owned()).collect();
        either(&names.iter().map(String::as_str).collect::<Vec<_>>())
    };
    match args {
        [arg] if arg.starts_with("--") || arg.starts_with("<--") => format!("{} is needed as well", options(arg)),
        [arg] => format!("{} is missing", plain(arg)),
        several => {
            let names: Vec<String> = several.iter().map(|arg| plain(arg)).collect();
            format!("{} are missing", names.join(" and "))
        }
    }
}

fn one_of(values: &[&str]) -> String {
    if values.is_empty() { String::new() } else { format!("; use {}", either(values)) }
}

/// `a, b or c`.
fn either(names: &[&str]) -> String {
    match names {
        [all @ .., last] if !all.is_empty() => format!("{} or {last}", all.join(", ")),
        names => names.concat(),
    }
}

/// The errors of the standard library and of clap about numbers, in words of a person.
fn about_number(why: &str) -> &str {
    if why.contains("zero for non-zero") || why.contains("is not in 1..") {
        return "it must be at least 1";
    }
    match why {
        "invalid digit found in string" | "cannot parse integer from empty string" | "invalid float literal" => {
            "it must be a number"
        }
        "number too large to fit in target type" => "it is too large",
        other => other,
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
