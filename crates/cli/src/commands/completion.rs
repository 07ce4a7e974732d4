//! What a shell offers when Tab is pressed: commands and flags from their definitions; sessions, agents and labels from
//! files. `ostler completions SHELL` prints a few lines for the shell, which then calls this program with [`VARIABLE`]
//! set.
//!
//! The candidates are found by [`ostler_engine::completion`].

use super::help;
use super::ls::tilde;
use crate::args::Cli;
use crate::context::variable;
use crate::exit::{Code, Failure, Result};
use crate::ui::time::age;
use clap::CommandFactory;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, complete};
use clap_complete::env::{CompleteEnv, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};
use ostler_core::record::Session;
use ostler_engine::completion::Among;
use ostler_engine::config::Config;
use ostler_engine::foreign::stored::Stored;
use ostler_engine::process::now;
use ostler_engine::{Engine, Environment, installed};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// Set by the shell when it asks for candidates. Not the usual COMPLETE, which another program may have set.
const VARIABLE: &str = "OSTLER_COMPLETE";

const SHELLS: [&dyn EnvCompleter; 5] = [&Bash, &Elvish, &Fish, &Powershell, &Zsh];

/// Answers a shell that asks for candidates; `None` when this is not such a call.
pub fn answer(arguments: &[OsString]) -> Option<Result<Code>> {
    variable(VARIABLE)?;
    let asked = CompleteEnv::with_factory(definitions).var(VARIABLE).shells(Shells(&SHELLS)).completer("ostler");
    let answered = asked.try_complete(arguments.iter(), Environment::of_process().folder().ok());
    match answered {
        Ok(true) => Some(Ok(Code::Succeeded)),
        Ok(false) => None,
        Err(error) => Some(Err(Failure::ours(error.to_string()))),
    }
}

/// The lines that make a shell call this program.
pub fn registration(shell: &str) -> Result<Vec<u8>> {
    let mut script = Vec::new();
    match SHELLS.iter().find(|one| one.is(shell)) {
        Some(one) => one.write_registration(VARIABLE, "ostler", "ostler", "ostler", &mut script)?,
        None => return Err(Failure::usage(format!("{shell} is not a supported shell; use bash, zsh or fish"))),
    }
    Ok(script)
}

/// The commands, and where the values of their arguments come from.
fn definitions() -> clap::Command {
    with_values(Cli::command())
}

fn with_values(mut command: clap::Command) -> clap::Command {
    let below: Vec<String> = command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    for name in below {
        command = command.mut_subcommand(name, with_values);
    }
    let name = command.get_name().to_owned();
    // All in place: a positional argument that is removed and added again comes last.
    command.mut_args(|argument| {
        let values = match (name.as_str(), argument.get_id().as_str()) {
            ("restore", "ids") => ArgValueCompleter::new(|typed: &OsStr| sessions(typed, Among::Archived)),
            (_, "id" | "ids") => ArgValueCompleter::new(|typed: &OsStr| sessions(typed, Among::Live)),
            ("run" | "loop", "words") | ("ls" | "search", "agents") => ArgValueCompleter::new(agents),
            ("adopt", "conversation") => ArgValueCompleter::new(conversations),
            (_, "labels") => ArgValueCompleter::new(labels),
            ("help", "topic") => ArgValueCompleter::new(topics),
            _ => return argument,
        };
        argument.add(values)
    })
}

/// The engine; without a home there is nothing to offer.
fn engine() -> Option<Engine> {
    Engine::open(Environment::of_process()).ok()
}

/// Names and ids, the newest first.
fn sessions(typed: &OsStr, among: Among) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let mut found = Vec::new();
    for session in engine().map(|engine| engine.sessions_like(&typed, among)).unwrap_or_default() {
        let about = describe(&session);
        let id = session.id.as_str();
        if let Some(name) = session.name.as_deref().filter(|name| name.starts_with(&*typed)) {
            found.push(candidate(name, format!("{id} {about}"), found.len()));
        }
        if id.starts_with(&*typed) {
            let name = session.name.as_ref().map(|name| format!("{name} ")).unwrap_or_default();
            found.push(candidate(id, format!("{name}{about}"), found.len()));
        }
    }
    if let Some(engine) = engine().filter(|_| among == Among::Live) {
        for word in engine.selectors_like(&typed) {
            found.push(candidate(&word, "several sessions".to_owned(), found.len()));
        }
    }
    if "@last".starts_with(&*typed) && !found.is_empty() {
        found.push(candidate("@last", "the newest session".to_owned(), found.len()));
    }
    found
}

/// Conversations that the agents store, the newest first.
fn conversations(typed: &OsStr) -> Vec<CompletionCandidate> {
    let found = engine().map(|engine| engine.conversations_like(&typed.to_string_lossy())).unwrap_or_default();
    let about = |one: &Stored| {
        let seconds = SystemTime::now().duration_since(one.updated).map_or(0, |time| time.as_secs());
        format!("{}, {} ago", one.agent, age(i64::try_from(seconds).unwrap_or(i64::MAX)))
    };
    found.iter().enumerate().map(|(order, one)| candidate(&one.native_id, about(one), order)).collect()
}

/// `key=value` of the newest sessions.
fn labels(typed: &OsStr) -> Vec<CompletionCandidate> {
    let all = engine().map(|engine| engine.labels_like(&typed.to_string_lossy())).unwrap_or_default();
    all.into_iter().enumerate().map(|(order, label)| candidate(&label, "label".to_owned(), order)).collect()
}

fn describe(session: &Session) -> String {
    let seconds = now().as_second() - session.created.as_second();
    format!("{}, {} ago in {}", session.agent, age(seconds), tilde(&session.cwd))
}

fn agents(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let environment = Environment::of_process();
    let known = installed::known().map(|agent| {
        let about = match agent.package() {
            Some(_) if installed::in_path(&environment, agent.name()).is_none() => "not installed",
            Some(_) | None => "agent",
        };
        (agent.name().to_owned(), about)
    });
    let own = Config::load(&environment.lookup()).agents.into_keys().map(|name| (name, "from config.toml"));
    let all = known.chain(own).filter(|(name, _)| name.starts_with(&*typed));
    all.enumerate().map(|(order, (name, about))| candidate(&name, about.to_owned(), order)).collect()
}

fn topics(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let tree = Cli::command();
    let commands = tree
        .get_subcommands()
        .map(|one| (one.get_name().to_owned(), one.get_about().map(ToString::to_string).unwrap_or_default()));
    let topics = help::topics().map(|(name, about)| (name.to_owned(), about.to_owned()));
    let all = topics.chain(commands).filter(|(name, _)| name.starts_with(&*typed));
    all.enumerate().map(|(order, (name, about))| candidate(&name, about, order)).collect()
}

/// Names and folders come from outside: a control character in them must not reach the shell.
fn candidate(value: &str, about: String, order: usize) -> CompletionCandidate {
    let about = ostler_screen::printable(&about).into_owned();
    CompletionCandidate::new(ostler_screen::printable(value).into_owned())
        .help(Some(about.into()))
        .display_order(Some(order))
}

/// bash shows only what it would insert. When it is about to list several candidates (and insert none), the
/// descriptions are appended to them.
struct Bash;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        clap_complete::env::Bash.name()
    }

    fn is(&self, name: &str) -> bool {
        clap_complete::env::Bash.is(name)
    }

    fn write_registration(
        &self,
        variable: &str,
        name: &str,
        program: &str,
        completer: &str,
        to: &mut dyn io::Write,
    ) -> io::Result<()> {
        let mut script = Vec::new();
        clap_complete::env::Bash.write_registration(variable, name, program, completer, &mut script)?;
        // The word at the cursor as bash has it: the word that bash passes to the function is empty after "=".
        let asks = format!("{variable}=\"bash\"");
        let with_word = format!("{WORD}=\"${{COMP_WORDS[COMP_CWORD]}}\" \\\n        {asks}");
        to.write_all(String::from_utf8_lossy(&script).replace(&asks, &with_word).as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut clap::Command,
        arguments: Vec<OsString>,
        folder: Option<&Path>,
        to: &mut dyn io::Write,
    ) -> io::Result<()> {
        let set = |name: &str| variable(name).unwrap_or_default();
        let index = set("_CLAP_COMPLETE_INDEX").parse().unwrap_or(0);
        let Joined { words, index, before } = Joined::of(arguments, index, &set(WORD));
        let candidates = complete(command, words, index, folder)?;
        // "?": bash lists the candidates after a second Tab.
        let lists = candidates.len() > 1 && set("_CLAP_COMPLETE_COMP_TYPE") == "63";
        let words = candidates.iter().map(|one| {
            let value = one.get_value().to_string_lossy();
            let value = value.strip_prefix(&*before).unwrap_or(&value);
            match one.get_help().filter(|_| lists) {
                Some(about) => format!("{value}  ({about})"),
                None => quoted(value),
            }
        });
        write!(to, "{}", words.collect::<Vec<_>>().join(&set("_CLAP_IFS")))
    }
}

/// The variable with the word at the cursor.
const WORD: &str = "_OSTLER_COMPLETE_WORD";

/// The words as a person typed them: bash splits `task=4` into three words, and replaces only the last.
#[derive(Debug, PartialEq, Eq)]
struct Joined {
    words: Vec<OsString>,
    index: usize,
    /// What comes before the last part of the word at the cursor.
    before: String,
}

impl Joined {
    /// `word`: the word at the cursor as bash has it, which may be missing in the arguments.
    fn of(mut arguments: Vec<OsString>, at: usize, word: &str) -> Joined {
        let divides = |word: &OsStr| word == "=" || word == ":";
        if let Some(argument) = arguments.get_mut(at).filter(|_| divides(OsStr::new(word))) {
            *argument = word.into();
        }
        let mut joined = Joined { words: Vec::new(), index: at, before: String::new() };
        let mut goes_on = false;
        for (place, argument) in arguments.into_iter().enumerate() {
            let is_divider = divides(&argument);
            let mut before = String::new();
            match joined.words.last_mut().filter(|_| is_divider || goes_on) {
                Some(last) => {
                    before = last.to_string_lossy().into_owned();
                    last.push(&argument);
                    if is_divider {
                        before = last.to_string_lossy().into_owned();
                    }
                }
                None => joined.words.push(argument),
            }
            goes_on = is_divider;
            if place == at {
                (joined.index, joined.before) = (joined.words.len() - 1, before);
            }
        }
        joined
    }
}

/// A value as one word of bash: names may contain spaces.
fn quoted(value: &str) -> String {
    value.replace('\\', "\\\\").replace(' ', "\\ ")
}
