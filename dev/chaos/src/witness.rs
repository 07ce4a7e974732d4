//! Looks on while faults happen: no status may be wrong at any moment, and no conversation may have two writers.

use ostler_core::outcome::Kind;
use ostler_core::view::{Phase, View};
use ostler_sys::process::{Identity, Stat, command_line};
use ostler_testkit::{Harness, Poller, Session, patience};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The pause between two looks at all processes of the machine, which are much slower than a look at a session.
const PACE: Duration = Duration::from_millis(5);

/// What is allowed at the moment. Extended before the fault that needs it, and not reduced again.
#[derive(Debug, Default)]
pub struct Truth {
    /// The session was asked to end, or the agent was killed.
    may_end: AtomicBool,
    /// No process was left to see how it ended.
    may_be_lost: AtomicBool,
}

impl Truth {
    pub fn may_end(&self) {
        self.may_end.store(true, Ordering::SeqCst);
    }

    pub fn may_be_lost(&self) {
        self.may_end();
        self.may_be_lost.store(true, Ordering::SeqCst);
    }

    fn allows(&self, view: &View) -> bool {
        let may_end = self.may_end.load(Ordering::SeqCst);
        match view.state {
            Phase::Ended => {
                let lost = view.outcome.as_ref().is_none_or(|outcome| outcome.kind == Kind::Lost);
                may_end && !view.alive && (!lost || self.may_be_lost.load(Ordering::SeqCst))
            }
            Phase::Stopping => may_end && view.outcome.is_none(),
            Phase::Queued | Phase::Starting | Phase::Waiting => view.outcome.is_none(),
            Phase::Working | Phase::Running | Phase::Idle | Phase::Asking => {
                view.outcome.is_none() && (view.alive || view.agent == "codex" || may_end)
            }
        }
    }
}

/// The processes that write a conversation, by the words on their command line.
#[derive(Clone, Copy, Debug)]
pub struct Writers(pub fn(&[String]) -> bool);

/// Two threads that look until they are asked what they saw.
#[derive(Debug)]
pub struct Witness {
    poller: Poller,
    stop: Stop,
    writers: JoinHandle<Vec<String>>,
}

/// Ends the looking, also when the test has failed before it asked for the result.
#[derive(Debug)]
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Witness {
    #[must_use]
    pub fn start(harness: &Harness, session: &Session<'_>, truth: &Arc<Truth>, writers: Writers) -> Witness {
        let told = Arc::clone(truth);
        let poller = Poller::start_in_full(session, move |view| told.allows(view));
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let root = harness.root().to_owned();
        let writers = std::thread::spawn(move || look_for_two(&root, writers, &stopped));
        Witness { poller, stop: Stop(stop), writers }
    }

    /// Fails unless everything that was seen was right. Returns how often the session was looked at.
    #[track_caller]
    pub fn saw_nothing_wrong(self) -> u64 {
        drop(self.stop);
        let writers = self.writers.join().expect("the watcher of writers");
        assert!(writers.is_empty(), "two writers at once: {writers:#?}");
        self.poller.saw_nothing_wrong()
    }
}

fn look_for_two(root: &Path, Writers(is_writer): Writers, stopped: &AtomicBool) -> Vec<String> {
    while !stopped.load(Ordering::Relaxed) {
        let processes = ostler_testkit::alive_below(&[root]);
        let words = |process: &Identity| command_line(process.pid());
        let writers: Vec<Identity> = processes.into_iter().filter(|process| is_writer(&words(process))).collect();
        // A process that a writer has just forked has the same command line until its exec.
        let is_child = |process: &Identity| {
            let parent = Stat::read(process.pid()).ok().flatten().map(|stat| stat.parent);
            writers.iter().any(|other| Some(other.pid()) == parent)
        };
        let seen: Vec<&Identity> = writers.iter().filter(|process| !is_child(process)).collect();
        // When two were found one after the other, the first may have ended before the second began.
        let both: Vec<&&Identity> = seen.iter().filter(|process| process.may_live()).collect();
        if both.len() > 1 {
            return both.iter().map(|process| format!("{} {:?}", process.pid(), words(process))).collect();
        }
        patience::let_pass(PACE);
    }
    Vec::new()
}
