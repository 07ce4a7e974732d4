//! `ostler run`: start a session and follow it to its end.

use crate::args::Run;
use crate::client::{Granted, make_wish};
use crate::context::{Context, variable, wish};
use crate::exit::{Code, Failure, Result};
use crate::follow::{Left, Printer, Show, Talking, follow};
use crate::ui::conversation::Talk;
use crate::ui::style::Style;
use crate::ui::time::duration;
use jiff::Timestamp;
use ostler_agents::{Agent, Launching};
use ostler_core::event::StopHow;
use ostler_core::id::{SessionId, is_name};
use ostler_core::outcome::{Kind, Outcome, Saved};
use ostler_core::record::{Mode, Session, Want};
use ostler_core::view::View;
use ostler_core::{MESSAGE_LIMIT, SCHEMA};
use ostler_keeper::launch::{Launch, launch};
use ostler_store::RunRecord;
use ostler_store::home::Place;
use ostler_sys::signals::Signals;
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::Signal;
use serde_json::Map;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::io::{IsTerminal, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// What an agent leaves in the environment to mark that it runs, which would make another one refuse to.
const NESTING_MARKS: [&str; 6] = [
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PROJECT_DIR",
];

/// What was asked for, checked.
struct Asked {
    agent: &'static dyn Agent,
    prompt: Option<String>,
    arguments: Vec<String>,
}

pub fn run(context: &Context, args: Run) -> Result<Code> {
    let asked = check(context, &args)?;
    let (detach, mode) = (args.detach, if args.terminal { Mode::Terminal } else { Mode::Headless });
    let attended = !detach && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let session = describe(context, args, &asked, mode, attended)?;
    let place = start(context, &session, asked)?;
    if detach {
        println!("{}", place.id);
        return Ok(Code::Succeeded);
    }
    if mode == Mode::Terminal {
        return super::attach::terminal(context, &place, false);
    }
    follow_to_the_end(&place, attended)
}

/// The first word is an agent only if it names one; nothing before `--` means a command.
fn check(context: &Context, args: &Run) -> Result<Asked> {
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
        (_, words) => (default_agent(context)?, given(words)?),
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
    if args.terminal && !args.detach && !super::attach::is_possible() {
        return Err(Failure::usage("run -t needs a terminal to show it on; add -d to start it without one"));
    }
    let is_command = agent.name() == "command";
    if is_command && args.keep {
        return Err(Failure::usage("--keep is for agents; a command is kept until it ends"));
    }
    if !is_command && prompt.is_none() && !args.terminal && !args.keep {
        return Err(Failure::usage(format!(
            "{} needs a prompt, -t or --keep; for example: ostler run {} \"fix the failing test\"",
            agent.name(),
            agent.name()
        )));
    }
    Ok(Asked { agent, prompt, arguments: args.arguments.clone() })
}

fn default_agent(context: &Context) -> Result<&'static dyn Agent> {
    match &context.config.default_agent {
        Some(name) => ostler_agents::find(name).filter(|agent| agent.name() != "command").ok_or_else(|| {
            Failure::usage(format!(
                "default_agent {name:?} in config.toml is no agent; ostler run demo \"…\" always works"
            ))
        }),
        None => Err(Failure::usage(
            "no agent is named and none is set in config.toml; try ostler run demo \"fix the failing test\"",
        )),
    }
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

fn describe(context: &Context, args: Run, asked: &Asked, mode: Mode, attended: bool) -> Result<Session> {
    if let Some(name) = &args.name {
        if !is_name(name) {
            return Err(Failure::usage(format!("{name:?} is no name; use letters, digits, dots, dashes, underscores")));
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
        agent: asked.agent.name().to_owned(),
        cwd,
        mode,
        keep: args.keep,
        labels,
        parent: variable("OSTLER_SESSION").and_then(|id| SessionId::parse(&id)),
        model: args.model,
        arguments: asked.arguments.clone(),
        attended,
        created: Timestamp::now(),
    })
}

fn start(context: &Context, session: &Session, asked: Asked) -> Result<Place> {
    let Prepared { record, environment } = prepare(context, session, 1, &uuid::Uuid::new_v4().to_string(), false)?;
    let prompt = asked.prompt.map(|text| wish(1, Want::Message { text, now: false }));
    let piped = if session.agent == "command" && session.mode == Mode::Headless { piped_input()? } else { None };
    let launched = Launch { session, run: &record, prompt: prompt.as_ref(), piped, environment: &environment };
    let place = launch(&context.home, launched)?;
    // A refusal speaks for itself, and before the first session there is no folder to ask.
    warn_when_low(context);
    Ok(place)
}

/// What a run is to be, before it has a process.
pub struct Prepared {
    pub record: RunRecord,
    pub environment: Vec<CString>,
}

/// Works out how an agent is started.
pub fn prepare(context: &Context, session: &Session, run: u32, native_id: &str, resume: bool) -> Result<Prepared> {
    let agent = ostler_agents::find(&session.agent)
        .ok_or_else(|| Failure::ours(format!("this ostler knows no agent {:?}", session.agent)))?;
    let own_binary = std::env::current_exe()?.to_string_lossy().into_owned();
    let mut how = agent.launch(&Launching {
        session,
        own_binary: &own_binary,
        native_id,
        resume,
        linger_ms: context.config.linger_ms(),
        variable: &variable,
    });
    if let Some(program) = how.argv.first_mut() {
        *program = crate::program::resolve(agent, program);
    }
    let known = if resume { Some(native_id) } else { how.native_id.as_deref() };
    let transcript = known.and_then(|id| ostler_store::proof::find_transcript(agent, id, &session.cwd));
    let size = ostler_sys::pty::size(std::io::stdout()).or_else(|| ostler_sys::pty::size(std::io::stdin()));
    let terminal = session.mode == Mode::Terminal;
    let record = RunRecord {
        run,
        argv: how.argv,
        plan: how.plan,
        size: terminal.then(|| size.unwrap_or((24, 80))),
        native_id: how.native_id,
        transcript,
        cgroup: None,
        output_limit: terminal.then_some(context.config.terminal_output_limit),
        started: None,
        started_ms: 0,
        agent: None,
        more: Map::new(),
    };
    Ok(Prepared { record, environment: environment(session.id, &how.variables) })
}

/// What was piped into us goes to the command itself: it reads on after we have left.
fn piped_input() -> Result<Option<OwnedFd>> {
    use std::os::unix::fs::FileTypeExt;
    let input = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3).map_err(std::io::Error::from);
    let Ok(input) = input else {
        // Started without a standard input.
        return Ok(None);
    };
    let file = std::fs::File::from(input);
    let kind = file.metadata()?.file_type();
    Ok((!kind.is_char_device()).then(|| file.into()))
}

/// Ours, without the marks of an agent that we may have been started by, and with the session's id.
fn environment(id: SessionId, more: &[(String, String)]) -> Vec<CString> {
    let replaced = |name: &str| name == "OSTLER_SESSION" || more.iter().any(|(set, _)| set == name);
    let kept = std::env::vars_os()
        .filter(|(name, _)| name.to_str().is_none_or(|name| !NESTING_MARKS.contains(&name) && !replaced(name)))
        .map(|(name, value)| [name.into_vec(), value.into_vec()].join(&b'='));
    let set = more.iter().map(|(name, value)| format!("{name}={value}").into_bytes());
    kept.chain(set)
        .chain([format!("OSTLER_SESSION={id}").into_bytes()])
        .filter_map(|entry| CString::new(entry).ok())
        .collect()
}

fn warn_when_low(context: &Context) {
    const LOW: u64 = 64 << 20;
    let free = ostler_sys::dir::Dir::open(context.home.root()).and_then(ostler_sys::dir::free_space);
    if let Ok(free) = free
        && free < LOW
    {
        eprintln!("ostler: only {} left on the disk of {}", crate::ui::time::size(free), context.home.root().display());
    }
}

/// Prints what comes. Ctrl-C interrupts, a second one stops; Ctrl-\ and a vanished terminal leave it running.
pub fn follow_to_the_end(place: &Place, attended: bool) -> Result<Code> {
    let signals = Signals::take(&[Signal::INT, Signal::QUIT, Signal::HUP, Signal::TERM])?;
    let folder = place.open()?;
    let style = Style::detect(std::io::stderr().is_terminal());
    let show = if speaks(&folder)? { Show::Plain } else { Show::Raw };
    let mut printer = Printer::new(&folder, show, Talk::new(style), Talking::Apart, folder.newest_run()?)?;
    let mut interrupted = false;
    loop {
        match follow(place, &mut printer, Some(signals.as_fd()), false)? {
            Left::Ended(view) => {
                if speaks(&folder)? {
                    printer.finish()?;
                }
                return Ok(conclude(&view, style));
            }
            Left::Asks(view) if attended => super::attach::ask_inline(place, &view, style)?,
            Left::Asks(view) => {
                let what = view.asking.as_ref().map(|ask| ask.text.clone()).unwrap_or_default();
                eprintln!("ostler: {} asks: {}", view.id, ostler_screen::printable(&what));
                eprintln!(
                    "ostler: answer with ostler answer {} --allow (or --deny), then ostler wait {}",
                    view.id, view.id
                );
                return Ok(Code::Asks);
            }
            Left::Called => {
                while let Some(signal) = signals.next()? {
                    if signal != Signal::INT.as_raw() {
                        let words =
                            format!("\nostler: {} goes on; ostler attach {} comes back to it\n", place.id, place.id);
                        // It may be the terminal that is gone.
                        let _ = crate::follow::err(words.as_bytes());
                        return Ok(Code::Succeeded);
                    }
                    interrupt_or_stop(place, &mut interrupted)?;
                }
            }
        }
    }
}

fn speaks(folder: &ostler_store::folder::Folder) -> Result<bool> {
    Ok(folder.run(folder.newest_run()?)?.record()?.plan.speaks.converses())
}

fn interrupt_or_stop(place: &Place, interrupted: &mut bool) -> Result<()> {
    let want = if *interrupted {
        Want::Stop { how: StopHow::Interrupt, grace_ms: 5000, why: "second Ctrl-C".to_owned() }
    } else {
        Want::Interrupt
    };
    let first = !std::mem::replace(interrupted, true);
    match make_wish(place, want)? {
        Granted::Yes if first => eprintln!("\nostler: interrupted; Ctrl-C again stops the session"),
        Granted::Yes => eprintln!("\nostler: stopping"),
        Granted::Refused(_) | Granted::Ended(_) => {}
    }
    Ok(())
}

/// The last lines: what was achieved, what was kept and where, and what to do next.
fn conclude(view: &View, style: Style) -> Code {
    let Some(outcome) = &view.outcome else {
        return Code::Ours;
    };
    let code = Code::of(outcome);
    // A command's own output is all that a script wants to see of one that went well, or that explained itself.
    let plain = outcome.kind == Kind::Succeeded || !style.colour && outcome.exit_code.is_some();
    let silent = view.agent == "command" && plain && outcome.left.is_empty();
    if !silent {
        eprint!("{}", summary(view, outcome, style));
    }
    code
}

fn summary(view: &View, outcome: &Outcome, style: Style) -> String {
    let printable = |text: &str| ostler_screen::printable(text).into_owned();
    let verdict = match outcome.kind {
        Kind::Succeeded => style.green("✔ succeeded"),
        Kind::Failed => style.red("✘ failed"),
        Kind::Interrupted => style.yellow("● interrupted"),
        Kind::Stopped => style.yellow("■ stopped"),
        Kind::Lost => style.red("✘ lost"),
    };
    let mut facts = vec![style.bold(view.id.as_str())];
    if view.agent != "command" {
        let turns = if outcome.turns == 1 { "1 turn".to_owned() } else { format!("{} turns", outcome.turns) };
        facts.push(turns);
    }
    facts.push(duration(outcome.duration_ms));
    if outcome.saved != Saved::NotApplicable {
        facts.push(format!("saved: {}", outcome.saved.word()));
    }
    if let Some(tokens) = outcome.tokens {
        facts.push(format!("{} tokens", tokens.input + tokens.output));
    }
    if let Some(cost) = outcome.cost_usd.filter(|cost| *cost > 0.0) {
        facts.push(format!("${cost:.4}"));
    }
    let mut text = format!("\n{verdict}  {}\n", facts.join(" · "));
    if outcome.kind != Kind::Succeeded {
        text.push_str(&format!("  {}\n", printable(&outcome.cause)));
    }
    for process in &outcome.left {
        text.push_str(&format!("  {} {}\n", style.dim("ended what it left running:"), printable(process)));
    }
    if let Some(transcript) = &view.transcript {
        text.push_str(&format!("  {} {}\n", style.dim("transcript"), printable(&super::ls::tilde(transcript))));
    }
    if view.agent != "command" {
        let id = view.id;
        text.push_str(&format!(
            "  {} ostler logs {id} · ostler resume {id} \"…\" · ostler ls\n",
            style.dim("try next  ")
        ));
    }
    text
}
