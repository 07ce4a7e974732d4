//! Processes that nobody waits for any more: everything of a session was killed at once, and a tool of its agent lives on.
//!
//! Two things tell whose they are without a parent: the cgroup of the run that started them, and with some agents the file
//! that a tool's output goes to, whose path names the conversation. A process of the second kind counts only when its parent is
//! neither that agent nor another process of that tool, so that the process that started it is gone.
//!
//! `doctor` names them. `resume` ends them before the conversation goes on, because the next turn may do the same work
//! again beside them, and `stop` of a session that is lost those in its cgroup; nobody else does.

use crate::error::Result;
use ostler_agents::Agent;
use ostler_core::id::SessionId;
use ostler_store::folder::Folder;
use ostler_store::{RunRecord, limits};
use ostler_sys::cgroup::{Group, PREFIX};
use ostler_sys::process::{Identity, Pidfd, Stat, command_line};
use ostler_sys::process_table;
use ostler_sys::threads::parallel;
use ostler_sys::tree::Processes;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;
use rustix::time::Timespec;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long they may take to leave when they are asked, and then to be gone when they are killed.
const PATIENCE: Duration = Duration::from_secs(1);
/// With so many threads at most.
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

/// So many processes are looked at before another thread may have its turn.
const HANDFUL: usize = 64;

/// Tools of agents that were inherited by another process. Whether their conversation goes on somewhere is another question.
/// `helpers`: processes of ours, which are none.
pub fn tools(helpers: &HashSet<i32>) -> Result<Vec<Tool>> {
    let pids: Vec<i32> = process_table::others()?.into_iter().filter(|pid| !helpers.contains(pid)).collect();
    // Nearly all processes write elsewhere, and more is asked only of those that do not.
    let may_be = |pid: &i32| output_of(*pid).is_some_and(|output| conversation_of(&output).is_some());
    let next = AtomicUsize::new(0);
    let look = || {
        let mut found = Vec::new();
        while let Some(handful) = pids.chunks(HANDFUL).nth(next.fetch_add(1, Ordering::Relaxed)) {
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
    is_foster_parent(agent, parent).then_some(Tool { who, agent: agent.name(), conversation, output })
}

fn output_of(pid: i32) -> Option<PathBuf> {
    process_table::descriptor(pid, 1)
}

/// The agent whose tool writes there, and the conversation.
fn conversation_of(output: &Path) -> Option<(&'static dyn Agent, String)> {
    let user = rustix::process::geteuid().as_raw();
    ostler_agents::all().find_map(|agent| Some((agent, agent.conversation_of_tool(output, user)?)))
}

/// Whether a process has only inherited its child. A tool's own processes are its children's parents, and the agent is the
/// tool's, whatever it is called: where in doubt nothing is said.
fn is_foster_parent(agent: &dyn Agent, pid: i32) -> bool {
    let of_a_tool = output_of(pid).is_some_and(|output| conversation_of(&output).is_some());
    pid <= 1 || !of_a_tool && !agent.may_be_it(&command_line(pid))
}

/// Ends what an earlier run of a session left, and names it. The caller holds the session still: nothing of it runs.
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

/// The same for the tools of a conversation alone. What is in the cgroup of its last run its keeper has ended.
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

/// The same for what is in the cgroup of its last run. The caller knows that it is not a copy of the session's folder that
/// names that group.
pub fn end_contained(folder: &Folder, id: SessionId, run: u32) -> Result<Vec<String>> {
    let record = folder.run(run)?.record()?;
    end(&record, &contained(&record, id)?)
}

/// Ends those of these processes that live, and names them.
pub fn end_processes(processes: &[Identity]) -> Result<Vec<String>> {
    let mut left: Vec<Identity> = processes.iter().filter(|process| process.may_live()).cloned().collect();
    left.sort_by_key(Identity::pid);
    left.dedup();
    // What was about to leave with its parent needs no signal of ours.
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

/// What lives in the cgroup of a run. Never where we are in it ourselves.
fn contained(record: &RunRecord, id: SessionId) -> Result<Vec<Identity>> {
    let Some(path) = record.cgroup.as_ref().map(PathBuf::from) else {
        return Ok(Vec::new());
    };
    // Unlike the session's folder, a group cannot be copied; its name says whose it is.
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
