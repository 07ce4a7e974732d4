//! How an agent is started: its program, its arguments, its environment.

use crate::context::{Context, variable};
use crate::exit::{Failure, Result};
use ostler_agents::Launching;
use ostler_core::record::{Mode, Session};
use ostler_store::RunRecord;
use rustix::fd::OwnedFd;
use std::ffi::CString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// Where a shell says it is. Some programs believe it rather than ask the kernel.
const HERE: &str = "PWD";

/// What an agent leaves in the environment to mark that it runs, which would make another one refuse to.
const NESTING_MARKS: [&str; 6] = [
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PROJECT_DIR",
];

/// What a run is to be, before it has a process.
pub struct Prepared {
    pub record: RunRecord,
    /// What goes into the folder of the run, by name.
    pub files: Vec<(&'static str, Vec<u8>)>,
    pub environment: Vec<CString>,
}

/// Works out how an agent is started.
pub fn prepare(context: &Context, session: &Session, run: u32, native_id: &str, resume: bool) -> Result<Prepared> {
    let own = context.config.own_agent(&session.agent)?.map(|(_, own)| own);
    let agent = ostler_agents::find(own.map_or(session.agent.as_str(), |own| own.protocol.agent()))
        .ok_or_else(|| Failure::ours(format!("this version of ostler does not know the agent {:?}", session.agent)))?;
    let own_binary = std::env::current_exe()?.to_string_lossy().into_owned();
    let folder = std::path::absolute(context.home.sessions())?.join(format!("{}/runs/{run}", session.id));
    let launching = Launching {
        session,
        own_binary: &own_binary,
        native_id,
        resume,
        linger_ms: context.config.linger_ms(),
        variable: &variable,
        folder: &folder.to_string_lossy(),
        file: &|name| std::fs::read_to_string(Path::new(&session.cwd).join(name)).ok(),
        knows: &|option| {
            let program = ostler_keeper::program::resolve(agent, agent.name());
            crate::installed::knows_option(Path::new(&program), option)
        },
    };
    let mut how = agent.launch(&launching);
    if let Some(ending) = own.and_then(|own| own.ending(session.mode)) {
        how.plan.ending = ending;
    }
    check_installed(agent)?;
    let behind = if how.plan.opens { ostler_agents::acp::adapters::of_command(&session.arguments) } else { None };
    if let Some(program) = how.argv.first_mut() {
        // Behind a protocol stands an agent that may have a launcher of its own.
        let maker = if how.plan.opens { ostler_agents::acp::behind(program) } else { None };
        *program = ostler_keeper::program::resolve(maker.unwrap_or(agent), program);
    }
    refuse_shared_server(agent, &how.argv)?;
    let known = if resume { Some(native_id) } else { how.native_id.as_deref() };
    let transcript = known.and_then(|id| ostler_store::proof::find_transcript(agent, id, &session.cwd));
    let size = ostler_sys::pty::size(std::io::stdout()).or_else(|| ostler_sys::pty::size(std::io::stdin()));
    let terminal = session.mode == Mode::Terminal;
    let record = RunRecord {
        size: terminal.then(|| size.unwrap_or((24, 80))),
        native_id: how.native_id,
        begins: !resume,
        transcript,
        database: agent.database(&variable),
        behind: behind.map(|agent| agent.name().to_owned()),
        output_limit: if terminal { Some(context.config.terminal_output_limit) } else { context.config.output_limit },
        min_free_space: context.config.min_free_space,
        autosave_ms: context.config.autosave_ms(),
        retry_alarm_ms: context.config.retry_alarm_ms(),
        answer_within_ms: context.config.answer_within_ms().filter(|_| how.plan.opens),
        ..RunRecord::new(run, how.argv, how.plan)
    };
    let files = agent.files(&launching);
    Ok(Prepared { record, files, environment: environment(session, &how.variables) })
}

/// Refuses an agent whose program is not there.
pub fn check_installed(agent: &dyn ostler_agents::Agent) -> Result<()> {
    if let Some(package) = crate::installed::package(agent.name())
        && ostler_keeper::program::find_in_path(agent.name()).is_none()
    {
        return Err(Failure::usage(format!("{} is not installed; install it: npm install -g {package}", agent.name())));
    }
    Ok(())
}

/// An agent that leaves its work to a server which runs already cannot be stopped, because that work is in no process of ours.
fn refuse_shared_server(agent: &dyn ostler_agents::Agent, argv: &[String]) -> Result<()> {
    let Some(socket) = agent.works_behind(argv, &variable) else {
        return Ok(());
    };
    if std::os::unix::net::UnixStream::connect(&socket).is_err() {
        return Ok(());
    }
    let (name, package) = (agent.name(), crate::installed::package(agent.name()).unwrap_or_default());
    Err(Failure::usage(format!(
        "this version of {name} would run its work in the server behind {socket}, where ostler cannot stop it; update \
         {name} (npm install -g {package}) or stop that server first"
    )))
}

/// What was piped into us goes to the command itself: it reads on after we have left.
pub fn piped_input() -> Result<Option<OwnedFd>> {
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
fn environment(session: &Session, more: &[(String, String)]) -> Vec<CString> {
    let replaced = |name: &str| ["OSTLER_SESSION", HERE].contains(&name) || more.iter().any(|(set, _)| set == name);
    let kept = std::env::vars_os()
        .filter(|(name, _)| name.to_str().is_none_or(|name| !NESTING_MARKS.contains(&name) && !replaced(name)))
        .map(|(name, value)| [name.into_vec(), value.into_vec()].join(&b'='));
    let set = more.iter().map(|(name, value)| format!("{name}={value}").into_bytes());
    kept.chain(set)
        .chain([format!("OSTLER_SESSION={}", session.id).into_bytes(), format!("{HERE}={}", session.cwd).into_bytes()])
        .filter_map(|entry| CString::new(entry).ok())
        .collect()
}
