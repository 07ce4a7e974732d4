//! Waiting without polling: for children, for a person, and at the same time for the request to stop. When both helpers
//! of a session were killed, the driver has replacements started, also for the job's own session.

use super::{CHECKS, CutOff, Driver};
use crate::error::JobError;
use ostler_core::fact::{Ask, TurnEnd};
use ostler_core::view::View;
use ostler_engine::job::PersonsAnswer;
use ostler_engine::process::Terminations;
use ostler_engine::ready::{self, Interest};
use ostler_engine::session_watch::SessionWatch;
use ostler_engine::stop::StopHow;
use ostler_engine::worktrees::{BranchWatch, Land, Landing, Repository};
use ostler_engine::{Engine, Place};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// When no process of a session lives and its end is about to be recorded, it is looked at again after this time.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The result of waiting.
#[derive(Debug)]
pub enum Waited<T = Box<View>> {
    /// What was waited for has happened.
    Ended(T),
    /// The time was up first.
    TimeIsUp,
}

/// What the driver watches of its own session.
pub(super) struct Own {
    engine: Engine,
    place: Place,
    ends: Terminations,
    watch: SessionWatch,
    stopped: bool,
    /// Whether the session was looked at since it last changed.
    looked: bool,
    /// Whether the job is known to have a request to stop after its turn. The driver's process gets no signal for that.
    after_turn: bool,
}

impl Own {
    pub(super) fn new(engine: &Engine, place: &Place, ends: Terminations) -> Result<Own, JobError> {
        let watch = SessionWatch::state_only(place)?;
        let (engine, place) = (engine.clone(), place.clone());
        Ok(Own { engine, place, ends, watch, stopped: false, looked: false, after_turn: false })
    }

    /// From here on only a request to stop at once counts.
    pub(super) fn waits_for_turns(&mut self) {
        (self.stopped, self.after_turn) = (false, true);
    }

    /// Fails when the job is to stop.
    pub(super) fn check(&mut self) -> Result<(), JobError> {
        self.stopped |= self.ends.came()?;
        let news = !self.looked || self.watch.fd().map(ready::is_readable).transpose()?.unwrap_or(true);
        if !self.stopped && !self.after_turn && news {
            self.looked = true;
            self.after_turn = self.engine.how_to_stop(&self.place)? == Some(StopHow::AfterTurn);
            self.stopped = self.after_turn;
        }
        if self.stopped { Err(JobError::Stopped) } else { Ok(()) }
    }

    /// Sleeps until something may have changed about one of these sessions, or about the job itself.
    fn sleep(&mut self, engine: &Engine, others: &mut [SessionWatch], until: Option<Instant>) -> Result<(), JobError> {
        self.sleep_beside(engine, others, until, None)
    }

    /// Sleeps like `sleep`, and also wakes up when `beside` is readable.
    fn sleep_beside(
        &mut self,
        engine: &Engine,
        others: &mut [SessionWatch],
        until: Option<Instant>,
        beside: Option<BorrowedFd<'_>>,
    ) -> Result<(), JobError> {
        self.check()?;
        let nothing_lives = others.iter().any(|watch| watch.fd().is_none());
        let soon = (nothing_lives || self.watch.fd().is_none()).then(|| Instant::now() + LOOK_AGAIN);
        let until = [until, soon].into_iter().flatten().min();
        let mut fds = vec![Interest::read(self.ends.as_fd())];
        let own = self.watch.fd();
        let more = others.iter().filter_map(SessionWatch::fd).chain(beside);
        fds.extend(own.into_iter().chain(more).map(Interest::read));
        let ready = ready::wait(&fds, until)?;
        let own_news = own.is_some() && ready.get(1) == Some(&true);
        drop(fds);
        if own_news || !self.watch.has_keeper() {
            self.looked = false;
            self.watch.take_news()?;
            if !self.watch.has_keeper() {
                engine.tend(&self.place, &engine.view_without_last(&self.place)?)?;
                self.watch.take_news()?;
            }
        }
        for watch in others {
            let has_news = match watch.fd() {
                Some(fd) => ready::is_readable(fd)?,
                None => true,
            };
            if has_news {
                watch.take_news()?;
            }
        }
        self.check()
    }
}

impl Driver {
    /// Waits until a child has ended, or until the given time. Questions of the child are for a person, and do not end
    /// the wait.
    pub fn wait(&mut self, child: &Place, until: Option<Instant>) -> Result<Waited, JobError> {
        self.wait_for(std::slice::from_ref(child), until, |views| {
            views.iter().find(|view| view.ended).map(|view| Box::new(view.clone()))
        })
    }

    /// Waits until all of them have ended, or until the given time.
    pub fn wait_all(&mut self, children: &[Place], until: Option<Instant>) -> Result<Waited<Vec<View>>, JobError> {
        self.wait_for(children, until, |views| views.iter().all(|view| view.ended).then(|| views.to_vec()))
    }

    /// Waits until the first of them has ended, or until the given time. Returns its position in the list.
    pub fn wait_any(&mut self, children: &[Place], until: Option<Instant>) -> Result<Waited<(usize, View)>, JobError> {
        self.wait_for(children, until, |views| {
            views.iter().enumerate().find(|(_, view)| view.ended).map(|(place, view)| (place, view.clone()))
        })
    }

    /// Waits for the answer to a message ([`Driver::send`]). `None`: its session ended without one.
    pub fn reply(
        &mut self,
        child: &Place,
        request: &str,
        until: Option<Instant>,
    ) -> Result<Waited<Option<TurnEnd>>, JobError> {
        let engine = self.engine().clone();
        let mut failed = None;
        let waited =
            self.wait_for(std::slice::from_ref(child), until, |views| match engine.reply_to(child, request) {
                Ok(Some(end)) => Some(Some(end)),
                Ok(None) => views.iter().any(|view| view.ended).then_some(None),
                Err(error) => {
                    failed = Some(error);
                    Some(None)
                }
            })?;
        failed.map_or(Ok(waited), |error| Err(error.into()))
    }

    /// Waits until `found` finds in the views of these sessions what it looks for.
    pub fn wait_for<T>(
        &mut self,
        places: &[Place],
        until: Option<Instant>,
        mut found: impl FnMut(&[View]) -> Option<T>,
    ) -> Result<Waited<T>, JobError> {
        // Subscribe first, look afterwards: a change in between wakes us.
        let mut watches = places.iter().map(SessionWatch::state_only).collect::<Result<Vec<_>, _>>()?;
        loop {
            self.own.check()?;
            let mut views = Vec::with_capacity(places.len());
            for (place, watch) in places.iter().zip(&mut watches) {
                let view = self.engine.view_without_last(place)?;
                if !view.ended && !watch.has_keeper() {
                    self.engine.tend(place, &view)?;
                    watch.take_news()?;
                }
                views.push(view);
            }
            if let Some(found) = found(&views) {
                return Ok(Waited::Ended(found));
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(Waited::TimeIsUp);
            }
            self.own.sleep(&self.engine, &mut watches, until)?;
        }
    }

    /// Lands the work of a session. A request to stop undoes everything. A check that was cut off says nothing about
    /// the work: it is run again, as often as a check that the driver runs itself.
    pub fn land(&mut self, place: &Place, land: &Land) -> Result<Result<Landing, ostler_engine::Error>, JobError> {
        let mut kills = 0;
        loop {
            let ends = self.own.ends.as_fd();
            let landed = self.engine.land(place, land, || Ok(Some(ends)));
            if matches!(landed, Err(ostler_engine::Error::Left)) {
                self.own.check()?;
            }
            let failed = match &landed {
                Ok(Landing::CheckFailed { check, .. }) => self.engine.settled(check.id)?,
                Ok(_) | Err(_) => None,
            };
            let Some(check) = failed else { return Ok(landed) };
            match self.cut_off(&check, &self.engine.view_without_last(&check)?)? {
                Some(CutOff::Stopped) => {}
                Some(CutOff::Killed) if kills + 1 < CHECKS => kills += 1,
                Some(CutOff::Killed) | None => return Ok(landed),
            }
            self.own.check()?;
        }
    }

    /// Waits until a branch is at another commit than `from`. Returns that commit.
    pub fn wait_for_move(&mut self, repository: &Repository, branch: &str, from: &str) -> Result<String, JobError> {
        loop {
            // Watch first, look afterwards: a change in between wakes us.
            let watch = BranchWatch::new(repository, branch);
            if let Some(now) = repository.commit(&format!("refs/heads/{branch}")).map_err(ostler_engine::Error::from)?
                && now != from
            {
                return Ok(now);
            }
            self.own.sleep_beside(&self.engine, &mut [], watch.look_again(), watch.fd())?;
        }
    }

    pub(super) fn wait_for_answer(&mut self, ask: &Ask) -> Result<PersonsAnswer, JobError> {
        let place = self.place.clone();
        let mut asked = false;
        loop {
            self.own.check()?;
            if let Some(answer) = self.engine.answer_of_person(&place, &ask.request)? {
                return Ok(answer);
            }
            let open = self.engine.view_without_last(&place)?.asking.is_some_and(|open| open.request == ask.request);
            if !open && !asked {
                self.engine.ask_person(&place, ask.clone())?;
                asked = true;
                continue;
            }
            self.own.sleep(&self.engine, &mut [], None)?;
        }
    }
}
