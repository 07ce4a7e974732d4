//! Looks at a session again and again, as fast as the machine can, while a test injects faults.

use crate::session::Session;
use ostler_core::view::{Phase, View};
use ostler_store::StoreError;
use ostler_store::home::{Home, Place, SessionsDir};
use ostler_view::look::look;
use ostler_view::overview::Overview;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The result of one look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub alive: bool,
    pub state: Phase,
}

/// A thread that looks until it is asked for its report.
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
    /// Looks at one session; `right` decides which results are right.
    pub fn start(session: &Session<'_>, right: impl Fn(Seen) -> bool + Send + 'static) -> Poller {
        Poller::start_in_full(session, move |view| right(Seen { alive: view.alive, state: view.state }))
    }

    /// Like [`Poller::start`], with the whole view.
    pub fn start_in_full(session: &Session<'_>, right: impl Fn(&View) -> bool + Send + 'static) -> Poller {
        let place = session.place();
        Poller::over(move || vec![place.clone()], right)
    }

    /// Looks at every session of a home, including sessions that are started later.
    pub fn start_for_all(home: &Path, right: impl Fn(&View) -> bool + Send + 'static) -> Poller {
        let root = home.to_string_lossy().into_owned();
        let home = Home::find(&move |name| (name == "OSTLER_HOME").then(|| root.clone())).expect("a home");
        Poller::over(move || home.live_places().expect("the sessions folder"), right)
    }

    fn over(
        places: impl Fn() -> Vec<Place> + Send + 'static,
        right: impl Fn(&View) -> bool + Send + 'static,
    ) -> Poller {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut report = Report::default();
            while !stopped.load(Ordering::Relaxed) {
                for place in places() {
                    for look in [look, look_as_a_list] {
                        report.looks += 1;
                        if let Some(wrong) = what_is_wrong(look(&place), &right) {
                            *report.wrong.entry(wrong).or_default() += 1;
                        }
                    }
                }
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

/// Looks in the same way as `ls` looks at many sessions.
fn look_as_a_list(place: &Place) -> Result<View, StoreError> {
    Overview::over(&SessionsDir::with(place)?, None)?.look(place.id)
}

fn what_is_wrong(seen: Result<View, StoreError>, right: impl Fn(&View) -> bool) -> Option<String> {
    match seen {
        Ok(view) if right(&view) => None,
        Ok(view) => Some(format!("alive {}, {}, outcome {:?}", view.alive, view.state.word(), view.outcome)),
        Err(error) => Some(format!("could not look: {error}")),
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
