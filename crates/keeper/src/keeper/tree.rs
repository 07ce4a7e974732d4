//! Which processes belong to a session, and how those that it leaves behind are ended.
//!
//! If there is a cgroup, it has them all, including those that were double-forked or re-parented. Otherwise they are
//! the descendants of the holder or the agent, except those that belong to another session: `ostler run` inside an
//! agent starts a session of its own, which outlives this one. Such a process is recognised by its cgroup, as a helper
//! that its own session folder confirms by identity, or by the lock that it has inherited.

use crate::start_agent::LOCK_NUMBER;
use ostler_core::id::SessionId;
use ostler_store::HelperRecord;
use ostler_store::folder::Folder;
use ostler_sys::cgroup::Group;
use ostler_sys::dir::Dir;
use ostler_sys::process::{Identity, Pidfd, Stat, command_line};
use ostler_sys::process_table;
use ostler_sys::tree::Processes;
use rustix::process::Signal;
use std::io;

pub struct Tree<'a> {
    pub session: SessionId,
    pub group: Option<&'a Group>,
    pub holder: Option<i32>,
    pub agent: &'a Identity,
    /// The process that takes a snapshot of the screen.
    pub snapshot: Option<i32>,
}

impl Tree<'_> {
    /// Everything of this session that is alive, apart from the helpers and the agent itself.
    pub fn left(&self) -> io::Result<Vec<Identity>> {
        if let Some(group) = self.group {
            return self.contained(group);
        }
        let all = Processes::look()?;
        let foreign = |stat: &Stat| self.is_helper(stat.pid) || self.is_anothers(stat.pid);
        // Its pid may have been reused by now, and what is below that process is not ours.
        let agent = Stat::read(self.agent.pid())?.filter(|stat| stat.identity() == *self.agent).map(|stat| stat.pid);
        let roots: Vec<i32> = agent.into_iter().chain(self.holder).collect();
        let mut found = all.below(&roots, foreign);
        found.retain(|process| process != self.agent);
        Ok(found)
    }

    fn contained(&self, group: &Group) -> io::Result<Vec<Identity>> {
        let mut found = Vec::new();
        let apart = |pid: &i32| *pid != self.agent.pid() && !self.is_helper(*pid);
        for pid in group.processes()?.into_iter().filter(apart) {
            found.extend(Stat::read(pid)?.filter(|stat| !stat.is_zombie()).map(|stat| stat.identity()));
        }
        Ok(found)
    }

    /// A replacement holder that could not leave the group of the process that started it is in the group together with
    /// the agent.
    fn is_helper(&self, pid: i32) -> bool {
        let me = rustix::process::getpid().as_raw_nonzero().get();
        pid == me || Some(pid) == self.holder || Some(pid) == self.snapshot
    }

    fn is_anothers(&self, pid: i32) -> bool {
        let mine = format!("ostler-{}-", self.session);
        let in_other_group = groups_of(pid).iter().any(|group| !group.starts_with(&mine));
        in_other_group || is_helper_of_another(pid) || self.is_agent_of_another(pid) || is_sender(pid)
    }

    /// The agent of an inner session becomes a child of our holder when its own holder dies. The lock that it inherited
    /// shows to which session it belongs, and the record there confirms it.
    fn is_agent_of_another(&self, pid: i32) -> bool {
        let confirmed = || {
            let lock = process_table::descriptor(pid, LOCK_NUMBER)?;
            let path = lock.parent()?;
            let folder = Folder::new(Dir::open(path).ok()?);
            let agent = folder.run(folder.newest_run().ok()?).ok()?.record().ok()?.agent?;
            (path.file_name()? != self.session.as_str()).then_some(agent)
        };
        confirmed().is_some_and(|agent| Identity::of(pid).is_ok_and(|process| process.as_ref() == Some(&agent)))
    }

    /// Ends these processes. A process that is being forked now is found by the next look.
    pub fn end(&self, processes: &[Identity], forced: bool) -> io::Result<()> {
        let without_us =
            |group: &&Group| group.processes().is_ok_and(|all| !all.iter().any(|&pid| self.is_helper(pid)));
        if forced && self.group.filter(without_us).is_some_and(Group::kill) && processes.is_empty() {
            return Ok(());
        }
        for process in processes {
            if let Some(pidfd) = Pidfd::open(process)? {
                if forced {
                    pidfd.signal(Signal::KILL)?;
                } else {
                    pidfd.signal(Signal::TERM)?;
                    pidfd.signal(Signal::CONT)?;
                }
            }
        }
        Ok(())
    }
}

/// Helpers have their session's folder as working directory, and the record there names them. No other process counts
/// as a helper.
fn is_helper_of_another(pid: i32) -> bool {
    let record = match command_line(pid).get(1).map(String::as_str) {
        Some(crate::HOLDER) => "holder.json",
        Some(crate::KEEPER) => "keeper.json",
        Some(_) | None => return false,
    };
    std::fs::read(process_table::in_cwd(pid, record))
        .ok()
        .and_then(|bytes| serde_json::from_slice::<HelperRecord>(&bytes).ok())
        .is_some_and(|helper| Identity::of(pid).is_ok_and(|process| process.as_ref() == Some(&helper.process)))
}

/// A process that sends notifications or takes a snapshot of the working tree becomes a child of our holder when the
/// keeper that started it dies. It is our own program, which does nothing else under these words and ends by itself.
fn is_sender(pid: i32) -> bool {
    let ours = |word: &String| word == crate::NOTIFY || word == crate::TURN;
    command_line(pid).get(1).is_some_and(ours) && process_table::is_this_program(pid)
}

/// Every process that a foreign process has started and that is alive, except the sessions of ostler that it has
/// started: they outlive it.
pub fn started_by(process: &Identity) -> io::Result<Vec<Identity>> {
    let known = groups_of(process.pid());
    let foreign = |stat: &Stat| {
        groups_of(stat.pid).iter().any(|group| !known.contains(group))
            || is_helper_of_another(stat.pid)
            || is_sender(stat.pid)
    };
    let all = Processes::look()?;
    // Its pid may have been reused by now, and what is below that process must not be touched.
    if Stat::read(process.pid())?.is_none_or(|stat| stat.identity() != *process) {
        return Ok(Vec::new());
    }
    Ok(all.below(&[process.pid()], foreign))
}

/// The groups of sessions that a process is in.
fn groups_of(pid: i32) -> Vec<String> {
    process_table::control_groups(pid).into_iter().filter(|part| part.starts_with("ostler-")).collect()
}

/// Descriptions for people: `1234 sleep 600`.
pub fn describe(processes: &[Identity]) -> Vec<String> {
    let mut names: Vec<String> = processes
        .iter()
        .map(|process| {
            let mut words = command_line(process.pid()).join(" ");
            if let Some((cut, _)) = words.char_indices().nth(120) {
                words.truncate(cut);
            }
            format!("{} {words}", process.pid()).trim_end().to_owned()
        })
        .collect();
    names.sort();
    names
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use ostler_sys::cgroup;
    use ostler_sys::spawn::{Leads, Program, Start, Started, collect};
    use rustix::fd::AsFd;
    use std::ffi::CString;

    fn sleeper(group: &Group) -> (Started, Identity) {
        let text = |words: &[&str]| words.iter().map(|word| CString::new(*word).unwrap()).collect::<Vec<_>>();
        let started = Start {
            program: Program::Named("sleep"),
            arguments: &text(&["sleep", "600"]),
            environment: &text(&["PATH=/usr/bin:/bin"]),
            folder: None,
            descriptors: &[],
            leads: Leads::Session,
            cgroup: Some(group.as_fd()),
        }
        .start()
        .unwrap();
        assert!(started.contained);
        let process = Identity::of(started.pid).unwrap().unwrap();
        (started, process)
    }

    #[test]
    fn a_holder_in_the_group_of_its_agent_is_not_left_behind_and_not_ended_with_it() {
        let made = cgroup::base().and_then(|base| Group::make(&base, &format!("tree-test-{}", std::process::id())));
        // Without permission to make a group there is nothing to test.
        let Some(group) = made else { return };
        let ((agent_child, agent), (holder_child, holder)) = (sleeper(&group), sleeper(&group));
        let (tool_child, tool) = sleeper(&group);
        let session = SessionId::from_random(7);
        let pid = Some(holder.pid());
        let tree = Tree { session, group: Some(&group), holder: pid, agent: &agent, snapshot: None };
        assert_eq!(tree.left().unwrap(), [tool]);
        tree.end(&tree.left().unwrap(), true).unwrap();
        collect(tool_child.pid);
        tree.end(&tree.left().unwrap(), true).unwrap();
        let lives = |process: &Identity| !Pidfd::open(process).unwrap().unwrap().has_exited().unwrap();
        assert!(lives(&holder) && lives(&agent) && tree.left().unwrap().is_empty());
        // Without a helper in the group, all of it is ended at once.
        Tree { holder: None, ..tree }.end(&[], true).unwrap();
        collect(agent_child.pid);
        collect(holder_child.pid);
        group.remove();
    }
}
