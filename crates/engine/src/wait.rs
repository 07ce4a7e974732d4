//! Waiting, without polling, until sessions have reached a state. There may be any number of waiters, and they need no
//! running process: they read the files and are woken by the kernel.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::request::{SILENCE, look_and_record, look_and_record_to, nudge, record_if_ended};
use crate::session_watch::SessionWatch;
use ostler_core::event::StopHow;
use ostler_core::fact::Verdict;
use ostler_core::life::State;
use ostler_core::view::{Phase, View};
use ostler_store::home::Place;
use ostler_sys::notify::{self, Watcher};
use ostler_sys::threads::each_in_parallel;
use ostler_view::live_views::Live;
use ostler_view::look::{self, Depth, look_for_outcome};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::AsFd;
use rustix::time::Timespec;
use std::time::{Duration, Instant};

/// From this many sessions on, threads are worth their start, and the keepers are not woken before something has
/// changed.
const MANY: usize = 16;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The end of the session.
    Ended,
    /// The end of its turn; an idle session is not waited for.
    Turn,
    /// A question.
    Asking,
}

/// How to wait.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// What is waited for.
    pub until: Until,
    /// Wait for the first session, not for all.
    pub any: bool,
    /// Questions do not end the wait.
    pub through_questions: bool,
    /// Not longer than this.
    pub limit: Option<Duration>,
    /// The views have the last message too ([`View::last`]), which costs more: a terminal's screen is drawn for it.
    pub last: bool,
}

/// Why the waiting is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// What was waited for has happened.
    Reached,
    /// At least one session asks a question, so that nothing else will happen.
    Asks,
    /// The time limit has passed.
    TimeIsUp,
}

/// What a session has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// It has ended.
    Ended,
    /// It asks a question.
    Asking,
    /// How its last turn ended; `None`: it has had no turn.
    Turn(Option<Verdict>),
}

/// One session that is waited for.
pub struct Waited {
    place: Place,
    watch: SessionWatch,
    /// Its present view, with its last message where [`Wait::last`] asks for it.
    pub view: View,
    /// Something may have happened since the view was made.
    changed: bool,
    /// The size of the journal before the first look; set until the keeper's first packet has arrived.
    greeted_at: Option<u64>,
    /// Its journal is watched instead of asking its keeper.
    journal: Option<notify::Watch>,
    turns_before: Option<u32>,
    /// What it has reached, if that was waited for.
    pub reached: Option<Reached>,
    /// It waits for an answer, so that nothing else will happen.
    pub asks: bool,
}

impl Engine {
    /// Waits for all of these sessions, or for the first of them.
    pub fn wait(&self, places: Vec<Place>, wait: &Wait) -> Result<(Over, Vec<Waited>)> {
        let (over, mut waited) = self.wait_until(places, wait)?;
        waited.iter().for_each(|one| self.notify_if_lost(&one.place, &one.view));
        if wait.last {
            waited.iter_mut().try_for_each(Waited::look_closely)?;
        }
        Ok((over, waited))
    }

    fn wait_until(&self, places: Vec<Place>, wait: &Wait) -> Result<(Over, Vec<Waited>)> {
        let deadline = wait.limit.map(|limit| Instant::now() + limit);
        let threads = if places.len() < MANY { 1 } else { 8 };
        // One watcher for all sessions; without it every keeper is asked to report changes.
        let journals = (places.len() >= MANY).then(|| Watcher::new().ok()).flatten();
        let live = Live::open(&self.home, places.len());
        let waited = each_in_parallel(threads, &places, |place| {
            Waited::new(place.clone(), wait.until, journals.as_ref(), live.as_ref())
        });
        let mut waited = waited.into_iter().collect::<Result<Vec<_>>>()?;
        if let Some(live) = live {
            live.save();
        }
        let mut time_left = true;
        // A wait for questions waits for the questions of all sessions.
        let questions_end_it = wait.until != Until::Asking && !wait.through_questions;
        loop {
            for one in waited.iter_mut().filter(|one| one.reached.is_none()) {
                one.look(wait.until)?;
            }
            if questions_end_it && waited.iter().any(|one| one.asks) {
                return Ok((Over::Asks, waited));
            }
            let done = waited.iter().filter(|one| one.reached.is_some()).count();
            if done == waited.len() || (wait.any && done > 0) {
                return Ok((Over::Reached, waited));
            }
            // Only after a last look: the result has to be true now, not when the wait began.
            if !time_left {
                return Ok((Over::TimeIsUp, waited));
            }
            time_left = sleep(&mut waited, journals.as_ref(), deadline)?;
        }
    }
}

/// Waits for this run to end, and the runs that continue it automatically, for commands that need the end. Another
/// process may resume the session at once.
pub fn until_run_ended(place: &Place, run: u32) -> Result<View> {
    let mut waited = [Waited::new(place.clone(), Until::Ended, None, None)?];
    loop {
        waited[0].look(Until::Ended)?;
        if let Some(view) = end_before_resumed(place, run, waited[0].view.run)? {
            return Ok(view);
        }
        if waited[0].view.ended {
            let [waited] = waited;
            return Ok(waited.view);
        }
        // A process that waits here has asked for the end, so a helper that was stopped by a signal is continued.
        if !sleep(&mut waited, None, Some(Instant::now() + SILENCE))? {
            nudge(&waited[0].place.open()?)?;
        }
    }
}

/// The view at the end of this run, when the newest run is not one that continues it automatically.
fn end_before_resumed(place: &Place, run: u32, newest: u32) -> Result<Option<View>> {
    if newest <= run {
        return Ok(None);
    }
    let folder = place.open()?;
    let first = folder.run(newest)?.record()?.continues.unwrap_or(newest);
    Ok(if first > run { look::at_end_of(&folder, first - 1)? } else { None })
}

impl Waited {
    fn new(place: Place, until: Until, journals: Option<&Watcher>, live: Option<&Live>) -> Result<Waited> {
        // Subscribe first, look afterwards: what happens in between wakes us.
        let journal = journals.and_then(|journals| journals.watch(&place.path.join("journal.jsonl")).ok());
        if let (Some(_), Some((view, keeper))) = (&journal, live.and_then(|live| live.still_held(&place))) {
            let watch = SessionWatch::beside_keeper(&place, keeper);
            return Ok(Waited::looked_at(place, until, view, (watch, None, journal)));
        }
        let beside = if journal.is_some() { SessionWatch::beside_journal(&place)? } else { None };
        let (watch, greeted_at, journal) = match beside {
            Some(watch) => (watch, None, journal),
            None => {
                let watch = SessionWatch::state_only(&place)?;
                let greeted_at = journal_size(&place);
                (watch, greeted_at, None)
            }
        };
        let view = match live {
            Some(live) => record_if_ended(&place, live.look(&place)?)?,
            None => look_and_record_to(Depth::Awaited, &place)?,
        };
        Ok(Waited::looked_at(place, until, view, (watch, greeted_at, journal)))
    }

    fn looked_at(
        place: Place,
        until: Until,
        view: View,
        (watch, greeted_at, journal): (SessionWatch, Option<u64>, Option<notify::Watch>),
    ) -> Waited {
        let runs = matches!(
            view.state,
            Phase::Queued | Phase::Starting | Phase::Working | Phase::Waiting | Phase::Asking | Phase::Stopping
        );
        let turns_before = (until == Until::Turn && runs).then_some(view.turns);
        let (changed, reached, asks) = (false, None, false);
        Waited { place, watch, view, changed, greeted_at, journal, turns_before, reached, asks }
    }

    /// Updates the view, including the last message.
    fn look_closely(&mut self) -> Result<()> {
        self.view = look_and_record(&self.place)?;
        Ok(())
    }

    /// Reads the news of a session. The first packet of a keeper to each client says that something has changed, in
    /// case something did between the client's request and the keeper's own look. Everything that changes a session is
    /// in its journal, so if the journal has not grown, this first packet means nothing.
    fn hear(&mut self) -> Result<()> {
        let greeted_at = self.greeted_at.take();
        let keeper = self.watch.has_keeper();
        self.watch.take_news()?;
        let only_greeted = keeper && self.watch.has_keeper() && greeted_at.is_some();
        self.changed = !(only_greeted && journal_size(&self.place) == greeted_at);
        Ok(())
    }

    fn look(&mut self, until: Until) -> Result<()> {
        if std::mem::take(&mut self.changed) {
            // Most changes that end a sleep are the end of the session.
            self.view = match look_for_outcome(&self.place)? {
                Some(ended) => record_if_ended(&self.place, ended)?,
                None => look_and_record_to(Depth::Awaited, &self.place)?,
            };
        }
        self.asks = self.awaits_answer()?;
        let view = &self.view;
        if view.ended && view.outcome.is_some() {
            self.reached = Some(Reached::Ended);
            return Ok(());
        }
        self.reached = match until {
            Until::Ended => None,
            // Also a session that is to stop after its turn: it waits for the answer as well.
            Until::Asking => view.asking.is_some().then_some(Reached::Asking),
            // Turns of this session are not reported, so the wait would last until the end of the session.
            Until::Turn if view.state == Phase::Running => {
                return Err(Error::NoTurns { session: view.into(), agent: view.agent.clone(), mode: view.mode });
            }
            Until::Turn => match self.turns_before {
                None => Some(turn(view)),
                // The expected turn may never have begun: no turn runs any more, and no message waits.
                Some(before) if view.turns > before || view.state == Phase::Idle => Some(turn(view)),
                Some(_) => None,
            },
        };
        Ok(())
    }

    /// A session that is to stop after its turn waits for the answer as well; a session that is to stop now does not.
    fn awaits_answer(&self) -> Result<bool> {
        Ok(match self.view.state {
            Phase::Asking => true,
            Phase::Stopping if self.view.asking.is_some() => {
                self.state()?.stop.is_some_and(|stop| stop.how == StopHow::AfterTurn)
            }
            Phase::Queued
            | Phase::Starting
            | Phase::Working
            | Phase::Running
            | Phase::Waiting
            | Phase::Idle
            | Phase::Stopping
            | Phase::Ended => false,
        })
    }

    fn state(&self) -> Result<State> {
        let folder = self.place.open()?;
        let run = folder.run(self.view.run)?;
        Ok(ostler_view::fold::state_of(&folder, &run)?)
    }
}

fn journal_size(place: &Place) -> Option<u64> {
    std::fs::metadata(place.path.join("journal.jsonl")).ok().map(|journal| journal.len())
}

/// The result of the last turn of a session that has not ended.
fn turn(view: &View) -> Reached {
    Reached::Turn(view.last_turn.as_ref().map(|turn| turn.verdict))
}

/// Sleeps until something may have changed. False when the time is up.
fn sleep(waited: &mut [Waited], journals: Option<&Watcher>, deadline: Option<Instant>) -> Result<bool> {
    let open: Vec<usize> = (0..waited.len()).filter(|&index| waited[index].reached.is_none()).collect();
    // A session without a living process has just changed: look again at once.
    let gone: Vec<usize> = open.iter().copied().filter(|&index| waited[index].watch.fd().is_none()).collect();
    if !gone.is_empty() {
        for index in gone {
            waited[index].watch.take_news()?;
            (waited[index].changed, waited[index].greeted_at) = (true, None);
        }
        return Ok(true);
    }
    let mut fds: Vec<PollFd<'_>> = open
        .iter()
        .filter_map(|&index| waited[index].watch.fd())
        .chain(journals.map(AsFd::as_fd))
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    if left == Some(Duration::ZERO) {
        drop(fds);
        return Ok(time_passed(waited));
    }
    let timeout = left.map(|left| Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(left.subsec_nanos()),
    });
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(std::io::Error::from(error).into()),
    }
    let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
    drop(fds);
    let silence = !ready.contains(&true) && deadline.is_some_and(|deadline| Instant::now() >= deadline);
    if silence {
        return Ok(time_passed(waited));
    }
    let written = journals.map(Watcher::changed).transpose()?.unwrap_or_default();
    for (index, ready) in open.into_iter().zip(ready) {
        let is_written = |journal| written.iter().any(|&one| one == journal || one.is_everything());
        if ready || waited[index].journal.is_some_and(is_written) {
            // From here on its keeper reports changes.
            if let (Some(journals), Some(journal)) = (journals, waited[index].journal.take()) {
                journals.forget(journal);
            }
            waited[index].hear()?;
        }
    }
    Ok(true)
}

/// Marks all sessions to be looked at once more, so that the result is true at the end of the wait.
fn time_passed(waited: &mut [Waited]) -> bool {
    waited.iter_mut().for_each(|one| one.changed = true);
    false
}
