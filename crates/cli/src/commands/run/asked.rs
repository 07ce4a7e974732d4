//! What was asked for, checked: which agent, which prompt, which session.

use super::Watching;
use super::default_agent::default_agent;
use crate::args::{Message, Run};
use crate::context::{Context, variable};
use crate::dashes;
use crate::exit::{Failure, Result};
use ostler_core::id::SessionId;
use ostler_core::record::{Mode, Session, beginning_of};
use ostler_core::{MESSAGE_LIMIT, SCHEMA};
use ostler_engine::config::own_agents::{OwnAgent, Protocol};
use ostler_engine::installed;
use ostler_engine::suggest::nearest;
use ostler_sys::clock;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// What was asked for, checked.
pub struct Asked {
    pub agent: String,
    pub mode: Mode,
    pub prompt: Option<String>,
    /// The conversation to go on with, which the agent's own arguments have named.
    pub conversation: Option<String>,
    /// What is told after it, one by one.
    pub further: Vec<String>,
    pub arguments: Vec<String>,
}

/// The first word is an agent only if it names one; nothing before `--` means a command.
pub fn check(context: &Context, args: &Run) -> Result<Asked> {
    if let Some((name, own, words)) = own_agent(context, args)? {
        return match own.protocol {
            Protocol::None => check_own(args, name, own),
            Protocol::Acp => check_acp(args, name, words, own.command.iter().chain(&args.arguments).cloned().collect()),
        };
    }
    if let Some(file) = args.words.first().and_then(|word| word.strip_prefix(ostler_agents::replay::PREFIX)) {
        return super::recorded::check(args, file);
    }
    let command = ostler_agents::find("command").ok_or_else(|| Failure::ours("the command agent is missing"))?;
    let named = args.words.first().and_then(|word| ostler_agents::find(word)).filter(|agent| agent.name() != "command");
    let (agent, words) = match (named, args.words.as_slice()) {
        (Some(agent), [_, rest @ ..]) if agent.name() == "acp" => {
            return check_acp(args, agent.name(), rest, args.arguments.clone());
        }
        (Some(agent), [_, rest @ ..]) => (agent, rest),
        (_, []) if !args.arguments.is_empty() => (command, &[][..]),
        (_, []) if args.file.is_none() && args.prompt.is_none() && !args.terminal && !args.keep => {
            return Err(Failure::usage(
                "an agent or a command is missing; try ostler run demo \"fix the failing test\", or ostler run -- COMMAND",
            ));
        }
        (_, words @ [first, _, ..]) => {
            let hint = match nearest_agent(context, first) {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!("put a prompt in quotes; for a command: ostler run -- {}", words.join(" ")),
            };
            return Err(Failure::usage(format!("{first:?} is not an agent; {hint}")));
        }
        (_, words) => {
            // Without an agent for prompts a single word is more likely a misspelt agent than a prompt.
            let agent = default_agent(&context.engine.config).map_err(|failure| {
                let meant = words.first().and_then(|word| Some((word, nearest_agent(context, word)?)));
                meant.map_or(failure, |(word, meant)| {
                    Failure::usage(format!("{word:?} is not an agent; did you mean {meant}?"))
                })
            })?;
            confirm_prompt(context, args, words, agent.name())?;
            (agent, words)
        }
    };
    let behind = if agent.name() == "command" { None } else { prompt_behind_dashes(args, words) };
    let (prompt, arguments) = match behind {
        Some(prompt) => (Some(prompt.to_owned()), &[][..]),
        None => (prompt(args, words)?, args.arguments.as_slice()),
    };
    let is_command = agent.name() == "command";
    let opens = !is_command && prompt.is_none() && !args.keep && Watching::new(args.detach, args.output).may_open();
    let mode = if args.terminal || opens { Mode::Terminal } else { Mode::Headless };
    check_terminal(args, mode)?;
    check_output(args, mode, is_command)?;
    if is_command {
        for (given, flag) in [(args.keep, "--keep"), (args.model.is_some(), "--model"), (args.file.is_some(), "-f")] {
            if given {
                return Err(Failure::usage(format!("{flag} is only for agents; remove it")));
            }
        }
        if args.arguments.first().is_some_and(String::is_empty) {
            return Err(Failure::usage("the command is empty; name one: ostler run -- COMMAND"));
        }
    }
    if !is_command && prompt.is_none() && mode == Mode::Headless && !args.keep {
        return Err(Failure::usage(format!(
            "{} needs a prompt, -t or --keep; for example: ostler run {} \"fix the failing test\"",
            agent.name(),
            agent.name()
        )));
    }
    if let Some(words) = agent.conflicts(arguments) {
        return Err(Failure::usage(words));
    }
    // Left to the agent it would be resumed behind our back, and nobody could be kept from it.
    let (conversation, arguments) = match agent.named_conversation(arguments) {
        Some((conversation, rest)) => (Some(conversation), rest),
        None => (None, arguments.to_vec()),
    };
    Ok(Asked { agent: agent.name().to_owned(), mode, prompt, further: Vec::new(), conversation, arguments })
}

/// The agent of a person's own that is meant, and the words that are left for it: named first, or the default one, which
/// is for prompts.
fn own_agent<'a>(context: &'a Context, args: &'a Run) -> Result<Option<(&'a str, &'a OwnAgent, &'a [String])>> {
    if let [first, rest @ ..] = args.words.as_slice()
        && let Some((name, own)) = context.engine.config.own_agent(first)?
    {
        return Ok(Some((name, own, rest)));
    }
    let prompts = match args.words.as_slice() {
        [] => args.file.is_some() || args.prompt.is_some() || (args.keep && args.arguments.is_empty()),
        [word] => ostler_agents::find(word).is_none(),
        [..] => false,
    };
    let (true, Some(name)) = (prompts, &context.engine.config.default_agent) else {
        return Ok(None);
    };
    let own = context.engine.config.own_agent(name)?.filter(|(_, own)| own.protocol == Protocol::Acp);
    if own.is_some() {
        confirm_prompt(context, args, &args.words, name)?;
    }
    Ok(own.map(|(name, own)| (name, own, args.words.as_slice())))
}

/// Whoever speaks the protocol takes prompts, and is a command with arguments of its own.
fn check_acp(args: &Run, name: &str, words: &[String], command: Vec<String>) -> Result<Asked> {
    let wrong = |words: String| Err(Failure::usage(words));
    if command.first().is_none_or(String::is_empty) {
        return wrong(format!(
            "{name} needs a program; for example: ostler run {name} \"fix the failing test\" -- {}",
            ostler_agents::acp::EXAMPLE
        ));
    }
    if args.terminal {
        return wrong(format!("{name} uses a protocol and has no terminal; remove -t, and open it with ostler attach"));
    }
    if args.model.is_some() {
        return wrong(format!("{name} has no --model; give the program its own option after --"));
    }
    let prompt = prompt(args, words)?;
    if prompt.is_none() && !args.keep {
        return wrong(format!(
            "{name} needs a prompt or --keep; for example: ostler run {name} \"fix the failing test\""
        ));
    }
    Ok(Asked {
        agent: name.to_owned(),
        mode: Mode::Headless,
        prompt,
        further: Vec::new(),
        conversation: None,
        arguments: command,
    })
}

/// The agent that a word was probably meant to be.
pub fn nearest_agent<'a>(context: &'a Context, word: &str) -> Option<&'a str> {
    let own = context.engine.config.agents.keys().map(String::as_str);
    nearest(word, installed::known().map(|agent| agent.name()).chain(own))
}

/// A single word that is nearly the name of an agent is not sent to the default agent as a prompt, which costs money,
/// unless a person says so.
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

/// A prompt behind `--`, where arguments for the agent are: the only word there, with white space in it, when nothing else
/// is a prompt. An argument is a flag or one word; `--flag=some text` stays an argument.
fn prompt_behind_dashes<'a>(args: &'a Run, words: &[String]) -> Option<&'a str> {
    match args.arguments.as_slice() {
        [only] if words.is_empty() && args.prompt.is_none() && args.file.is_none() => {
            (only.contains(char::is_whitespace) && !dashes::is_flag(only)).then_some(only.as_str())
        }
        _ => None,
    }
}

/// What the agent is to be told: one word, `-p TEXT`, a file, or what is piped in.
fn prompt(args: &Run, words: &[String]) -> Result<Option<String>> {
    let prompt = match (words, &args.prompt, &args.file) {
        ([_, more, ..], _, _) => {
            return Err(Failure::usage(format!("{more:?} is one word too many; put the prompt in quotes")));
        }
        ([_], Some(_), _) => return Err(Failure::usage("there is a prompt and -p TEXT; give only one of them")),
        ([_], None, Some(_)) => return Err(Failure::usage("there is a prompt and -f FILE; give only one of them")),
        ([], Some(_), Some(_)) => return Err(Failure::usage("there is -p TEXT and -f FILE; give only one of them")),
        ([], Some(prompt), None) => Some(prompt.clone()),
        ([], None, Some(file)) => Some(read_prompt(file)?),
        ([dash], None, None) if dash == "-" => Some(text(read_all(&mut std::io::stdin().lock(), "standard input")?)?),
        ([prompt], None, None) => Some(prompt.clone()),
        ([], None, None) => None,
    };
    if prompt.as_ref().is_some_and(|prompt| prompt.trim().is_empty()) {
        return Err(Failure::usage("the prompt is empty; say what to do"));
    }
    if prompt.as_ref().is_some_and(|prompt| prompt.len() > MESSAGE_LIMIT) {
        return Err(too_long());
    }
    Ok(prompt)
}

/// An agent of a person's own is a command with a name; what stands behind `--` is added to it.
fn check_own(args: &Run, name: &str, own: &OwnAgent) -> Result<Asked> {
    if args.words.len() > 1 || args.keep || args.model.is_some() || args.file.is_some() {
        return Err(Failure::usage(format!(
            "{name} takes no prompt; its own arguments go after --: ostler run {name} -- …"
        )));
    }
    let mode = if args.terminal { Mode::Terminal } else { own.mode };
    check_terminal(args, mode)?;
    check_output(args, mode, true)?;
    let arguments = own.command.iter().chain(&args.arguments).cloned().collect();
    Ok(Asked { agent: name.to_owned(), mode, prompt: None, further: Vec::new(), conversation: None, arguments })
}

/// Only what an agent says can be told apart from everything else.
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

pub fn too_long() -> Failure {
    Failure::usage("the prompt is longer than 16 MiB; save it in a file and tell the agent to read that")
}

fn read_prompt(path: &Path) -> Result<String> {
    let wrong = |error| Failure::usage(format!("cannot read the prompt from {}: {error}", path.display()));
    let mut file = std::fs::File::open(path).map_err(wrong)?;
    text(read_all(&mut file, &path.display().to_string())?)
}

/// Everything up to just past the limit.
pub fn read_all(from: &mut impl Read, name: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MESSAGE_LIMIT as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    if bytes.len() > MESSAGE_LIMIT {
        return Err(too_long());
    }
    Ok(bytes)
}

pub fn text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        Failure::usage(format!(
            "the text is not valid UTF-8 (byte {}); convert it first",
            error.utf8_error().valid_up_to()
        ))
    })
}

/// A message as it was typed, or from standard input.
pub fn message_of(typed: &Message) -> Result<Option<String>> {
    let message = match (typed.word.as_deref(), &typed.option) {
        (Some("-"), _) => Some(text(read_all(&mut std::io::stdin().lock(), "standard input")?)?),
        (word, option) => word.map(str::to_owned).or_else(|| option.clone()),
    };
    if message.as_ref().is_some_and(|message| message.len() > MESSAGE_LIMIT) {
        return Err(Failure::usage(
            "the message is longer than 16 MiB; save it in a file and tell the agent to read that",
        ));
    }
    if message.as_deref().is_some_and(|message| message.trim().is_empty()) {
        return Err(Failure::usage("the message is empty; write one"));
    }
    Ok(message)
}

pub fn describe(context: &Context, args: Run, asked: &Asked, attended: bool) -> Result<Session> {
    if let Some(name) = &args.name {
        context.engine.check_name(name)?;
    }
    let cwd = match args.cwd {
        Some(folder) => std::fs::canonicalize(&folder)
            .map_err(|error| Failure::usage(format!("cannot use the folder {}: {error}", folder.display())))?,
        None => {
            std::env::current_dir().map_err(|error| Failure::ours(format!("cannot use the current folder: {error}")))?
        }
    };
    if !cwd.is_dir() {
        return Err(Failure::usage(format!("{} is not a folder; --cwd needs one", cwd.display())));
    }
    let cwd = cwd
        .into_os_string()
        .into_string()
        .map_err(|path| Failure::usage(format!("{} is not valid UTF-8; use a folder whose name is", path.display())))?;
    let labels = args
        .labels
        .iter()
        .map(|label| match label.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
            Some(_) | None => Err(Failure::usage(format!("the label {label:?} is not of the form KEY=VALUE"))),
        })
        .collect::<Result<BTreeMap<_, _>>>()?;
    let parent = variable("OSTLER_SESSION").and_then(|id| SessionId::parse(&id));
    Ok(Session {
        schema: SCHEMA,
        id: SessionId::from_random(uuid::Uuid::new_v4().as_u128() as u64),
        name: args.name,
        agent: asked.agent.clone(),
        cwd,
        mode: asked.mode,
        keep: args.keep,
        labels,
        parent,
        fork: None,
        adopted: None,
        model: args.model,
        arguments: asked.arguments.clone(),
        prompt: asked.prompt.as_deref().map(beginning_of),
        attended,
        limits: ostler_engine::limits::for_new(&context.engine, &args.limits.asked(), parent)?,
        created: clock::now(),
    })
}
