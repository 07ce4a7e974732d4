//! What the words and options of `run` ask for: which agent, which prompt, which mode.

use super::prompt::{read_input, read_prompt};
use super::{Watching, later};
use crate::args::Run;
use crate::context::Context;
use crate::dashes;
use crate::exit::{Failure, Result};
use crate::say::tell;
use ostler_core::record::Mode;
use ostler_engine::config::own_agents::Protocol;
use ostler_engine::launch::{COMMAND, LaunchRefusal, recorded};
use ostler_engine::suggest::nearest;
use ostler_engine::worktrees::Asked;
use ostler_engine::{Error, Launch, installed};
use std::collections::BTreeMap;
use std::path::Path;

/// The agent that the words name, and the remaining words.
struct Named<'a> {
    agent: &'a str,
    kind: Kind,
    words: &'a [String],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Agent,
    Command,
    /// A command of config.toml, with or without a terminal.
    OwnCommand(Mode),
    /// It is used through a protocol, and never has a terminal.
    Protocol,
}

/// The request, checked.
pub fn request(context: &Context, args: &mut Run) -> Result<Launch> {
    let worktree = worktree(context, args)?;
    let start = later::start(context, args)?;
    let args = &*args;
    let mut request = match args.words.first().and_then(|word| recorded::file_of(word)) {
        Some(file) => recording(args, file)?,
        None => named_request(args, &named(context, args)?)?,
    };
    request.keep = args.keep;
    request.model.clone_from(&args.model);
    context.engine.check_launch(&request)?;
    request.name.clone_from(&args.name);
    request.cwd.clone_from(&args.cwd);
    request.labels = labels(&args.labels)?;
    request.limits = args.limits.asked();
    request.worktree = worktree;
    request.exclusive = args.exclusive;
    request.start = start;
    Ok(request)
}

/// What `-w [NAME]` asks for. The word after it may not be a name: the name of an agent, or text with white space,
/// means the same as without the option, an agent or a prompt.
fn worktree(context: &Context, args: &mut Run) -> Result<Option<Asked>> {
    let Some(name) = args.worktree.take() else { return Ok(None) };
    let base = args.base.clone();
    let Some(word) = name else { return Ok(Some(Asked { name: None, base, from: None })) };
    let is_agent = installed::find(&word).is_some() || context.engine.config.own_agent(&word)?.is_some();
    let is_command = args.words.is_empty() && !args.arguments.is_empty();
    if word.contains(char::is_whitespace) && !is_command {
        args.words.push(word);
    } else if is_agent {
        args.words.insert(0, word);
    } else {
        return Ok(Some(Asked { name: Some(word), base, from: None }));
    }
    Ok(Some(Asked { name: None, base, from: None }))
}

fn named_request(args: &Run, named: &Named<'_>) -> Result<Launch> {
    let agent = named.agent.to_owned();
    let behind = if named.kind == Kind::Agent { prompt_behind_dashes(args, named.words) } else { None };
    let (prompt, arguments) = match behind {
        Some(prompt) => (Some(prompt.to_owned()), Vec::new()),
        None if matches!(named.kind, Kind::OwnCommand(_)) => {
            if !named.words.is_empty() || args.file.is_some() || args.prompt.is_some() {
                return Err(Error::from(LaunchRefusal::TakesNoPrompt { agent }).into());
            }
            (None, args.arguments.clone())
        }
        None => (prompt(args, named.words)?, args.arguments.clone()),
    };
    let opens = || prompt.is_none() && !args.keep && Watching::new(args.detach, args.output).may_open();
    let mode = match named.kind {
        _ if args.terminal => Mode::Terminal,
        Kind::Agent if opens() => Mode::Terminal,
        Kind::OwnCommand(mode) => mode,
        Kind::Agent | Kind::Command | Kind::Protocol => Mode::Headless,
    };
    if named.kind != Kind::Protocol {
        check_terminal(args, mode)?;
        check_output(args, mode, named.kind != Kind::Agent)?;
    }
    Ok(Launch { agent, mode: Some(mode), prompt, arguments, ..Launch::default() })
}

/// A recording contains everything that a person would say.
fn recording(args: &Run, file: &str) -> Result<Launch> {
    if args.words.len() > 1 || args.file.is_some() || args.model.is_some() || args.terminal {
        return Err(Failure::usage(
            "a recording contains its own messages; use only: ostler run replay:FILE [-- --speed 10]",
        ));
    }
    let recorded = recorded::read(Path::new(file), &args.arguments)?;
    let mut messages = recorded.messages.into_iter();
    let prompt = messages.next();
    if prompt.is_none() && !args.keep {
        return Err(Failure::usage(format!("{file} is not a recording: it contains no messages")));
    }
    if recorded.interrupted {
        tell!("ostler: in this recording a turn is interrupted; do that now: Ctrl-C, or ostler interrupt @last");
    }
    let (agent, arguments) = (recorded.agent, recorded.arguments);
    Ok(Launch { agent, prompt, further: messages.collect(), arguments, ..Launch::default() })
}

/// The first word is an agent only if it is the name of one; with no word before `--` it is a command.
fn named<'a>(context: &'a Context, args: &'a Run) -> Result<Named<'a>> {
    if let Some(own) = own_agent(context, args)? {
        return Ok(own);
    }
    let known = args.words.first().and_then(|word| installed::find(word)).filter(|agent| agent.name() != COMMAND);
    match (known, args.words.as_slice()) {
        (Some(agent), [_, words @ ..]) => {
            let kind = if agent.name() == "acp" { Kind::Protocol } else { Kind::Agent };
            Ok(Named { agent: agent.name(), kind, words })
        }
        (_, []) if !args.arguments.is_empty() => Ok(Named { agent: COMMAND, kind: Kind::Command, words: &[] }),
        (_, []) if args.file.is_none() && args.prompt.is_none() && !args.terminal && !args.keep => Err(Failure::usage(
            "an agent or a command is missing; try ostler run demo \"fix the failing test\", or ostler run -- COMMAND",
        )),
        (_, words @ [first, _, ..]) => {
            let hint = match nearest_agent(context, first) {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!("put a prompt in quotes; for a command: ostler run -- {}", words.join(" ")),
            };
            Err(Failure::usage(format!("{first:?} is not an agent; {hint}")))
        }
        (_, words) => {
            // Without an agent for prompts a single word is more likely a misspelt agent than a prompt.
            let agent = context.engine.default_agent().map_err(|error| {
                let meant = words.first().and_then(|word| Some((word, nearest_agent(context, word)?)));
                meant.map_or_else(
                    || error.into(),
                    |(word, meant)| Failure::usage(format!("{word:?} is not an agent; did you mean {meant}?")),
                )
            })?;
            confirm_prompt(context, args, words, agent.name())?;
            Ok(Named { agent: agent.name(), kind: Kind::Agent, words })
        }
    }
}

/// The agent of config.toml that is meant: the first word, or the default agent, which is for prompts.
fn own_agent<'a>(context: &'a Context, args: &'a Run) -> Result<Option<Named<'a>>> {
    let config = &context.engine.config;
    if let [first, words @ ..] = args.words.as_slice()
        && let Some((agent, own)) = config.own_agent(first)?
    {
        let kind = match own.protocol {
            Protocol::None => Kind::OwnCommand(own.mode),
            Protocol::Acp => Kind::Protocol,
        };
        return Ok(Some(Named { agent, kind, words }));
    }
    let prompts = match args.words.as_slice() {
        [] => args.file.is_some() || args.prompt.is_some() || (args.keep && args.arguments.is_empty()),
        [word] => installed::find(word).is_none(),
        [..] => false,
    };
    let (true, Some(name)) = (prompts, &config.default_agent) else {
        return Ok(None);
    };
    let own = config.own_agent(name)?.filter(|(_, own)| own.protocol == Protocol::Acp);
    if own.is_some() {
        confirm_prompt(context, args, &args.words, name)?;
    }
    Ok(own.map(|(agent, _)| Named { agent, kind: Kind::Protocol, words: args.words.as_slice() }))
}

/// The agent that a word was probably meant to be.
pub fn nearest_agent<'a>(context: &'a Context, word: &str) -> Option<&'a str> {
    let own = context.engine.config.agents.keys().map(String::as_str);
    nearest(word, installed::known().map(|agent| agent.name()).chain(own))
}

/// A single word that is nearly the name of an agent is not sent to the default agent as a prompt, which costs money,
/// unless a person confirms it.
fn confirm_prompt(context: &Context, args: &Run, words: &[String], agent: &str) -> Result<()> {
    let Some((word, meant)) = words.first().and_then(|word| Some((word, nearest_agent(context, word)?))) else {
        return Ok(());
    };
    let refused = Failure::usage(format!(
        "{word:?} is not an agent; did you mean {meant}? To send it to {agent} as a prompt: ostler run -p {word}"
    ));
    if !Watching::new(args.detach, args.output).attended {
        return Err(refused);
    }
    crate::follow::err(
        format!("ostler: {word:?} is not an agent; did you mean {meant}? Send it to {agent} as a prompt? [y/N] ")
            .as_bytes(),
    )?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    if matches!(line.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(refused) }
}

/// A prompt after `--`, where arguments for the agent are: the only word there, with white space in it, when there is
/// no other prompt. An argument is a flag or one word; `--flag=some text` stays an argument.
fn prompt_behind_dashes<'a>(args: &'a Run, words: &[String]) -> Option<&'a str> {
    match args.arguments.as_slice() {
        [only] if words.is_empty() && args.prompt.is_none() && args.file.is_none() => {
            (only.contains(char::is_whitespace) && !dashes::is_flag(only)).then_some(only.as_str())
        }
        _ => None,
    }
}

/// The prompt: one word, `-p TEXT`, a file, or what is piped in.
pub fn prompt(args: &Run, words: &[String]) -> Result<Option<String>> {
    Ok(match (words, &args.prompt, &args.file) {
        ([_, more, ..], _, _) => {
            return Err(Failure::usage(format!("{more:?} is one word too many; put the prompt in quotes")));
        }
        ([_], Some(_), _) => return Err(Failure::usage("there is a prompt and -p TEXT; give only one of them")),
        ([_], None, Some(_)) => return Err(Failure::usage("there is a prompt and -f FILE; give only one of them")),
        ([], Some(_), Some(_)) => return Err(Failure::usage("there is -p TEXT and -f FILE; give only one of them")),
        ([], Some(prompt), None) => Some(prompt.clone()),
        ([], None, Some(file)) => Some(read_prompt(file)?),
        ([dash], None, None) if dash == "-" => Some(read_input()?),
        ([prompt], None, None) => Some(prompt.clone()),
        ([], None, None) => None,
    })
}

/// `--output` is only for agents: only an agent's messages can be told apart from its other output.
fn check_output(args: &Run, mode: Mode, is_command: bool) -> Result<()> {
    match args.output {
        Some(_) if is_command => Err(Failure::usage("--output is only for agents; remove it")),
        Some(_) if mode == Mode::Terminal => {
            Err(Failure::usage("--output is for sessions without a terminal; remove -t or --output"))
        }
        Some(_) | None => Ok(()),
    }
}

fn check_terminal(args: &Run, mode: Mode) -> Result<()> {
    if mode == Mode::Terminal && !args.detach && !crate::commands::attach::is_possible() {
        return Err(Failure::usage("run -t needs a terminal to show it on; add -d to start it in the background"));
    }
    Ok(())
}

pub fn labels(given: &[String]) -> Result<BTreeMap<String, String>> {
    let parse = |label: &String| match label.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) | None => Err(Failure::usage(format!("the label {label:?} is not of the form KEY=VALUE"))),
    };
    given.iter().map(parse).collect()
}
