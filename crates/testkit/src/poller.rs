//! Looks at a session again and again, as fast as the machine can, while a test does its worst to it.

use crate::session::Session;
use ostler_core::view::Phase;
use ostler_store::look::look;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// What one look saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub alive: bool,
    pub state: Phase,
}

/// A thread that looks until it is asked what it saw.
#[derive(Debug)]
pub struct Poller {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Report>>,
}

#[derive(Debug, Default)]
struct Report {
    looks: u64,
    wrong: BTreeMap<String, u64>,
}

impl Poller {
    /// Starts to look; `right` says what may be seen.
    pub fn start(session: &Session<'_>, right: impl Fn(Seen) -> bool + Send + 'static) -> Poller {
        let stop = Arc::new(AtomicBool::new(false));
        let place = session.place();
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut report = Report::default();
            while !stopped.load(Ordering::Relaxed) {
                report.looks += 1;
                let wrong = match look(&place) {
                    Ok(view) if right(Seen { alive: view.alive, state: view.state }) => continue,
                    Ok(view) => format!("alive {}, {}, outcome {:?}", view.alive, view.state.word(), view.outcome),
                    Err(error) => format!("could not look: {error}"),
                };
                *report.wrong.entry(wrong).or_default() += 1;
            }
            report
        });
        Poller { stop, thread: Some(thread) }
    }

    /// Ends the looking and fails the test if anything wrong was seen. Returns how often it looked.
    #[track_caller]
    pub fn saw_nothing_wrong(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        let report = self.thread.take().expect("asked once").join().expect("the poller");
        assert!(report.wrong.is_empty(), "wrong words in {} looks: {:#?}", report.looks, report.wrong);
        assert!(report.looks > 0, "never looked");
        report.looks
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
