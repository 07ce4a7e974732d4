//! `ostler wait`: block, without polling, until sessions are where you want them. Any number of waiters, and none of them
//! needs anything to be running: they read the files and are woken by the kernel.

use crate::args::{Until, Wait};
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::say;
use crate::ui::asking::{UNSEEN, how_to_answer, in_a_line};
use crate::ui::called::called;
use crate::ui::style::Style;
use crate::ui::time::parse_duration;
use ostler_core::event::StopHow;
use ostler_core::fact::Verdict;
use ostler_core::life::State;
use ostler_core::outcome::Kind;
use ostler_core::record::Mode;
use ostler_core::view::{Phase, View};
use ostler_engine::request::{SILENCE, look_and_record, nudge};
use ostler_engine::watch::Watch;
use ostler_store::home::Place;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::time::{Duration, Instant};

/// One session that is waited for.
struct Waited {
    place: Place,
    watch: Watch,
    view: View,
    /// Something may have happened since the view was made.
    changed: bool,
    turns_before: Option<u32>,
    code: Option<Code>,
    /// It waits for an answer, so that nothing else will come of it.
    asks: bool,
}

pub fn run(context: &Context, args: &Wait) -> Result<Code> {
    let duration = |text: &Option<String>| text.as_deref().map(parse_duration).transpose().map_err(Failure::usage);
    let limit = duration(&args.timeout)?.or(duration(&args.poll)?);
    let deadline = limit.map(|limit| Instant::now() + limit);
    let places = args.ids.iter().map(|id| Ok(context.engine.home.select(id)?)).collect::<Result<Vec<_>>>()?;
    let mut waited = places.into_iter().map(|place| Waited::new(place, args.until)).collect::<Result<Vec<_>>>()?;
    let mut time_left = true;
    if args.until == Until::Asking && args.through_questions {
        return Err(Failure::usage("--until asking waits for a question; remove --through-questions"));
    }
    // Who waits for questions waits for those of all of them.
    let questions_end_it = args.until != Until::Asking && !args.through_questions;
    loop {
        for one in waited.iter_mut().filter(|one| one.code.is_none()) {
            one.look(args.until)?;
        }
        if questions_end_it && waited.iter().any(|one| one.asks) {
            return report_questions(args, &waited);
        }
        let done = waited.iter().filter(|one| one.code.is_some()).count();
        if done == waited.len() || (args.any && done > 0) {
            return report(args, &waited);
        }
        // Only after a last look: what is said is true now, not when the waiting began.
        if !time_left {
            return time_is_up(args, &waited);
        }
        time_left = sleep(&mut waited, deadline)?;
    }
}

/// Waits for one session to end, for commands that must know.
pub fn until_ended(place: &Place) -> Result<View> {
    let mut waited = [Waited::new(place.clone(), Until::Ended)?];
    loop {
        waited[0].look(Until::Ended)?;
        if waited[0].view.ended {
            let [waited] = waited;
            return Ok(waited.view);
        }
        // Whoever waits here has asked for the end, so a helper that somebody stopped is told to go on.
        if !sleep(&mut waited, Some(Instant::now() + SILENCE))? {
            nudge(waited[0].watch.folder())?;
        }
    }
}

impl Waited {
    fn new(place: Place, until: Until) -> Result<Waited> {
        // Subscribe first, look afterwards: what happens in between wakes us.
        let watch = Watch::state_only(&place)?;
        let view = look_and_record(&place)?;
        let runs = matches!(view.state, Phase::Starting | Phase::Working | Phase::Asking | Phase::Stopping);
        let turns_before = (until == Until::Turn && runs).then_some(view.turns);
        Ok(Waited { place, watch, view, changed: false, turns_before, code: None, asks: false })
    }

    fn look(&mut self, until: Until) -> Result<()> {
        if std::mem::take(&mut self.changed) {
            self.view = look_and_record(&self.place)?;
        }
        self.asks = self.awaits_answer()?;
        let view = &self.view;
        if let Some(outcome) = view.outcome.as_ref().filter(|_| view.ended) {
            self.code = Some(Code::of(outcome));
            return Ok(());
        }
        self.code = match until {
            Until::Ended => None,
            // Also one that is to stop after its turn, which waits for the answer.
            Until::Asking => view.asking.is_some().then_some(Code::Asks),
            // A turn that nothing tells of would be waited for until the end of the session.
            Until::Turn if view.state == Phase::Running => return Err(has_no_turns(view)),
            Until::Turn => match self.turns_before {
                None => Some(turn_code(view)),
                // What was hoped for may not have become a turn: none runs any more, and none waits.
                Some(before) if view.turns > before || view.state == Phase::Idle => Some(turn_code(view)),
                Some(_) => None,
            },
        };
        Ok(())
    }

    /// A session that is to stop after its turn waits for the answer as well; one that is to stop now does not.
    fn awaits_answer(&self) -> Result<bool> {
        Ok(match self.view.state {
            Phase::Asking => true,
            Phase::Stopping if self.view.asking.is_some() => {
                self.state()?.stop.is_some_and(|stop| stop.how == StopHow::AfterTurn)
            }
            Phase::Starting | Phase::Working | Phase::Running | Phase::Idle | Phase::Stopping | Phase::Ended => false,
        })
    }

    fn state(&self) -> Result<State> {
        let folder = self.watch.folder();
        let run = folder.run(self.view.run)?;
        Ok(ostler_store::look::fold(folder, &run, &run.record()?, &folder.session()?)?.state)
    }
}

/// How the last turn of a session that goes on went.
fn turn_code(view: &View) -> Code {
    match view.last_turn.as_ref().map(|turn| turn.verdict) {
        None | Some(Verdict::Succeeded) => Code::Succeeded,
        Some(Verdict::Failed) => Code::Failed,
        Some(Verdict::Interrupted) => Code::Stopped,
    }
}

/// Why nobody can wait for a turn of it, and what to wait for instead.
fn has_no_turns(view: &View) -> Failure {
    let (id, agent) = (view.id, &view.agent);
    let reason = match view.mode {
        _ if agent == "command" => format!("{} is a command and has no turns", called(view)),
        Mode::Terminal => format!("{agent} does not report its turns in a terminal"),
        Mode::Headless => format!("{agent} does not report its turns"),
    };
    Failure::usage(format!("{reason}; wait for its end: ostler wait {id}, or look: ostler attach {id}"))
}

/// Sleeps until something may have changed. False when the time is up.
fn sleep(waited: &mut [Waited], deadline: Option<Instant>) -> Result<bool> {
    let open: Vec<usize> = (0..waited.len()).filter(|&index| waited[index].code.is_none()).collect();
    // A session of which nothing lives has just changed: look again at once.
    let gone: Vec<usize> = open.iter().copied().filter(|&index| waited[index].watch.descriptor().is_none()).collect();
    if !gone.is_empty() {
        for index in gone {
            waited[index].watch.heed()?;
            waited[index].changed = true;
        }
        return Ok(true);
    }
    let mut fds: Vec<PollFd<'_>> = open
        .iter()
        .filter_map(|&index| waited[index].watch.descriptor())
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
    for (index, ready) in open.into_iter().zip(ready) {
        if ready {
            waited[index].watch.heed()?;
            waited[index].changed = true;
        }
    }
    Ok(true)
}

/// What is said at the end is true then: all are looked at once more.
fn time_passed(waited: &mut [Waited]) -> bool {
    waited.iter_mut().for_each(|one| one.changed = true);
    false
}

/// What it asks, and how to answer it.
pub fn report_question(view: &View) -> Result<()> {
    let Some(ask) = &view.asking else {
        return Ok(());
    };
    let question = in_a_line(ask, Style { colour: false }, UNSEEN);
    say!("{} status=asking: {question}; answer: {}", view.id, how_to_answer(view))
}

/// What has ended, and what asks: the latter is for a person, and how to answer it is said.
fn report_questions(args: &Wait, waited: &[Waited]) -> Result<Code> {
    for one in waited.iter().filter(|one| one.asks || one.code.is_some()) {
        let view = &one.view;
        match &view.asking {
            _ if args.json => say!("{}", serde_json::to_string(view).unwrap_or_default())?,
            Some(_) if one.asks => report_question(view)?,
            Some(_) | None => say!("{}", line(view))?,
        }
    }
    Ok(Code::Asks)
}

fn report(args: &Wait, waited: &[Waited]) -> Result<Code> {
    for one in waited.iter().filter(|one| one.code.is_some() || !args.any) {
        if args.json {
            say!("{}", serde_json::to_string(&one.view).unwrap_or_default())?;
        } else {
            say!("{}", line(&one.view))?;
        }
    }
    let code = worst(waited.iter().filter_map(|one| one.code));
    // "Lost" is what a poller must not take for "still running".
    Ok(if args.poll.is_some() && code == Code::Lost { Code::TimedOut } else { code })
}

/// Of several results the one that a script must not miss.
fn worst(codes: impl Iterator<Item = Code>) -> Code {
    let rank = |code: &Code| match code {
        Code::Succeeded => 0,
        Code::Asks => 1,
        Code::NotSaved => 2,
        Code::Stopped => 3,
        Code::Failed => 4,
        Code::Lost => 5,
        Code::Usage | Code::NoSession | Code::Refused | Code::TimedOut | Code::Ours => 6,
    };
    codes.max_by_key(rank).unwrap_or(Code::Succeeded)
}

fn time_is_up(args: &Wait, waited: &[Waited]) -> Result<Code> {
    for one in waited {
        let view = &one.view;
        if args.json {
            say!("{}", serde_json::to_string(view).unwrap_or_default())?;
        } else if view.ended || one.code.is_some() {
            say!("{}", line(view))?;
        } else if args.poll.is_some() && is_gone(view) {
            say!(
                "{} status=ending; its process is gone and its outcome is not written yet; wait again: ostler wait {}",
                view.id,
                view.id
            )?;
        } else if args.poll.is_some() {
            say!(
                "{} status=alive state={} quiet={}s; wait again: ostler wait {}",
                view.id,
                view.state.word(),
                view.quiet_s,
                view.id
            )?;
        } else {
            say!("{} state={} quiet={}s; still alive when the time was up", view.id, view.state.word(), view.quiet_s)?;
        }
    }
    let ended = worst(waited.iter().filter_map(|one| one.code));
    let gone = waited.iter().any(|one| one.code.is_none() && is_gone(&one.view));
    Ok(match (args.poll.is_some(), ended) {
        (true, Code::Succeeded) if !gone => Code::Succeeded,
        (true, Code::Succeeded) | (false, _) => Code::TimedOut,
        (true, other) => other,
    })
}

/// Nothing of it works any more, and how it ended is not written down yet. An agent with one process per message has none
/// between two, and is well.
fn is_gone(view: &View) -> bool {
    !view.alive && view.state == Phase::Stopping
}

fn line(view: &View) -> String {
    let words = match &view.outcome {
        Some(outcome) => format!("{} status={} cause={:?}", view.id, outcome.kind.word(), outcome.cause),
        None => format!("{} state={}{}", view.id, view.state.word(), turn_words(view)),
    };
    ostler_screen::printable(&words).into_owned()
}

/// How the last turn of a session that goes on went: what `--until turn` waits for.
fn turn_words(view: &View) -> String {
    let Some(turn) = &view.last_turn else {
        return String::new();
    };
    let reason = turn.reason.as_ref().map(|reason| format!(" reason={reason:?}")).unwrap_or_default();
    format!(" turn={}{reason}", Kind::from(turn.verdict).word())
}
