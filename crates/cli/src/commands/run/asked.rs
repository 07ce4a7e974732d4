//! What was asked for, checked: which agent, which prompt, which session.

use super::default_agent::default_agent;
use crate::args::Run;
use crate::context::{Context, variable};
use crate::exit::{Failure, Result};
use crate::own_agents::OwnAgent;
use jiff::Timestamp;
use ostler_core::id::{SessionId, is_name};
use ostler_core::record::{Mode, Session};
use ostler_core::{MESSAGE_LIMIT, SCHEMA};
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
    pub arguments: Vec<String>,
}

/// The first word is an agent only if it names one; nothing before `--` means a command.
pub fn check(context: &Context, args: &Run) -> Result<Asked> {
    let own = args.words.first().and_then(|word| context.config.agents.get_key_value(word));
    if let Some((name, own)) = own {
        return check_own(args, name, own);
    }
    let command = ostler_agents::find("command").ok_or_else(|| Failure::ours("the command agent is missing"))?;
    let given = |words: &[String]| -> Result<Option<String>> {
        match words {
            [] => Ok(None),
            [one] => Ok(Some(one.clone())),
            [..] => Err(Failure::usage(format!("{:?} is one word too many; put the prompt in quotes", words[1]))),
        }
    };
    let named = args.words.first().and_then(|word| ostler_agents::find(word)).filter(|agent| agent.name() != "command");
    let (agent, prompt) = match (named, args.words.as_slice()) {
        (Some(agent), [_, rest @ ..]) => (agent, given(rest)?),
        (_, []) if !args.arguments.is_empty() => (command, None),
        (_, []) if args.file.is_none() && !args.terminal && !args.keep => {
            return Err(Failure::usage("run what? ostler run demo \"fix the failing test\", or ostler run -- COMMAND"));
        }
        (_, words @ [first, _, ..]) => {
            return Err(Failure::usage(format!(
                "{first:?} is no agent; quote a prompt, or keep a command with: ostler run -- {}",
                words.join(" ")
            )));
        }
        (_, words) => (default_agent(&context.config)?, given(words)?),
    };
    let prompt = match (prompt, &args.file) {
        (Some(_), Some(_)) => return Err(Failure::usage("a prompt and -f FILE; give one of them")),
        (None, Some(file)) => Some(read_prompt(file)?),
        (Some(dash), None) if dash == "-" => Some(text(read_all(&mut std::io::stdin().lock(), "standard input")?)?),
        (prompt, None) => prompt,
    };
    if let Some(prompt) = &prompt {
        if prompt.trim().is_empty() {
            return Err(Failure::usage("the prompt is empty; say what to do"));
        }
        if prompt.len() > MESSAGE_LIMIT {
            return Err(too_long());
        }
        if args.terminal {
            return Err(Failure::usage("a terminal session takes no prompt; attach and type it, or use ostler send"));
        }
    }
    let mode = if args.terminal { Mode::Terminal } else { Mode::Headless };
    check_terminal(args, mode)?;
    let is_command = agent.name() == "command";
    if is_command {
        for (given, flag) in [(args.keep, "--keep"), (args.model.is_some(), "--model"), (args.file.is_some(), "-f")] {
            if given {
                return Err(Failure::usage(format!("{flag} is for agents; a command takes neither prompt nor model")));
            }
        }
        if args.arguments.first().is_some_and(String::is_empty) {
            return Err(Failure::usage("the name of the command is empty; ostler run -- COMMAND"));
        }
    }
    if !is_command && prompt.is_none() && !args.terminal && !args.keep {
        return Err(Failure::usage(format!(
            "{} needs a prompt, -t or --keep; for example: ostler run {} \"fix the failing test\"",
            agent.name(),
            agent.name()
        )));
    }
    // Left to the agent it would be resumed behind our back, and nobody could be kept from it.
    let (conversation, arguments) = match agent.named_conversation(&args.arguments) {
        Some((conversation, rest)) => (Some(conversation), rest),
        None => (None, args.arguments.clone()),
    };
    Ok(Asked { agent: agent.name().to_owned(), mode, prompt, conversation, arguments })
}

/// An agent of a person's own is a command with a name; what stands behind `--` is added to it.
fn check_own(args: &Run, name: &str, own: &OwnAgent) -> Result<Asked> {
    if args.words.len() > 1 || args.keep || args.model.is_some() || args.file.is_some() {
        return Err(Failure::usage(format!(
            "{name} is kept as a command and takes no prompt; its own arguments go behind --: ostler run {name} -- …"
        )));
    }
    let mode = if args.terminal { Mode::Terminal } else { own.mode };
    check_terminal(args, mode)?;
    let arguments = own.command.iter().chain(&args.arguments).cloned().collect();
    Ok(Asked { agent: name.to_owned(), mode, prompt: None, conversation: None, arguments })
}

fn check_terminal(args: &Run, mode: Mode) -> Result<()> {
    if mode == Mode::Terminal && !args.detach && !crate::commands::attach::is_possible() {
        return Err(Failure::usage("run -t needs a terminal to show it on; add -d to start it without one"));
    }
    Ok(())
}

fn too_long() -> Failure {
    Failure::usage("the prompt is longer than 16 MiB; put it into a file and tell the agent where it is")
}

fn read_prompt(path: &Path) -> Result<String> {
    let mut file = std::fs::File::open(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
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
        Failure::usage(format!("the text is not UTF-8 (byte {}); convert it first", error.utf8_error().valid_up_to()))
    })
}

/// Whether a session may be called this. Asked while nobody else may give names.
pub fn check_name(context: &Context, name: Option<&str>) -> Result<()> {
    if let Some(name) = name {
        if !is_name(name) {
            let short: String = name.chars().take(32).collect();
            return Err(Failure::usage(format!(
                "{short:?} is no name; use up to 64 letters, digits, dots, dashes and underscores"
            )));
        }
        if SessionId::parse(name).is_some() {
            return Err(Failure::usage(format!("{name:?} looks like a session id; choose another name")));
        }
        if let Some(id) = context.home.name_is_taken(name)? {
            return Err(Failure::usage(format!(
                "session {id} is already called {name:?}; stop it or choose another name"
            )));
        }
    }
    Ok(())
}

/// A message as it was typed, or from standard input.
pub fn message_of(typed: Option<&str>) -> Result<Option<String>> {
    let message = match typed {
        Some("-") => Some(text(read_all(&mut std::io::stdin().lock(), "standard input")?)?),
        other => other.map(str::to_owned),
    };
    if message.as_deref().is_some_and(|message| message.trim().is_empty()) {
        return Err(Failure::usage("the message is empty; say something"));
    }
    Ok(message)
}

pub fn describe(context: &Context, args: Run, asked: &Asked, attended: bool) -> Result<Session> {
    check_name(context, args.name.as_deref())?;
    let cwd = match args.cwd {
        Some(folder) => std::fs::canonicalize(&folder)
            .map_err(|error| Failure::usage(format!("{}: {error}; --cwd needs a folder", folder.display())))?,
        None => std::env::current_dir().map_err(|error| Failure::ours(format!("the current folder: {error}")))?,
    };
    if !cwd.is_dir() {
        return Err(Failure::usage(format!("{} is no folder; --cwd needs one", cwd.display())));
    }
    let cwd = cwd
        .into_os_string()
        .into_string()
        .map_err(|path| Failure::usage(format!("{} is not UTF-8; work in a folder whose name is", path.display())))?;
    let labels = args
        .labels
        .iter()
        .map(|label| match label.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
            Some(_) | None => Err(Failure::usage(format!("label {label:?} is not of the form key=value"))),
        })
        .collect::<Result<BTreeMap<_, _>>>()?;
    Ok(Session {
        schema: SCHEMA,
        id: SessionId::from_random(uuid::Uuid::new_v4().as_u128() as u64),
        name: args.name,
        agent: asked.agent.clone(),
        cwd,
        mode: asked.mode,
        keep: args.keep,
        labels,
        parent: variable("OSTLER_SESSION").and_then(|id| SessionId::parse(&id)),
        fork: None,
        model: args.model,
        arguments: asked.arguments.clone(),
        attended,
        created: Timestamp::now(),
    })
}
