//! Drives the life cycle through events in every order and checks its invariants.

use super::{Conversation, Effect, State, step};
use crate::event::{Entry, Event, StopHow};
use crate::fact::{Ask, TurnEnd, UsageLimit, Verdict};
use crate::id::SessionId;
use crate::outcome::{Exit, Kind, Saved, Source, judge};
use crate::record::{Channel, Ending, Lines, Plan, Speaks, Tty};
use crate::rules::{OWN_CODES, OnLimit, Restart, Rules};
use crate::start_when::Begin;
use crate::view::Phase;
use jiff::Timestamp;
use proptest::prelude::*;

fn plan() -> impl Strategy<Value = Plan> {
    let ending = prop_oneof![
        Just(Ending::EndOfInput),
        Just(Ending::Hangup),
        Just(Ending::Terminate),
        Just(Ending::Interrupt),
        Just(Ending::Typed { keys: "/quit\r".to_owned() }),
    ];
    let channel = prop_oneof![
        Just(Channel::Command),
        Just(Channel::Lines(Lines::Turns)),
        Just(Channel::Lines(Lines::OpenedTurns)),
        Just(Channel::Lines(Lines::OneTurn)),
        Just(Channel::Tty(Tty::Nothing)),
        Just(Channel::Tty(Tty::Hooks)),
    ];
    let restart = prop_oneof![
        2 => Just(None),
        1 => (0..4u32).prop_map(|times| Some(Restart::OnFailure { times })),
        1 => Just(Some(Restart::WhenKilled)),
    ];
    let limits = (
        prop::option::weighted(0.2, 0..20_000u64),
        prop::option::weighted(0.2, 0..10_000u64),
        prop::option::weighted(0.2, 1..4u32),
        prop::option::weighted(0.2, Just(0.05)),
        prop::option::of(prop_oneof![
            3 => Just(OnLimit::Wait),
            1 => Just(OnLimit::Fail),
            1 => Just(OnLimit::Agent { name: "t".to_owned() })
        ]),
    );
    let rules =
        (restart, limits).prop_map(|(restart, (timeout_ms, turn_timeout_ms, max_turns, budget_usd, on_limit))| Rules {
            restart,
            timeout_ms,
            turn_timeout_ms,
            budget_usd,
            max_turns,
            // For limits that were set when the session was new, and for limits that were set later.
            budget_from_usd: budget_usd.filter(|usd| *usd > 0.5).map(|_| 0.0),
            turns_from: max_turns.filter(|turns| turns % 2 == 0).map(|_| 0),
            on_limit,
        });
    (channel, any::<bool>(), ending, rules).prop_map(|(channel, keep, ending, rules)| Plan {
        channel,
        keep,
        ending,
        linger_ms: 2000,
        rules,
    })
}

fn turn_end() -> impl Strategy<Value = TurnEnd> {
    prop_oneof![Just(Verdict::Succeeded), Just(Verdict::Failed), Just(Verdict::Interrupted)].prop_map(|verdict| {
        TurnEnd { verdict, text: None, reason: None, tokens: None, cost_usd: Some(0.03), messages: Vec::new() }
    })
}

fn ask() -> Ask {
    Ask {
        request: "q".to_owned(),
        tool: None,
        input: serde_json::Value::Null,
        text: String::new(),
        suggestions: serde_json::Value::Null,
        details: serde_json::Value::Null,
    }
}

fn exit() -> impl Strategy<Value = Exit> {
    prop_oneof![
        (0..3).prop_map(|code| Exit { code: Some(code), signal: None }),
        prop_oneof![Just(2), Just(9), Just(15)].prop_map(|signal| Exit { code: None, signal: Some(signal) }),
        Just(Exit::UNKNOWN),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let by = || "someone".to_owned();
    let how = prop_oneof![Just(StopHow::Interrupt), Just(StopHow::AfterTurn), Just(StopHow::Kill)];
    prop_oneof![
        Just(Event::TurnStarted),
        Just(Event::NoTurn),
        Just(Event::Ready),
        Just(Event::Opened { native_id: None }),
        Just(Event::NotOpened { reason: by() }),
        turn_end().prop_map(|end| Event::TurnEnded { end }),
        (1..6u64, any::<bool>()).prop_map(move |(n, now)| Event::Accepted { n, place: 0, by: by(), now }),
        (1..6u64).prop_map(move |n| Event::Withdrawn { n, by: by() }),
        Just(Event::Asked { ask: ask() }),
        any::<bool>().prop_map(|runs| Event::Background { task: "t".to_owned(), runs }),
        Just(Event::Answered { request: "q".to_owned(), by: by(), allowed: true, always: None }),
        Just(Event::InterruptRequested { by: by(), why: None }),
        prop::option::of(0..50i64)
            .prop_map(move |resets_at| Event::Limited { limit: UsageLimit { resets_at, ..UsageLimit::new("x") } }),
        Just(Event::WaitOver { by: by() }),
        Just(Event::Returned { n: 1, place: 0 }),
        (how, 0..8000u64).prop_map(move |(how, grace_ms)| Event::StopRequested { by: by(), why: by(), how, grace_ms }),
        (exit(), any::<bool>()).prop_map(|(exit, progress)| Event::Exited { exit, progress }),
        Just(Event::KeeperStarted { pid: 2, start: None, version: String::new() }),
        Just(Event::HolderReplaced { pid: 2 }),
        Just(Event::Left { processes: vec!["x".to_owned()] }),
        Just(Event::Begun),
        any::<bool>().prop_map(move |stopped| Event::NotBegun { reason: by(), stopped }),
        Just(Event::Tick),
        Just(Event::Unknown),
    ]
}

/// Whether only the program itself can report this.
fn is_said(event: &Event) -> bool {
    matches!(
        event,
        Event::TurnStarted
            | Event::NoTurn
            | Event::Ready
            | Event::Opened { .. }
            | Event::NotOpened { .. }
            | Event::TurnEnded { .. }
            | Event::Asked { .. }
            | Event::Background { .. }
    )
}

/// The event that a correct keeper writes for an effect.
fn event_for(effect: Effect, state: &State, now_ms: u64) -> Option<Event> {
    match effect {
        Effect::Feed { n } => Some(if state.feeding().is_some() {
            Event::Delivered { n }
        } else {
            Event::Feeding { n, written: None, kept: None }
        }),
        Effect::GiveUpTurn => Some(Event::NoTurn),
        Effect::EndInput => Some(Event::InputEnded),
        Effect::Interrupt => Some(Event::InterruptSent),
        Effect::Withdraw => Some(Event::NotBegun { reason: "withdrawn".to_owned(), stopped: true }),
        Effect::Prove { until_ms } => {
            Some(Event::Saved { saved: if now_ms >= until_ms { Saved::Unverified } else { Saved::Verified } })
        }
        Effect::AskToLeave => Some(Event::EndAsked),
        Effect::Signal { signal } => Some(Event::Signalled { signal }),
        Effect::LookAtTree => Some(Event::Empty),
        Effect::ClearTree { forced } => Some(Event::Cleared { forced }),
        Effect::Conclude => Some(Event::Ended { outcome: judge(state, now_ms) }),
        Effect::Limit { reached } => Some(state.event_at(reached)),
        Effect::EndWait => Some(Event::WaitOver { by: "ostler".to_owned() }),
        Effect::Continue => Some(Event::Continued),
        Effect::HandOver => Some(match state.handover.as_ref().and_then(|handover| handover.id) {
            None => Event::HandingOver { agent: "t".to_owned(), id: SessionId::from_random(7) },
            Some(_) => Event::HandedOver,
        }),
        // The clock of this test: second 1 of the wall clock is 1000 milliseconds since boot.
        Effect::WakeAtTime { second } => {
            (now_ms >= u64::try_from(second).unwrap_or(0) * 1000).then(|| Event::WaitOver { by: "ostler".to_owned() })
        }
        Effect::Finish | Effect::NextRun | Effect::WakeAt { .. } => None,
    }
}

struct World {
    state: State,
    now_ms: u64,
    run: u32,
    outcomes: u32,
    requested: bool,
    /// When each further run began, and how the one before it ended.
    began: Vec<(u64, Option<Exit>)>,
}

impl World {
    /// A world in which nothing has happened yet.
    fn empty(plan: Plan) -> World {
        let state = State::new(plan);
        World { state, now_ms: 0, run: 1, outcomes: 0, requested: false, began: Vec::new() }
    }

    fn new(plan: Plan) -> World {
        let mut world = World::empty(plan.clone());
        world.happens(Event::Started { plan, continues: false });
        world
    }

    /// A world whose program waits to be started.
    fn queued(plan: Plan) -> World {
        let mut world = World::empty(plan.clone());
        world.happens(Event::Queued { plan });
        world
    }

    fn happens(&mut self, event: Event) -> Vec<Effect> {
        let before = self.state.clone();
        if matches!(event, Event::StopRequested { .. }) && before.outcome.is_none() {
            self.requested = true;
        }
        let entry = Entry {
            at: Timestamp::UNIX_EPOCH,
            ms: self.now_ms,
            run: self.run,
            out: None,
            request: None,
            inbox: None,
            notify: None,
            event,
        };
        let (state, effects) = step(before.clone(), &entry);
        let next_run = state.run > before.run;
        if before.outcome.is_some() && !next_run {
            assert_eq!(state.outcome, before.outcome, "ended is final for a run");
        } else if state.outcome.is_some() {
            self.outcomes += 1;
        }
        assert!(!self.requested || state.stop.is_some(), "a stop request is never forgotten");
        let feeds = effects.iter().any(|effect| matches!(effect, Effect::Feed { .. }));
        assert!(!feeds || state.begin == Begin::Begun, "nothing is delivered to a program that waits");
        assert!(!feeds || state.stop.is_none(), "nothing is delivered after the request to stop");
        assert!(!feeds || state.steps.asked_ms.is_none(), "nothing is delivered to a process that was asked to leave");
        assert!(!feeds || state.conversation == Conversation::Open, "messages wait until the conversation is open");
        if matches!(state.conversation, Conversation::Refused { .. }) && state.outcome.is_none() {
            let leaves = state.phase() == Phase::Stopping || state.phase() == Phase::Waiting;
            assert!(leaves, "there is nothing to stay for");
        }
        assert!(state.has_exited() || !before.has_exited() || next_run, "nothing resurrects a process");
        assert!(!effects.contains(&Effect::NextRun) || state.stop.is_none(), "a stopped session stays ended");
        assert!(!feeds || !state.waits_for_limit(), "nothing is delivered while it waits");
        let other = state.handover.is_some();
        assert!(!other || !feeds && !effects.contains(&Effect::NextRun), "another agent continues, and not this one");
        if state.phase() == Phase::Waiting {
            assert!(state.stop.is_none() && state.outcome.is_none());
        }
        let never = |state: &State| matches!(state.begin, Begin::Never { .. });
        assert!(never(&state) || !never(&before) || next_run, "what was withdrawn never begins");
        let waits_again = state.begin != Begin::Begun && before.begin == Begin::Begun && before.run > 0;
        assert!(!waits_again || next_run, "what has begun does not wait again");
        self.state = state;
        effects
    }

    /// Ends this run with its outcome and starts the next one.
    fn next_run(&mut self) -> Vec<Effect> {
        self.began.push((self.now_ms, self.state.exit()));
        let (plan, now_ms) = (self.state.plan.clone(), self.now_ms);
        self.happens(Event::Ended { outcome: judge(&self.state, now_ms) });
        self.run += 1;
        self.happens(Event::Started { plan, continues: true })
    }

    /// Carries out effects until none is left. Returns when to look again.
    fn settle(&mut self, mut effects: Vec<Effect>) -> Option<u64> {
        for _ in 0..50 {
            let wake = effects.iter().find_map(|effect| match effect {
                Effect::WakeAt { ms } => Some(*ms),
                Effect::WakeAtTime { second } => Some(u64::try_from(*second).unwrap_or(0) * 1000),
                _ => None,
            });
            if effects.contains(&Effect::NextRun) {
                effects = self.next_run();
                continue;
            }
            match effects.iter().find_map(|&effect| event_for(effect, &self.state, self.now_ms)) {
                Some(event) => effects = self.happens(event),
                None => return wake,
            }
        }
        unreachable!("effects never settle: {:?} gives {:?}", self.state, effects);
    }
}

#[test]
fn a_typed_message_that_begins_no_turn_is_given_up_and_the_next_one_is_typed() {
    let plan = Plan {
        channel: Channel::Tty(Tty::Hooks),
        keep: false,
        ending: Ending::Hangup,
        linger_ms: 2000,
        rules: crate::rules::Rules::default(),
    };
    let accepted = |n| Event::Accepted { n, place: 0, by: "t".to_owned(), now: false };
    let mut world = World::new(plan);
    assert_eq!(world.happens(accepted(1)), [], "nothing is typed into a dialog");
    let effects = world.happens(Event::Ready);
    world.settle(effects);
    let effects = world.happens(Event::Delivered { n: 1 });
    let wake = world.settle(effects);
    assert!(world.state.turn_running() && world.state.last_turn().is_none());
    assert_eq!(world.happens(accepted(2)), [Effect::WakeAt { ms: wake.unwrap_or(0) }], "one at a time");
    world.now_ms = wake.unwrap_or(0);
    let effects = world.happens(Event::Tick);
    world.settle(effects);
    assert!(wake.is_some());
    assert_eq!((world.state.turns, world.state.last_fed().map(|message| message.n)), (0, Some(2)));
    world.happens(Event::TurnStarted);
    assert!(world.state.turn_is_told());
}

/// The pauses after a hundred and ten kills of a driver, each so long after its start.
fn pauses_of_a_driver(lived_ms: u64, progress: bool) -> Vec<u64> {
    let rules = Rules { restart: Some(Restart::WhenKilled), ..Rules::default() };
    let plan = Plan { channel: Channel::Command, keep: false, ending: Ending::Terminate, linger_ms: 0, rules };
    let mut world = World::new(plan);
    let mut pauses = Vec::new();
    for _ in 0..110 {
        world.now_ms += lived_ms;
        let killed_ms = world.now_ms;
        let effects = world.happens(Event::Exited { exit: Exit { code: None, signal: Some(9) }, progress });
        let mut wake = world.settle(effects);
        while let Some(ms) = wake.filter(|_| world.state.has_exited() && world.state.outcome.is_none()) {
            world.now_ms = ms;
            let effects = world.happens(Event::Tick);
            wake = world.settle(effects);
        }
        if world.state.outcome.is_some() {
            break;
        }
        pauses.push(world.now_ms - killed_ms);
    }
    pauses
}

#[test]
fn a_driver_that_is_killed_often_waits_long_only_when_it_gets_nowhere() {
    assert_eq!(pauses_of_a_driver(20, true), [0; 110], "it takes steps");
    let lives = pauses_of_a_driver(700, false);
    assert_eq!((lives.len(), lives.iter().max()), (100, Some(&1000)), "it comes further than its start");
    let young = pauses_of_a_driver(20, false);
    assert_eq!((young.len(), young.iter().max()), (100, Some(&60_000)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn in_every_order_of_events_the_invariants_hold(plan in plan(), events in prop::collection::vec((event(), 0..3000u64), 0..40)) {
        let mut world = World::new(plan);
        let mut reported = false;
        for (event, pause) in events {
            world.now_ms += pause;
            // A process that has ended reports nothing more.
            if world.state.has_exited() && matches!(event, Event::TurnEnded { .. }) {
                continue;
            }
            reported |= matches!(&event, Event::TurnEnded { end } if end.verdict == Verdict::Succeeded);
            let effects = world.happens(event);
            world.settle(effects);
        }
        prop_assert!(world.outcomes <= world.run, "at most one outcome for each run");
        if let Some(outcome) = &world.state.outcome {
            let may_be_by_exit = matches!(world.state.plan.speaks(), Speaks::Bytes | Speaks::Hooks);
            let clean_exit = may_be_by_exit && outcome.exit_code == Some(0);
            prop_assert!(outcome.kind != Kind::Succeeded || reported || clean_exit, "no success without evidence");
            prop_assert!(outcome.kind != Kind::Lost || outcome.source == Source::None);
        }
    }

    #[test]
    fn after_a_stop_request_an_agent_that_does_not_react_is_killed_after_the_grace_period(plan in plan(), grace in 0..8000u64, in_turn in any::<bool>()) {
        let mut world = World::new(plan);
        if in_turn {
            world.happens(Event::TurnStarted);
        }
        let request = Event::StopRequested { by: "t".to_owned(), why: "t".to_owned(), how: StopHow::Interrupt, grace_ms: grace };
        let mut effects = world.happens(request);
        while let Some(wake) = world.settle(effects) {
            prop_assert!(wake > world.now_ms, "a wake-up in the past would spin");
            world.now_ms = wake;
            effects = world.happens(Event::Tick);
        }
        prop_assert!(world.state.steps.killed);
        prop_assert!(world.now_ms <= grace + 1);
    }

    #[test]
    fn a_queued_session_waits_without_a_clock_and_a_stop_ends_it_with_nothing_run(
        plan in plan(), events in prop::collection::vec((event(), 0..3000u64), 0..20), kill in exit(),
    ) {
        let mut world = World::queued(plan);
        for (event, pause) in events {
            // A program that waits reports nothing.
            if world.state.begin != Begin::Begun && is_said(&event) {
                continue;
            }
            world.now_ms += pause;
            let effects = world.happens(event);
            if world.state.is_queued() && !world.state.has_exited() && world.state.outcome.is_none() {
                let wanted: &[Effect] = if world.state.stop.is_some() { &[Effect::Withdraw] } else { &[] };
                prop_assert_eq!(effects.as_slice(), wanted);
                let phase = if world.state.stop.is_some() { Phase::Stopping } else { Phase::Queued };
                prop_assert_eq!(world.state.phase(), phase);
            }
        }
        let begun = world.state.begin == Begin::Begun;
        let how = StopHow::Interrupt;
        let effects = world.happens(Event::StopRequested { by: "t".to_owned(), why: "t".to_owned(), how, grace_ms: 10 });
        world.settle(effects);
        if !begun && world.state.outcome.is_none() {
            prop_assert!(world.state.steps.killed || world.state.has_exited());
            let effects = world.happens(Event::Exited { exit: kill, progress: false });
            let mut wake = world.settle(effects);
            while let Some(ms) = wake.filter(|_| world.state.outcome.is_none()) {
                world.now_ms = world.now_ms.max(ms);
                let effects = world.happens(Event::Tick);
                wake = world.settle(effects);
            }
            let outcome = world.state.outcome.clone();
            prop_assert!(outcome.is_some());
            if let Some(outcome) = outcome {
                prop_assert_eq!((outcome.kind, outcome.turns, outcome.duration_ms), (Kind::Stopped, 0, None));
                prop_assert!(outcome.cause.ends_with("nothing ran"), "{}", outcome.cause);
            }
        }
    }

    #[test]
    fn a_replacement_keeper_derives_the_same_effects(plan in plan(), events in prop::collection::vec(event(), 0..20)) {
        let mut world = World::new(plan);
        for event in events {
            let wanted = world.happens(event);
            let again = world.happens(Event::KeeperStarted { pid: 3, start: None, version: String::new() });
            prop_assert_eq!(wanted, again);
        }
    }

    #[test]
    fn a_program_that_keeps_ending_is_started_as_often_as_its_rule_says_and_never_after_a_stop(
        channel in prop_oneof![Just(Channel::Command), Just(Channel::Tty(Tty::Nothing)), Just(Channel::Lines(Lines::Turns))],
        restart in prop_oneof![(0..5u32).prop_map(|times| Restart::OnFailure { times }), Just(Restart::WhenKilled)],
        exits in prop::collection::vec((prop_oneof![Just(9), Just(1), Just(0), Just(200)], 0..20_000u64), 1..40),
        stop_at in 0..60usize,
    ) {
        let plan = Plan { channel, keep: true, ending: Ending::Terminate, linger_ms: 0, rules: Rules { restart: Some(restart), ..Rules::default() } };
        let mut world = World::new(plan);
        for (n, (how, lived)) in exits.into_iter().enumerate() {
            world.now_ms += lived;
            let exit = if how == 9 { Exit { code: None, signal: Some(9) } } else { Exit { code: Some(how), signal: None } };
            let mut effects = world.happens(Event::Exited { exit, progress: false });
            let mut wake = world.settle(effects);
            if n == stop_at {
                // During the pause, or after the end, or as the next run has just begun.
                let runs = world.run;
                let request = Event::StopRequested { by: "t".to_owned(), why: "t".to_owned(), how: StopHow::Interrupt, grace_ms: 1 };
                effects = world.happens(request);
                world.settle(effects);
                world.now_ms += 1_000_000;
                effects = world.happens(Event::Exited { exit, progress: false });
                world.settle(effects);
                effects = world.happens(Event::Tick);
                prop_assert_eq!(world.settle(effects), None, "nothing is due any more");
                prop_assert_eq!(world.run, runs, "nothing restarts after a stop");
                prop_assert_eq!(world.state.phase(), Phase::Ended);
                break;
            }
            while let Some(ms) = wake.filter(|_| world.state.has_exited() && world.state.outcome.is_none()) {
                prop_assert!(ms > world.now_ms, "a wake-up in the past would spin");
                prop_assert!(world.state.phase() == Phase::Waiting || world.state.phase() == Phase::Stopping);
                world.now_ms = ms;
                effects = world.happens(Event::Tick);
                wake = world.settle(effects);
            }
            if world.state.outcome.is_some() {
                break;
            }
        }
        let times = match restart { Restart::OnFailure { times } => times, Restart::WhenKilled | Restart::Unknown => u32::MAX };
        for (_, exit) in &world.began {
            match restart {
                Restart::WhenKilled => {
                    prop_assert!(exit.is_some_and(|exit| exit.code.is_none_or(|code| !OWN_CODES.contains(&code))));
                }
                Restart::OnFailure { .. } | Restart::Unknown => {}
            }
        }
        // No run lasts long enough to have shown that it works.
        prop_assert!(u32::try_from(world.began.len()).is_ok_and(|began| began <= times));
    }
}
