//! How an agent is started: its program, its arguments, its environment.

use crate::engine::Engine;
use crate::environment::Environment;
use crate::error::{Error, Result};
use ostler_agents::installed::is_nesting_mark;
use ostler_agents::launch::Launching;
use ostler_core::record::{Mode, Session};
use ostler_keeper::agent_program;
use ostler_store::RunRecord;
use ostler_view::proof::find_transcript_with;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The variable in which a shell names its working folder. Some programs use it instead of asking the kernel.
const HERE: &str = "PWD";

/// A run that is prepared, before it has a process.
pub struct Prepared {
    /// The record of the run.
    pub record: RunRecord,
    /// What goes into the folder of the run, by name.
    pub files: Vec<(&'static str, Vec<u8>)>,
    /// The environment of the agent.
    pub environment: Vec<CString>,
}

/// Works out how an agent is started.
pub fn prepare(engine: &Engine, session: &Session, run: u32, native_id: &str, resume: bool) -> Result<Prepared> {
    let variable = engine.environment.lookup();
    let path = variable("PATH");
    let own = engine.config.own_agent(&session.agent)?.map(|(_, own)| own);
    let agent = ostler_agents::find(own.map_or(session.agent.as_str(), |own| own.protocol.agent()))
        .ok_or_else(|| Error::UnknownAgent { agent: session.agent.clone() })?;
    let own_binary = engine.launcher.program()?.to_string_lossy().into_owned();
    let folder = std::path::absolute(engine.home.sessions())?.join(format!("{}/runs/{run}", session.id));
    let launching = Launching {
        session,
        own_binary: &own_binary,
        native_id,
        resume,
        linger_ms: engine.config.linger_ms(),
        variable: &variable,
        folder: &folder.to_string_lossy(),
        file: &|name| std::fs::read_to_string(Path::new(&session.cwd).join(name)).ok(),
        knows: &|option| {
            let found = agent_program::resolve_on(path.as_deref(), agent, agent.name());
            crate::installed::knows_option(&engine.environment, Path::new(&found), option)
        },
    };
    let mut how = agent.launch(&launching);
    if let Some(ending) = own.and_then(|own| own.ending(session.mode)) {
        how.plan.ending = ending;
    }
    how.plan.rules = session.rules.clone();
    check_installed(&engine.environment, agent)?;
    let behind = if how.plan.opens() { ostler_agents::acp::adapters::of_command(&session.arguments) } else { None };
    if let Some(program) = how.argv.first_mut() {
        // The agent behind a protocol may have a launcher of its own.
        let maker = if how.plan.opens() { ostler_agents::acp::behind(program) } else { None };
        *program = agent_program::resolve_on(path.as_deref(), maker.unwrap_or(agent), program);
    }
    refuse_shared_server(&engine.environment, agent, &how.argv)?;
    let known = if resume { Some(native_id) } else { how.native_id.as_deref() };
    let transcript = known.and_then(|id| find_transcript_with(agent, id, &session.cwd, &variable));
    let terminal = session.mode == Mode::Terminal;
    let record = RunRecord {
        size: terminal.then(|| engine.environment.window.unwrap_or((24, 80))),
        native_id: how.native_id,
        begins: !resume,
        transcript,
        database: agent.database(&variable),
        behind: behind.map(|agent| agent.name().to_owned()),
        output_limit: if terminal { Some(engine.config.terminal_output_limit) } else { engine.config.output_limit },
        min_free_space: engine.config.min_free_space,
        autosave_ms: engine.config.autosave_ms(),
        retry_alarm_ms: engine.config.retry_alarm_ms(),
        answer_within_ms: engine.config.answer_within_ms().filter(|_| how.plan.opens()),
        ..RunRecord::new(run, how.argv, how.plan)
    };
    let files = agent.files(&launching);
    Ok(Prepared { record, files, environment: environment(&engine.environment, session, &how.variables) })
}

impl Engine {
    /// Refuses an agent that is not known, or whose program is not installed.
    pub fn check_agent(&self, name: &str) -> Result<()> {
        if self.config.own_agent(name)?.is_some() {
            return Ok(());
        }
        let agent = ostler_agents::find(name).ok_or_else(|| Error::UnknownAgent { agent: name.to_owned() })?;
        check_installed(&self.environment, agent)
    }
}

/// Refuses an agent whose program is not installed.
pub fn check_installed(environment: &Environment, agent: &dyn ostler_agents::Agent) -> Result<()> {
    if let Some(package) = agent.package()
        && environment.variable("PATH").is_none_or(|path| agent_program::find_on(&path, agent.name()).is_none())
    {
        return Err(Error::NotInstalled { agent: agent.name().to_owned(), package: package.to_owned() });
    }
    Ok(())
}

/// Refuses an agent that would hand its work to a server that already runs. That work could not be stopped, because it
/// is in no process of ours.
fn refuse_shared_server(environment: &Environment, agent: &dyn ostler_agents::Agent, argv: &[String]) -> Result<()> {
    let Some(socket) = agent.works_behind(argv, &environment.lookup()) else {
        return Ok(());
    };
    if std::os::unix::net::UnixStream::connect(&socket).is_err() {
        return Ok(());
    }
    let package = agent.package().unwrap_or_default().to_owned();
    Err(Error::WorksInServer { agent: agent.name().to_owned(), package, socket })
}

/// The environment of this process, without the variables by which an agent marks its children, and with the session's
/// id.
pub fn environment(ours: &Environment, session: &Session, more: &[(String, String)]) -> Vec<CString> {
    let replaced = |name: &str| ["OSTLER_SESSION", HERE].contains(&name) || more.iter().any(|(set, _)| set == name);
    let kept = ours
        .variables()
        .iter()
        .filter(|(name, _)| name.to_str().is_none_or(|name| !is_nesting_mark(name) && !replaced(name)))
        // These variables point git to a repository: that of the user, not the session's own tree.
        .filter(|(name, _)| session.worktree.is_none() || !ostler_git::git::points_at_repository(name))
        .map(|(name, value)| [name.as_bytes(), value.as_bytes()].join(&b'='));
    let set = more.iter().map(|(name, value)| format!("{name}={value}").into_bytes());
    kept.chain(set)
        .chain([format!("OSTLER_SESSION={}", session.id).into_bytes(), format!("{HERE}={}", session.cwd).into_bytes()])
        .filter_map(|entry| CString::new(entry).ok())
        .collect()
}
