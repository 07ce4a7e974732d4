//! A machine that shuts down tells all processes at once, in any order. Whichever process is told first, the session
//! was stopped.

use super::{Effect, SYSTEM, State, step};
use crate::event::{Entry, Event, StopHow};
use crate::fact::{TurnEnd, Verdict};
use crate::outcome::{Exit, Kind, Outcome, judge};
use crate::record::{Channel, Ending, Lines, Plan};

struct World {
    state: State,
    wanted: Vec<Effect>,
    now_ms: u64,
}

impl World {
    fn new(channel: Channel) -> World {
        let ending = Ending::EndOfInput;
        let plan = Plan { channel, keep: true, ending, linger_ms: 2000, rules: crate::rules::Rules::default() };
        let mut world = World { state: State::new(plan.clone()), wanted: Vec::new(), now_ms: 1000 };
        world.after(0, Event::Started { plan, continues: false });
        world
    }

    /// Something happens so many milliseconds later.
    fn after(&mut self, ms: u64, event: Event) {
        self.now_ms += ms;
        let entry = Entry {
            at: jiff::Timestamp::UNIX_EPOCH,
            ms: self.now_ms,
            run: 1,
            out: None,
            request: None,
            inbox: None,
            notify: None,
            event,
        };
        (self.state, self.wanted) = step(self.state.clone(), &entry);
    }

    fn is_told_to_stop(&mut self, ms: u64) {
        let why = "SIGTERM to the keeper".to_owned();
        self.after(ms, Event::StopRequested { by: SYSTEM.to_owned(), why, how: StopHow::Interrupt, grace_ms: 5000 });
    }

    fn exits(&mut self, exit: Exit) {
        self.after(10, Event::Exited { exit, progress: false });
        self.after(0, Event::Empty);
    }

    fn outcome(&self) -> Outcome {
        assert_eq!(self.wanted, [Effect::Conclude], "{:?}", self.state);
        judge(&self.state, self.now_ms)
    }
}

const TERMINATED: Exit = Exit { code: None, signal: Some(15) };

#[test]
fn a_program_that_is_told_before_us_was_stopped_all_the_same() {
    let mut world = World::new(Channel::Command);
    world.exits(TERMINATED);
    let [Effect::WakeAt { ms }] = world.wanted[..] else { unreachable!("{:?}", world.wanted) };
    assert!(ms > world.now_ms, "it is not judged before we can have heard");
    world.is_told_to_stop(100);
    let outcome = world.outcome();
    assert_eq!((outcome.kind, outcome.cause.as_str()), (Kind::Stopped, "stopped by the system: SIGTERM to the keeper"));
}

#[test]
fn a_program_that_another_process_terminated_has_failed() {
    let mut world = World::new(Channel::Command);
    world.exits(TERMINATED);
    world.after(5000, Event::Tick);
    let outcome = world.outcome();
    assert_eq!((outcome.kind, outcome.cause.as_str()), (Kind::Failed, "the program was killed by SIGTERM"));
}

#[test]
fn an_agent_on_its_way_out_is_not_interrupted_and_one_that_stays_is() {
    let mut world = World::new(Channel::Lines(Lines::Turns));
    world.after(10, Event::TurnStarted);
    world.is_told_to_stop(10);
    assert!(!world.wanted.contains(&Effect::Interrupt), "{:?}", world.wanted);
    let mut stays = World { state: world.state.clone(), wanted: Vec::new(), now_ms: world.now_ms };
    stays.after(600, Event::Tick);
    assert!(stays.wanted.contains(&Effect::Interrupt), "{:?}", stays.wanted);

    world.exits(Exit { code: Some(143), signal: None });
    assert!(world.state.has_exited());
    world.after(0, Event::Saved { saved: crate::outcome::Saved::Verified });
    assert_eq!(world.outcome().kind, Kind::Stopped);
}

/// How long the proof of the last turn is waited for after the exit, if the session was stopped like this.
fn proof_is_waited_for(how: StopHow) -> u64 {
    let mut world = World::new(Channel::Lines(Lines::Turns));
    let end = TurnEnd {
        verdict: Verdict::Succeeded,
        text: None,
        reason: None,
        tokens: None,
        cost_usd: None,
        messages: Vec::new(),
    };
    world.after(10, Event::TurnEnded { end });
    world.after(10, Event::StopRequested { by: "a person".to_owned(), why: "stop".to_owned(), how, grace_ms: 5000 });
    world.exits(Exit { code: None, signal: Some(9) });
    let [Effect::Prove { until_ms }] = world.wanted[..] else { unreachable!("{:?}", world.wanted) };
    until_ms - world.state.exit_ms()
}

#[test]
fn a_session_that_was_killed_is_looked_at_once_more_and_not_waited_for() {
    assert_eq!(proof_is_waited_for(StopHow::Kill), 0);
    assert!(proof_is_waited_for(StopHow::Interrupt) > 0);
}
