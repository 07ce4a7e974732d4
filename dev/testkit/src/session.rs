//! One session under test.

use crate::harness::Harness;
use crate::patience;
use crate::shown::Shown;
use ostler_core::id::SessionId;
use ostler_core::view::View;
use ostler_store::folder::Folder;
use ostler_store::home::Place;
use ostler_sys::process::{Identity, Pidfd};
use ostler_view::look::look;
use rustix::process::Signal;
use std::path::PathBuf;

/// One of a session's three processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessKind {
    Agent,
    Holder,
    Keeper,
}

/// A session of a harness.
#[derive(Clone, Copy, Debug)]
pub struct Session<'a> {
    harness: &'a Harness,
    id: SessionId,
}

impl<'a> Session<'a> {
    pub(crate) fn new(harness: &'a Harness, id: &str) -> Session<'a> {
        let id = SessionId::parse(id).unwrap_or_else(|| panic!("{id:?} is not a session id"));
        Session { harness, id }
    }

    #[must_use]
    pub fn id(&self) -> &str {
        self.id.as_str()
    }

    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.harness.home().join("sessions").join(self.id.as_str())
    }

    /// A file of its newest run.
    #[must_use]
    pub fn run_file(&self, name: &str) -> PathBuf {
        // A test that damages the folder of a session has only one run.
        let newest = self.place().open().ok().and_then(|folder| folder.newest_run().ok()).unwrap_or(1);
        self.path().join("runs").join(newest.to_string()).join(name)
    }

    #[must_use]
    pub fn place(&self) -> Place {
        Place { id: self.id, path: self.path(), archived: false }
    }

    fn folder(&self) -> Folder {
        self.place().open().expect("the session's folder")
    }

    /// The output of `ostler show --json`.
    #[track_caller]
    #[must_use]
    pub fn show(&self) -> Shown {
        let output = self.harness.run(&["show", "--json", self.id()]).exits(0);
        serde_json::from_value(output.json()).unwrap_or_else(|error| panic!("{error} in {output:?}"))
    }

    /// The same view, without starting a process.
    #[must_use]
    pub fn look(&self) -> View {
        look(&self.place()).unwrap_or_else(|error| panic!("cannot look at {}: {error}", self.id))
    }

    /// What its records say about one of its processes; `None` before the process is recorded.
    #[must_use]
    pub fn recorded(&self, who: ProcessKind) -> Option<Identity> {
        let folder = self.folder();
        match who {
            ProcessKind::Agent => {
                let newest = folder.newest_run().expect("the runs");
                folder.run(newest).and_then(|run| run.record()).expect("run.json").agent
            }
            ProcessKind::Holder => folder.holder().expect("holder.json").map(|record| record.process),
            ProcessKind::Keeper => folder.keeper().expect("keeper.json").map(|record| record.process),
        }
    }

    /// Like [`Session::recorded`], for a session that may not exist any more, or may not be complete yet.
    #[must_use]
    pub fn recorded_if_there(&self, who: ProcessKind) -> Option<Identity> {
        let folder = self.place().open().ok()?;
        match who {
            ProcessKind::Agent => folder.run(folder.newest_run().ok()?).ok()?.record().ok()?.agent,
            ProcessKind::Holder => folder.holder().ok()?.map(|record| record.process),
            ProcessKind::Keeper => folder.keeper().ok()?.map(|record| record.process),
        }
    }

    /// Waits until there is a living process of this kind.
    pub fn living(&self, who: ProcessKind) -> Identity {
        self.until(&format!("a {who:?} lives"), || self.recorded(who).filter(Identity::may_live))
    }

    /// Sends a signal to one of its processes, by identity.
    pub fn signal(&self, who: ProcessKind, signal: Signal) -> Identity {
        let process = self.living(who);
        let pidfd = Pidfd::open(&process).expect("a pidfd").unwrap_or_else(|| panic!("the {who:?} has just ended"));
        pidfd.signal(signal).expect("may signal what we started");
        process
    }

    /// Sends SIGKILL to one of its processes and returns its identity. The process has exited when this returns.
    pub fn kill(&self, who: ProcessKind) -> Identity {
        let process = self.signal(who, Signal::KILL);
        patience::ended(&process);
        process
    }

    /// Sends SIGKILL to one of its processes if it has not exited by itself. Returns whether it was alive until then.
    pub fn kill_if_alive(&self, who: ProcessKind) -> bool {
        let Some(process) = self.recorded(who) else { return false };
        let Some(pidfd) = Pidfd::open(&process).expect("a pidfd") else { return false };
        let lived = !pidfd.has_exited().expect("a pidfd");
        pidfd.signal(Signal::KILL).expect("may signal what we started");
        patience::ended(&process);
        lived
    }

    /// Waits until there is a living process of this kind and sends SIGKILL to it, also when one exits by itself in
    /// between.
    pub fn kill_the_next(&self, who: ProcessKind) {
        self.until(&format!("a {who:?} is killed"), || self.kill_if_alive(who).then_some(()));
    }

    /// Waits until another process has replaced the one that was killed.
    pub fn replaced(&self, who: ProcessKind, before: &Identity) -> Identity {
        self.until(&format!("the {who:?} is replaced"), || {
            self.recorded(who).filter(|now| now != before).filter(Identity::may_live)
        })
    }

    /// Kills both helpers with SIGKILL, so that neither can replace the other.
    pub fn orphan(&self) {
        self.kill_together(&[ProcessKind::Keeper, ProcessKind::Holder]);
    }

    /// Kills these with SIGKILL, so that none of them can react to the death of another: all are stopped before the
    /// first is killed. The driver of a job, for example, has its own helpers replaced.
    pub fn kill_together(&self, all: &[ProcessKind]) {
        let stopped: Vec<Identity> = all.iter().map(|who| self.signal(*who, Signal::STOP)).collect();
        for process in stopped {
            let pidfd = Pidfd::open(&process).expect("a pidfd").expect("stopped, not ended");
            pidfd.signal(Signal::KILL).expect("may signal what we started");
            patience::ended(&process);
        }
    }

    /// Checks whenever something in the session's folder changes, until `found` finds something.
    pub fn until<T>(&self, what: &str, found: impl FnMut() -> Option<T>) -> T {
        let run = self.run_file("");
        patience::until(&format!("{what} ({})", self.id), &[&self.path(), &run], found)
    }

    /// Waits until the view is right. A failure shows what the view is instead, and the screen.
    pub fn until_look(&self, what: &str, mut right: impl FnMut(&View) -> bool) -> View {
        let instead = || {
            let view = self.look();
            let screen = self.harness.run(&["logs", "--screen", self.id()]).stdout;
            let put_in = String::from_utf8_lossy(&std::fs::read(self.run_file("in")).unwrap_or_default()).into_owned();
            let (state, queued, waits) = (view.state, view.queued, view.message_waits);
            format!("; it is {state:?}, {queued} queued, {waits:?}, was given {put_in:?}\n{screen}")
        };
        let found = || Some(self.look()).filter(|view| right(view));
        let what = format!("{what} ({})", self.id);
        patience::until_or(&what, &[&self.path(), &self.run_file("")], found, instead)
    }

    /// Waits until these bytes are in its output.
    pub fn until_printed(&self, text: &str) {
        let file = self.run_file("out");
        self.until(&format!("it has printed {text:?}"), || {
            let bytes = std::fs::read(&file).unwrap_or_default();
            String::from_utf8_lossy(&bytes).contains(text).then_some(())
        });
    }

    /// Ends the session and fails the test unless that succeeded.
    #[track_caller]
    pub fn stop(&self) {
        self.harness.run(&["stop", self.id()]).exits(0);
    }
}
