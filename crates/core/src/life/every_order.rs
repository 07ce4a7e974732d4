//! Drives the life cycle through every order of events and holds it to its invariants.

use super::{Conversation, Effect, State, step};
use crate::event::{Entry, Event, StopHow};
use crate::fact::{Ask, TurnEnd, Verdict};
use crate::outcome::{Exit, Kind, Saved, Source, judge};
use crate::record::{Channel, Ending, Lines, Plan, Speaks, Tty};
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
    (channel, any::<bool>(), ending).prop_map(|(channel, keep, ending)| Plan { channel, keep, ending, linger_ms: 2000 })
}

fn turn_end() -> impl Strategy<Value = TurnEnd> {
    prop_oneof![Just(Verdict::Succeeded), Just(Verdict::Failed), Just(Verdict::Interrupted)].prop_map(|verdict| {
        TurnEnd { verdict, text: None, reason: None, tokens: None, cost_usd: None, messages: Vec::new() }
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
        Just(Event::InterruptRequested { by: by() }),
        (how, 0..8000u64).prop_map(move |(how, grace_ms)| Event::StopRequested { by: by(), why: by(), how, grace_ms }),
        exit().prop_map(|exit| Event::Exited { exit }),
        Just(Event::KeeperStarted { pid: 2, start: None, version: String::new() }),
        Just(Event::HolderReplaced { pid: 2 }),
        Just(Event::Left { processes: vec!["x".to_owned()] }),
        Just(Event::Tick),
        Just(Event::Unknown),
    ]
}

/// What a dutiful keeper answers to an effect.
fn dutifully(effect: Effect, state: &State, now_ms: u64) -> Option<Event> {
    match effect {
        Effect::Feed { n } => Some(if state.feeding().is_some() {
            Event::Delivered { n }
        } else {
            Event::Feeding { n, written: None, kept: None }
        }),
        Effect::GiveUpTurn => Some(Event::NoTurn),
        Effect::EndInput => Some(Event::InputEnded),
        Effect::Interrupt => Some(Event::InterruptSent),
        Effect::Prove { until_ms } => {
            Some(Event::Saved { saved: if now_ms >= until_ms { Saved::Unverified } else { Saved::Verified } })
        }
        Effect::AskToLeave => Some(Event::EndAsked),
        Effect::Signal { signal } => Some(Event::Signalled { signal }),
        Effect::LookAtTree => Some(Event::Empty),
        Effect::ClearTree { forced } => Some(Event::Cleared { forced }),
        Effect::Conclude => Some(Event::Ended { outcome: judge(state, now_ms) }),
        Effect::Finish | Effect::NextRun | Effect::WakeAt { .. } => None,
    }
}

struct World {
    state: State,
    now_ms: u64,
    outcomes: u32,
    requested: bool,
}

impl World {
    fn new(plan: Plan) -> World {
        let mut world = World { state: State::new(plan.clone()), now_ms: 0, outcomes: 0, requested: false };
        world.happens(Event::Started { plan });
        world
    }

    fn happens(&mut self, event: Event) -> Vec<Effect> {
        let before = self.state.clone();
        if matches!(event, Event::StopRequested { .. }) && before.outcome.is_none() {
            self.requested = true;
        }
        let entry =
            Entry { at: Timestamp::UNIX_EPOCH, ms: self.now_ms, run: 1, out: None, request: None, inbox: None, event };
        let (state, effects) = step(before.clone(), &entry);
        if before.outcome.is_some() {
            assert_eq!(state.outcome, before.outcome, "ended is final for a run");
        } else if state.outcome.is_some() {
            self.outcomes += 1;
        }
        assert!(!self.requested || state.stop.is_some(), "a stop request is never forgotten");
        let feeds = effects.iter().any(|effect| matches!(effect, Effect::Feed { .. }));
        assert!(!feeds || state.stop.is_none(), "nothing is delivered after the request to stop");
        assert!(!feeds || state.steps.asked_ms.is_none(), "nothing is delivered to a process that was asked to leave");
        assert!(!feeds || state.conversation == Conversation::Open, "messages wait until the conversation is open");
        if matches!(state.conversation, Conversation::Refused { .. }) && state.outcome.is_none() {
            assert_eq!(state.phase(), Phase::Stopping, "there is nothing to stay for");
        }
        assert!(state.has_exited() || !before.has_exited(), "nothing resurrects a process");
        self.state = state;
        effects
    }

    /// Does what is wanted until nothing more is.
    fn settle(&mut self, mut effects: Vec<Effect>) -> Option<u64> {
        for _ in 0..50 {
            let wake = effects.iter().find_map(|effect| match effect {
                Effect::WakeAt { ms } => Some(*ms),
                _ => None,
            });
            match effects.iter().find_map(|&effect| dutifully(effect, &self.state, self.now_ms)) {
                Some(event) => effects = self.happens(event),
                None => return wake,
            }
        }
        unreachable!("effects never settle: {:?} wants {:?}", self.state, effects);
    }
}

#[test]
fn a_typed_message_that_begins_no_turn_is_given_up_and_the_next_one_is_typed() {
    let plan = Plan { channel: Channel::Tty(Tty::Hooks), keep: false, ending: Ending::Hangup, linger_ms: 2000 };
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn in_every_order_of_events_the_invariants_hold(plan in plan(), events in prop::collection::vec((event(), 0..3000u64), 0..40)) {
        let mut world = World::new(plan);
        let mut reported = false;
        for (event, pause) in events {
            world.now_ms += pause;
            // A process that has ended says nothing more.
            if world.state.has_exited() && matches!(event, Event::TurnEnded { .. }) {
                continue;
            }
            reported |= matches!(&event, Event::TurnEnded { end } if end.verdict == Verdict::Succeeded);
            let effects = world.happens(event);
            world.settle(effects);
        }
        prop_assert!(world.outcomes <= 1, "at most one outcome");
        if let Some(outcome) = &world.state.outcome {
            let may_be_by_exit = matches!(world.state.plan.speaks(), Speaks::Bytes | Speaks::Hooks);
            let clean_exit = may_be_by_exit && outcome.exit_code == Some(0);
            prop_assert!(outcome.kind != Kind::Succeeded || reported || clean_exit, "no success without evidence");
            prop_assert!(outcome.kind != Kind::Lost || outcome.source == Source::None);
        }
    }

    #[test]
    fn once_stop_is_wanted_a_deaf_agent_is_killed_at_the_end_of_the_grace(plan in plan(), grace in 0..8000u64, in_turn in any::<bool>()) {
        let mut world = World::new(plan);
        if in_turn {
            world.happens(Event::TurnStarted);
        }
        let request = Event::StopRequested { by: "t".to_owned(), why: "t".to_owned(), how: StopHow::Interrupt, grace_ms: grace };
        let mut effects = world.happens(request);
        while let Some(wake) = world.settle(effects) {
            prop_assert!(wake > world.now_ms, "waking in the past would spin");
            world.now_ms = wake;
            effects = world.happens(Event::Tick);
        }
        prop_assert!(world.state.steps.killed);
        prop_assert!(world.now_ms <= grace + 1);
    }

    #[test]
    fn a_keeper_that_starts_anew_wants_what_its_predecessor_wanted(plan in plan(), events in prop::collection::vec(event(), 0..20)) {
        let mut world = World::new(plan);
        for event in events {
            let wanted = world.happens(event);
            let again = world.happens(Event::KeeperStarted { pid: 3, start: None, version: String::new() });
            prop_assert_eq!(wanted, again);
        }
    }
}
