//! What a list found out about a session that runs, for the next list: a view, the files that it was made from, and the
//! processes that were alive.
//!
//! The view is valid as long as none of these files has changed and the kernel reports, asked again each time, that
//! agent, holder and keeper are alive and the keeper is not stopped. Most of this follows from how much the keeper has
//! run. If it has run no more than when it slept at the time of the note, it is alive, is not stopped, has the same
//! holder, and has moved no output. Only if it has run since, the agent's output files are compared and the keeper's
//! process is looked at: a keeper may run without changing anything. What depends on the clock is computed again. Files
//! that only grow have another size; a file that is replaced or appears changes the date of its folder. A date does not
//! show a further change in the same moment, so a session is noted only when all of its files have been unchanged for a
//! while.

use crate::helpers::Processes;
use crate::look::{Depth, look_at_processes, look_to, own, seconds_since};
use ostler_core::id::SessionId;
use ostler_core::record::{Channel, Tty};
use ostler_core::view::View;
use ostler_store::StoreError;
use ostler_store::home::{Home, Place};
use ostler_store::live::{self, LiveIndex};
use ostler_sys::clock;
use ostler_sys::dir::{Dir, Stamp};
use ostler_sys::process::{Identity, Life, Pidfd, Ran, Serial};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// For how many seconds its files have to be unchanged.
const MOMENT_S: i64 = 2;

/// The number of output files of the agent, which come first in [`Files::all`].
const OUTPUTS: usize = 2;

/// A record of the index.
#[derive(Debug, Serialize, Deserialize)]
struct Noted {
    /// Pid and start, in the boot of the index, which is the present one.
    agent: (i32, u64),
    serial: Serial,
    keeper: (i32, u64),
    /// How much the keeper had run when it slept.
    ran: Option<Ran>,
    holder: i32,
    files: Files,
    /// In the order of [`Files::all`].
    stamps: Vec<(u64, u64, i64, u64)>,
    view: View,
    /// A field of the view that its JSON does not have.
    conversation_agent: Option<String>,
    /// Whether the last line was asked for: without it, the note is not enough for a list.
    last: bool,
}

/// Which files a view is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Files {
    run: u32,
    inbox: bool,
    terminal: bool,
    hooks: bool,
    resized: bool,
    /// The last line may come from the run before.
    before: bool,
}

impl Files {
    /// The files that exist now.
    fn of(sessions: &Dir, id: SessionId, run: u32, channel: Channel) -> Option<Files> {
        let is_there = |name: &str| Some(sessions.stamp(&format!("{id}/{name}")).ok()?.is_some());
        let (terminal, before) = match channel {
            Channel::Command => (false, false),
            Channel::Lines(_) => (false, run > 1),
            Channel::Tty(Tty::Nothing | Tty::Hooks) => (true, run > 1),
        };
        // A file that appears later changes the date of a folder.
        Some(Files {
            run,
            inbox: is_there("inbox.jsonl")?,
            terminal,
            hooks: terminal && is_there(&format!("runs/{run}/hooks"))?,
            resized: terminal && is_there(&format!("runs/{run}/size"))?,
            before,
        })
    }

    /// Whether `right` returns true for all of them, each given by its path below the folder of all sessions. Not among
    /// them are `session.json`, which is only ever replaced, so that the date of its folder shows it, and `run.json`,
    /// which is not changed any more once the agent runs. `outputs`: also the output files of the agent. A keeper that
    /// sleeps has read them, and what follows from them is in the journal, except the last line.
    fn all(self, id: SessionId, outputs: bool, mut right: impl FnMut(&str) -> bool) -> bool {
        let run = self.run;
        let mut path = String::with_capacity(64);
        let mut one = |below: std::fmt::Arguments<'_>| {
            path.clear();
            // Writing into a text cannot fail.
            let _ = write!(path, "{id}{below}");
            right(&path)
        };
        (!outputs || (one(format_args!("/runs/{run}/out")) && one(format_args!("/runs/{run}/err"))))
            && one(format_args!("/journal.jsonl"))
            && one(format_args!(""))
            && (!self.inbox || one(format_args!("/inbox.jsonl")))
            && (!self.terminal || one(format_args!("/runs/{run}")))
            && (!self.hooks || one(format_args!("/runs/{run}/hooks")))
            && (!self.resized || one(format_args!("/runs/{run}/size")))
            && (!self.before || one(format_args!("/runs/{}", run.saturating_sub(1))))
    }
}

fn as_noted(stamp: Stamp) -> (u64, u64, i64, u64) {
    (stamp.inode, stamp.size, stamp.seconds, stamp.nanos)
}

/// When the look at a session that is to be noted began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    second: i64,
}

impl Begun {
    pub fn now() -> Begun {
        Begun { second: clock::now().as_second() }
    }
}

/// Notes a session that was looked at. `sessions`: the folder in which its folder is.
pub(crate) fn note(
    index: &LiveIndex,
    sessions: &Dir,
    depth: Depth,
    (view, processes): (&View, &Processes),
    begun: Begun,
) {
    if let Some(record) = record(sessions, depth, view, processes, begun) {
        index.add(view.id, record);
    }
}

/// The record of the session; `None` if it may look different soon.
fn record(sessions: &Dir, depth: Depth, view: &View, processes: &Processes, begun: Begun) -> Option<Vec<u8>> {
    // These fields change with time.
    if view.retrying.is_some() || view.no_answer_s.is_some() || view.archived || view.ended {
        return None;
    }
    // A file that has changed since the look began has a later date than this, however long the look has taken.
    let settled = |stamp: Option<Stamp>| stamp.filter(|stamp| stamp.seconds < begun.second - MOMENT_S);
    // For a session that prints, this is the only check.
    settled(sessions.stamp(&format!("{}/runs/{}/out", view.id, view.run)).ok()?)?;
    // Read before the files: if the keeper runs meanwhile, it has run more than this.
    let ran = processes.keeper.at_rest(processes.holder);
    let files = Files::of(sessions, view.id, view.run, processes.channel)?;
    let mut stamps = Vec::new();
    let all_settled = files.all(view.id, true, |name| {
        let stamp = settled(sessions.stamp(name).ok().flatten());
        stamps.extend(stamp.map(as_noted));
        stamp.is_some()
    });
    if !all_settled {
        return None;
    }
    let noted = Noted {
        agent: (processes.agent.pid(), processes.agent.start()),
        serial: processes.serial,
        keeper: (processes.keeper.pid(), processes.keeper.start()),
        ran,
        holder: processes.holder,
        files,
        stamps,
        view: View { branch: None, ..view.clone() },
        conversation_agent: view.conversation_agent.clone(),
        last: depth.has_last(),
    };
    noted.as_record()
}

/// The view of a session that was noted, if nothing has happened to it since and all of its processes are alive.
/// Without the branch that git has checked out in its directory.
#[must_use]
pub fn still(index: &LiveIndex, sessions: &Dir, id: SessionId, depth: Depth) -> Option<View> {
    let noted = Noted::of(index, id, depth)?;
    // In this order: each process is restarted or outlived by the one that is looked at after it.
    let at_rest =
        noted.is_same(sessions, id, false) && noted.ran.is_some_and(|ran| Ran::of(noted.keeper.0) == Some(ran));
    let noted = if at_rest { noted } else { noted.looked_at_closer(index, sessions, id, depth)? };
    noted.confirmed(index, depth)
}

/// The same, with a descriptor of the keeper's process that was opened before the look.
fn still_held(index: &LiveIndex, sessions: &Dir, id: SessionId, depth: Depth) -> Option<(View, Pidfd)> {
    let noted = Noted::of(index, id, depth)?;
    let held = noted.ran.and_then(|ran| Identity::hold_at_rest(noted.keeper.0, ran).ok()?);
    // If the keeper has ended since, the descriptor shows it.
    let (noted, keeper) = match held {
        Some(keeper) if noted.is_same(sessions, id, false) => (noted, keeper),
        Some(_) | None => {
            let keeper = Pidfd::open(&noted.keeper()?).ok()??;
            (noted.looked_at_closer(index, sessions, id, depth)?, keeper)
        }
    };
    Some((noted.confirmed(index, depth)?, keeper))
}

impl Noted {
    fn of(index: &LiveIndex, id: SessionId, depth: Depth) -> Option<Noted> {
        let noted: Noted = serde_json::from_slice(index.find(id)?).ok()?;
        let enough = noted.last || !depth.has_last();
        (noted.view.id == id && enough).then_some(noted)
    }

    fn agent(&self) -> Option<Identity> {
        Identity::of_this_boot(self.agent.0, self.agent.1)
    }

    fn keeper(&self) -> Option<Identity> {
        Identity::of_this_boot(self.keeper.0, self.keeper.1)
    }

    /// The same, if all files are unchanged and its keeper, which has run since, is alive as the child of the holder
    /// that started the agent. Noted again if the keeper sleeps.
    fn looked_at_closer(mut self, index: &LiveIndex, sessions: &Dir, id: SessionId, depth: Depth) -> Option<Noted> {
        let keeper = self.keeper()?;
        let ran = keeper.at_rest(self.holder);
        if !self.is_same(sessions, id, depth.has_last()) {
            return None;
        }
        let seen = keeper.see().ok()?;
        if seen.life != Life::Alive || seen.parent != self.holder {
            return None;
        }
        // The output files were not compared if the last line was not asked for.
        if ran.is_some() && ran != self.ran && depth.has_last() {
            self.ran = ran;
            index.add(id, self.as_record()?);
        }
        Some(self)
    }

    /// The view, if the agent is alive.
    fn confirmed(self, index: &LiveIndex, depth: Depth) -> Option<View> {
        if !self.agent()?.lives_as(self.serial).ok()? {
            return None;
        }
        index.confirm(self.view.id);
        self.view(depth)
    }

    /// Whether the files are unchanged. `outputs`: also the output files of the agent.
    fn is_same(&self, sessions: &Dir, id: SessionId, outputs: bool) -> bool {
        let mut stamps = self.stamps.iter().skip(if outputs { 0 } else { OUTPUTS });
        let same = |name: &str| {
            let now = sessions.stamp(name).ok().flatten().map(as_noted);
            now.is_some() && now.as_ref() == stamps.next()
        };
        self.files.all(id, outputs, same)
    }

    fn as_record(&self) -> Option<Vec<u8>> {
        let mut record = serde_json::to_value(self).ok()?;
        // Empty fields are left out, so they need not be read: they are half of most views.
        record.get_mut("view")?.as_object_mut()?.retain(|_, value| !value.is_null());
        serde_json::to_vec(&record).ok()
    }

    /// The view, as it is now.
    fn view(self, depth: Depth) -> Option<View> {
        let lived_s = self.agent()?.lived_ms().map_or(u64::MAX, |ms| ms / 1000);
        let mut view = self.view;
        view.enter(view.state);
        view.conversation_agent = self.conversation_agent;
        view.quiet_s = seconds_since(view.updated).min(lived_s);
        view.last = view.last.filter(|_| depth.has_last());
        Some(view)
    }
}

/// For commands other than lists that look at many sessions.
#[derive(Debug)]
pub struct Live {
    index: LiveIndex,
    home: PathBuf,
    sessions: Dir,
}

impl Live {
    /// For so many sessions of this home. `None`: there are too few of them, or none.
    #[must_use]
    pub fn open(home: &Home, count: usize) -> Option<Live> {
        let sessions = (count >= live::WORTH_IT).then(|| Dir::open(home.sessions()).ok()).flatten()?;
        Some(Live { index: LiveIndex::read(home.root()), home: home.root().to_owned(), sessions })
    }

    /// What [`look_to`](crate::look::look_to) says at [`Depth::Awaited`].
    pub fn look(&self, place: &Place) -> Result<View, StoreError> {
        let depth = Depth::Awaited;
        if place.archived {
            return look_to(depth, place);
        }
        if let Some(view) = still(&self.index, &self.sessions, place.id, depth) {
            return Ok(view);
        }
        let begun = Begun::now();
        let look = || {
            let (view, processes) = look_at_processes(depth, &place.open()?, false)?;
            Ok((own(view, place.id)?, processes))
        };
        let (view, processes) = look().map_err(|error: StoreError| error.of(place.id))?;
        if let Some(processes) = processes {
            note(&self.index, &self.sessions, depth, (&view, &processes), begun);
        }
        Ok(view)
    }

    /// What was found out about a session, if nothing has changed since, and a descriptor of its keeper's process,
    /// which was opened before the check.
    #[must_use]
    pub fn still_held(&self, place: &Place) -> Option<(View, Pidfd)> {
        if place.archived { None } else { still_held(&self.index, &self.sessions, place.id, Depth::Awaited) }
    }

    /// Writes what was found out, for the next command.
    pub fn save(self) {
        save(self.index, &self.home, &self.sessions);
    }
}

/// Writes the index again with what was noted. Older records stay only for sessions whose files have not changed;
/// sessions that this command has looked up are not checked again.
pub fn save(index: LiveIndex, home: &Path, sessions: &Dir) {
    index.save(home, |id, record| {
        let noted: Option<Noted> = serde_json::from_slice(record).ok();
        noted.is_some_and(|noted| noted.is_same(sessions, id, true))
    });
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::look::blank;
    use jiff::Timestamp;
    use ostler_core::record::{Mode, Session};
    use ostler_core::view::Phase;
    use rustix::process::{Pid, Signal, WaitOptions};
    use std::os::unix::fs::MetadataExt;
    use std::process::{Child, Command};

    /// A session that was noted. This process is its agent and its holder, and a child of ours its keeper.
    struct Fixture {
        home: tempfile::TempDir,
        id: SessionId,
        processes: Processes,
        keeper: Child,
    }

    impl Drop for Fixture {
        fn drop(&mut self) {
            // Both fail if it has already ended.
            let _ = self.keeper.kill();
            let _ = self.keeper.wait();
        }
    }

    impl Fixture {
        fn new(channel: Channel) -> Fixture {
            Fixture::with_keeper(channel, Command::new("sleep").arg("600"))
        }

        fn with_keeper(channel: Channel, keeper: &mut Command) -> Fixture {
            let home = tempfile::tempdir().unwrap();
            let id = SessionId::parse("q5b7k2mz").unwrap();
            let session = home.path().join("sessions").join(id.as_str());
            std::fs::create_dir_all(session.join("runs/1")).unwrap();
            for name in ["session.json", "journal.jsonl", "runs/1/run.json", "runs/1/out", "runs/1/err"] {
                std::fs::write(session.join(name), "{}").unwrap();
            }
            let keeper = keeper.spawn().unwrap();
            let processes = Processes {
                agent: Identity::me().unwrap(),
                serial: Serial::mine().unwrap().unwrap(),
                holder: i32::try_from(std::process::id()).unwrap(),
                keeper: Identity::of(i32::try_from(keeper.id()).unwrap()).unwrap().unwrap(),
                channel,
            };
            Fixture { home, id, processes, keeper }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.home.path().join("sessions").join(self.id.as_str()).join(name)
        }

        fn sessions(&self) -> Dir {
            Dir::open(self.home.path().join("sessions")).unwrap()
        }

        fn view(&self) -> View {
            let session: Session = serde_json::from_value(serde_json::json!({
                "schema": 1, "id": self.id, "agent": "command", "cwd": "/", "mode": Mode::Headless,
                "created": Timestamp::UNIX_EPOCH, "name": "a name",
            }))
            .unwrap();
            let mut view = blank(&session, 1, false);
            view.enter(Phase::Running);
            (view.alive, view.kept, view.cost_usd) = (true, true, Some(0.1 + 0.2));
            (view.last, view.conversation_agent) = (Some("hello".to_owned()), Some("another".to_owned()));
            view
        }

        /// Notes the session like a list that runs so many seconds after all changes.
        fn note(&self, depth: Depth, later_s: i64) {
            let index = LiveIndex::read(self.home.path());
            let view = self.view();
            let begun = Begun { second: Begun::now().second + later_s };
            let Some(record) = record(&self.sessions(), depth, &view, &self.processes, begun) else {
                return;
            };
            index.add(self.id, record);
            // So many records that the file is written.
            (0..20).for_each(|number| index.add(SessionId::from_random(number), Vec::new()));
            index.save(self.home.path(), |_, _| true);
        }

        /// The keeper has to run its program first. There is no notification when a process sleeps.
        fn until_keeper_sleeps(&self) {
            while self.processes.keeper.at_rest(self.processes.holder).is_none() {
                std::thread::yield_now();
            }
        }

        /// A keeper that moves output has run.
        fn keeper_runs(&self) {
            let keeper = Pid::from_child(&self.keeper);
            for (signal, told) in [(Signal::STOP, WaitOptions::UNTRACED), (Signal::CONT, WaitOptions::CONTINUED)] {
                rustix::process::kill_process(keeper, signal).unwrap();
                rustix::process::waitpid(Some(keeper), told).unwrap();
            }
        }

        fn still(&self, depth: Depth) -> Option<View> {
            still(&LiveIndex::read(self.home.path()), &self.sessions(), self.id, depth)
        }
    }

    #[test]
    fn what_was_seen_is_seen_again_as_long_as_nothing_changes() {
        let fixture = Fixture::new(Channel::Command);
        assert_eq!(fixture.still(Depth::Listed), None, "nothing is noted");
        fixture.note(Depth::Listed, 0);
        assert_eq!(fixture.still(Depth::Listed), None, "its files have just been written");
        fixture.note(Depth::Listed, 10);
        let found = fixture.still(Depth::Listed).unwrap();
        assert_eq!(View { quiet_s: 0, ..found }, fixture.view());
        assert_eq!(fixture.still(Depth::Awaited).unwrap().last, None);
        std::fs::remove_file(fixture.home.path().join(live::NAME)).unwrap();
        fixture.note(Depth::Awaited, 10);
        assert!(fixture.still(Depth::Awaited).is_some());
        assert_eq!(fixture.still(Depth::Listed), None, "its last line was not asked for");
    }

    #[test]
    fn whatever_happens_to_its_files_it_is_looked_at() {
        let more = |path: PathBuf| std::fs::write(path, "{} and more").unwrap();
        let replaced = |path: PathBuf| {
            std::fs::write(path.with_extension("new"), "{}").unwrap();
            std::fs::rename(path.with_extension("new"), path).unwrap();
        };
        let removed = |path: PathBuf| std::fs::remove_file(path).unwrap();
        for name in ["journal.jsonl", "runs/1/out", "runs/1/err"] {
            for change in [&more as &dyn Fn(PathBuf), &replaced, &removed] {
                let fixture = Fixture::new(Channel::Command);
                fixture.note(Depth::Listed, 10);
                change(fixture.path(name));
                fixture.keeper_runs();
                assert_eq!(fixture.still(Depth::Listed), None, "{name}");
            }
        }
        // Files that appear or are replaced.
        for name in ["session.json", "inbox.jsonl", "renamed.json", "runs/1/last", "runs/1/hooks", "runs/1/size"] {
            let fixture = Fixture::new(Channel::Tty(Tty::Hooks));
            fixture.note(Depth::Listed, 10);
            assert!(fixture.still(Depth::Listed).is_some(), "{name}");
            let folder = fixture.path(name).parent().unwrap().to_owned();
            let date = || std::fs::metadata(&folder).map(|stat| (stat.ctime(), stat.ctime_nsec())).unwrap();
            let before = date();
            // The clock of the file system advances in steps. `MOMENT_S` covers a change within one step.
            while date() == before {
                more(fixture.path(name));
                removed(fixture.path(name));
            }
            more(fixture.path(name));
            assert_eq!(fixture.still(Depth::Listed), None, "{name}");
        }
        // Files that existed then and are longer now.
        for name in ["inbox.jsonl", "runs/1/hooks", "runs/1/size"] {
            let fixture = Fixture::new(Channel::Tty(Tty::Nothing));
            std::fs::write(fixture.path(name), "{}").unwrap();
            fixture.note(Depth::Listed, 10);
            assert!(fixture.still(Depth::Listed).is_some(), "{name}");
            more(fixture.path(name));
            assert_eq!(fixture.still(Depth::Listed), None, "{name}");
        }
    }

    #[test]
    fn what_a_session_prints_matters_only_to_those_that_show_its_last_line() {
        let fixture = Fixture::new(Channel::Command);
        fixture.note(Depth::Listed, 10);
        std::fs::write(fixture.path("runs/1/out"), "more").unwrap();
        fixture.keeper_runs();
        assert_eq!(fixture.still(Depth::Listed), None);
        assert!(fixture.still(Depth::Awaited).is_some());
        std::fs::write(fixture.path("journal.jsonl"), "more").unwrap();
        assert_eq!(fixture.still(Depth::Awaited), None);
    }

    #[test]
    fn a_keeper_that_has_run_and_changed_nothing_is_noted_again() {
        let fixture = Fixture::new(Channel::Command);
        fixture.until_keeper_sleeps();
        fixture.note(Depth::Listed, 10);
        let ran = |index: &LiveIndex| Noted::of(index, fixture.id, Depth::Listed).unwrap().ran;
        let before = ran(&LiveIndex::read(fixture.home.path()));
        assert!(before.is_some(), "it sleeps");
        fixture.keeper_runs();
        fixture.until_keeper_sleeps();
        let index = LiveIndex::read(fixture.home.path());
        assert!(still(&index, &fixture.sessions(), fixture.id, Depth::Listed).is_some());
        // So many records that the file is written.
        (0..20).for_each(|number| index.add(SessionId::from_random(number), Vec::new()));
        save(index, fixture.home.path(), &fixture.sessions());
        let now = ran(&LiveIndex::read(fixture.home.path()));
        assert!(now.is_some() && now != before, "{before:?} {now:?}");
    }

    #[test]
    fn an_agent_that_has_ended_is_seen_before_its_keeper_has_run() {
        let mut agent = Command::new("sleep").arg("600").spawn().unwrap();
        let pidfd = rustix::process::pidfd_open(Pid::from_child(&agent), rustix::process::PidfdFlags::empty()).unwrap();
        let mut fixture = Fixture::new(Channel::Command);
        fixture.processes.agent = Identity::of(i32::try_from(agent.id()).unwrap()).unwrap().unwrap();
        let serial = rustix::fs::fstat(&pidfd).unwrap().st_ino;
        fixture.processes.serial = serde_json::from_value(serial.into()).unwrap();
        fixture.note(Depth::Listed, 10);
        assert!(fixture.still(Depth::Listed).is_some());
        // This keeper never notices.
        agent.kill().unwrap();
        agent.wait().unwrap();
        assert_eq!(fixture.still(Depth::Listed), None);
    }

    #[test]
    fn the_kernel_is_asked_for_its_processes_each_time() {
        let mut fixture = Fixture::new(Channel::Command);
        fixture.note(Depth::Listed, 10);
        assert!(fixture.still(Depth::Listed).is_some());
        let keeper = Pid::from_child(&fixture.keeper);
        rustix::process::kill_process(keeper, Signal::STOP).unwrap();
        rustix::process::waitpid(Some(keeper), WaitOptions::UNTRACED).unwrap();
        assert_eq!(fixture.still(Depth::Listed), None, "its keeper is stopped");
        rustix::process::kill_process(keeper, Signal::CONT).unwrap();
        rustix::process::waitpid(Some(keeper), WaitOptions::CONTINUED).unwrap();
        assert!(fixture.still(Depth::Listed).is_some(), "it goes on");
        fixture.keeper.kill().unwrap();
        fixture.keeper.wait().unwrap();
        assert_eq!(fixture.still(Depth::Listed), None, "its keeper is gone");

        let other = |change: &dyn Fn(&mut Processes)| {
            // A keeper that sleeps would be proof enough, so this one never does.
            let mut never_sleeps = Command::new("sh");
            let mut fixture = Fixture::with_keeper(Channel::Command, never_sleeps.args(["-c", "while :; do :; done"]));
            change(&mut fixture.processes);
            fixture.note(Depth::Listed, 10);
            fixture.still(Depth::Listed).is_some()
        };
        let later = |who: &Identity| Identity::of_this_boot(who.pid(), who.start() + 1).unwrap();
        assert!(other(&|_| {}));
        assert!(!other(&|of| of.serial = serde_json::from_value(7.into()).unwrap()), "another process has its pid");
        assert!(!other(&|of| of.keeper = later(&of.keeper)), "another process has the pid of its keeper");
        assert!(!other(&|of| of.holder += 1), "its holder was replaced");
    }
}
