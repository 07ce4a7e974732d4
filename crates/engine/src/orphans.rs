//! Orphaned processes: the agent and the helpers of a session were killed at once, and a tool of the agent still runs.
//!
//! Two things show which session they belong to without a parent: the cgroup of the run that started them, and with
//! some agents the file that receives a tool's output, whose path names the conversation. A process of the second kind
//! counts only when its parent is neither that agent nor another process of that tool: then the process that started it
//! is gone.
//!
//! `doctor` lists them. `resume` ends them before the conversation continues, because the next turn may do the same
//! work again at the same time; so does a keeper that starts the next run. `stop`, `archive` and `purge` of a lost session
//! end those in its cgroup.

use crate::error::{Error, Result};
use crate::notice::Notice;
use crate::session_ref::SessionRef;
use ostler_agents::Agent;
use ostler_core::id::SessionId;
use ostler_core::outcome::Kind;
use ostler_core::view::View;
use ostler_store::folder::Folder;
use ostler_store::home::Place;
use ostler_store::{RunRecord, limits};
use ostler_sys::cgroup::{Group, PREFIX};
use ostler_sys::lock;
use ostler_sys::process::{Identity, Life, Pidfd, Stat, command_line};
use ostler_sys::process_table;
use ostler_sys::threads::parallel;
use ostler_sys::tree::Processes;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::process::Signal;
use rustix::time::Timespec;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long they may take to exit after SIGTERM, and then after SIGKILL.
const PATIENCE: Duration = Duration::from_secs(1);
/// The maximum number of threads that look at processes.
const AT_ONCE: usize = 8;

/// A process whose output is that of a tool, and whose agent is gone.
#[derive(Debug, PartialEq, Eq)]
pub struct Tool {
    /// The process.
    pub who: Identity,
    /// The name of the agent that started it.
    pub agent: &'static str,
    /// The conversation in which it was started.
    pub conversation: String,
    /// The file to which it writes.
    pub output: PathBuf,
}

/// How many processes a thread takes at a time.
const BATCH: usize = 64;

/// Tools of agents whose parent exited, so that another process inherited them. Whether their conversation is continued
/// elsewhere is not checked here. `helpers`: processes of ostler, which are skipped.
pub fn tools(helpers: &HashSet<i32>) -> Result<Vec<Tool>> {
    let pids: Vec<i32> = process_table::others()?.into_iter().filter(|pid| !helpers.contains(pid)).collect();
    // Nearly all processes write elsewhere. More is read only about those that write to the output file of a tool.
    let may_be = |pid: &i32| output_of(*pid).is_some_and(|output| conversation_of(&output).is_some());
    let next = AtomicUsize::new(0);
    let look = || {
        let mut found = Vec::new();
        while let Some(handful) = pids.chunks(BATCH).nth(next.fetch_add(1, Ordering::Relaxed)) {
            found.extend(handful.iter().copied().filter(may_be));
        }
        found
    };
    let mut found = Vec::new();
    for pid in parallel(AT_ONCE, look).into_iter().flatten() {
        found.extend(process_table::of_this_user(pid)?.and_then(tool));
    }
    found.sort_by_key(|tool| tool.who.pid());
    Ok(found)
}

fn tool(who: Identity) -> Option<Tool> {
    let output = output_of(who.pid())?;
    let (agent, conversation) = conversation_of(&output)?;
    let parent = Stat::read(who.pid()).ok()??.parent;
    has_only_inherited_child(agent, parent).then_some(Tool { who, agent: agent.name(), conversation, output })
}

fn output_of(pid: i32) -> Option<PathBuf> {
    process_table::descriptor(pid, 1)
}

/// The agent whose tool writes there, and the conversation.
fn conversation_of(output: &Path) -> Option<(&'static dyn Agent, String)> {
    let user = rustix::process::geteuid().as_raw();
    ostler_agents::all().find_map(|agent| Some((agent, agent.conversation_of_tool(output, user)?)))
}

/// Whether a process has only inherited its child. It has not when it belongs to a tool itself, or when it may be the
/// agent, whatever its program is called. In doubt the answer is no.
fn has_only_inherited_child(agent: &dyn Agent, pid: i32) -> bool {
    let of_a_tool = output_of(pid).is_some_and(|output| conversation_of(&output).is_some());
    pid <= 1 || !of_a_tool && !agent.may_be_it(&command_line(pid))
}

/// Ends the processes that an earlier run of a session left running, and returns their command lines. The caller has
/// quiesced the session: nothing of it runs.
pub fn end_all_of(folder: &Folder, id: SessionId, run: u32, conversation: &str) -> Result<Vec<String>> {
    if run == 0 {
        return Ok(Vec::new());
    }
    let record = folder.run(run)?.record()?;
    let mut left = contained(&record, id)?;
    left.extend(tools_of(conversation)?);
    left.sort_by_key(Identity::pid);
    left.dedup();
    end(&record, &left)
}

/// The same for the tools of a conversation only. The keeper has ended what was in the cgroup of its last run.
pub fn end_tools_of(conversation: &str) -> Result<Vec<String>> {
    end_processes(&tools_of(conversation)?)
}

/// The tools of a conversation whose agent is gone, with what they have started.
fn tools_of(conversation: &str) -> Result<Vec<Identity>> {
    let tools: Vec<i32> = tools(&HashSet::new())?
        .iter()
        .filter(|tool| tool.conversation == conversation)
        .map(|tool| tool.who.pid())
        .collect();
    let mut left: Vec<Identity> = tools.iter().filter_map(|&pid| Identity::of(pid).ok().flatten()).collect();
    if !tools.is_empty() {
        left.extend(Processes::look()?.below(&tools, |_| false));
    }
    Ok(left)
}

/// Ends the processes that a lost session has left in the cgroup of its last run, each with a notice.
pub fn end_of_lost(place: &Place, view: &View, tell: &mut dyn FnMut(Notice)) -> Result<()> {
    let is_lost = view.outcome.as_ref().is_some_and(|outcome| outcome.kind == Kind::Lost);
    if !is_lost || place.archived || view.run == 0 {
        return Ok(());
    }
    let record = place.open()?.run(view.run)?.record()?;
    // A copy of a session's folder names the cgroup of the original. Its agent is another machine's, or the original's,
    // which lives; and no process holds the lock of the copy.
    let ran_here = |agent: &Identity| Ok::<_, Error>(agent.lived_ms().is_some() && agent.look()? == Life::Gone);
    if still_runs(place)? || record.agent.as_ref().map(ran_here).transpose()?.unwrap_or(false) {
        for process in end(&record, &contained(&record, place.id)?)? {
            tell(Notice::EndedOrphan { session: SessionRef::at(place), process });
        }
    }
    Ok(())
}

/// Whether a process holds the session's lock. Only processes that the session started can hold it: a copy of the
/// folder has another lock.
pub fn still_runs(place: &Place) -> Result<bool> {
    match place.open()?.dir().file("agent.lock", OFlags::RDONLY) {
        Ok(file) => Ok(lock::try_exclusive(file)?.is_none()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Ends those of these processes that are alive, and returns their command lines.
pub fn end_processes(processes: &[Identity]) -> Result<Vec<String>> {
    let mut left: Vec<Identity> = processes.iter().filter(|process| process.may_live()).cloned().collect();
    left.sort_by_key(Identity::pid);
    left.dedup();
    // A process that is about to exit with its parent needs no signal.
    signal_and_wait(&left, None)?;
    left.retain(Identity::may_live);
    let words = left.iter().map(|who| format!("{} {}", who.pid(), command_line(who.pid()).join(" "))).collect();
    for signal in [Signal::TERM, Signal::KILL] {
        signal_and_wait(&left, Some(signal))?;
    }
    Ok(words)
}

fn end(record: &RunRecord, left: &[Identity]) -> Result<Vec<String>> {
    let words = left.iter().map(|who| format!("{} {}", who.pid(), command_line(who.pid()).join(" "))).collect();
    for signal in [Signal::TERM, Signal::KILL] {
        signal_and_wait(left, Some(signal))?;
    }
    limits::clear(record);
    Ok(words)
}

/// The processes in the cgroup of a run. None when this process itself is in that cgroup.
fn contained(record: &RunRecord, id: SessionId) -> Result<Vec<Identity>> {
    let Some(path) = record.cgroup.as_ref().map(PathBuf::from) else {
        return Ok(Vec::new());
    };
    // Unlike the session's folder, a cgroup cannot be copied; its name says to which run it belongs.
    let ours = path
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with(&format!("{PREFIX}{id}-{}-", record.run)));
    let Some(group) = Group::open(&path).filter(|_| ours) else {
        return Ok(Vec::new());
    };
    let pids = group.processes()?;
    if pids.iter().any(|&pid| u32::try_from(pid) == Ok(std::process::id())) {
        return Ok(Vec::new());
    }
    Ok(pids.into_iter().filter_map(|pid| Identity::of(pid).ok().flatten()).collect())
}

/// Signals each and waits until they are gone, or time is up. Without a signal it only waits.
fn signal_and_wait(processes: &[Identity], signal: Option<Signal>) -> Result<()> {
    let mut open = Vec::new();
    for process in processes {
        if let Some(pidfd) = Pidfd::open(process)?
            && !pidfd.has_exited()?
        {
            if let Some(signal) = signal {
                pidfd.signal(signal)?;
                pidfd.signal(Signal::CONT)?;
            }
            open.push(pidfd);
        }
    }
    let deadline = Instant::now() + PATIENCE;
    for pidfd in &open {
        let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok();
        poll(&mut [PollFd::new(pidfd, PollFlags::IN)], left.as_ref()).map_err(std::io::Error::from)?;
    }
    Ok(())
}
