//! The contents of our own files and of our own socket. A crash, a full disk, another version or another program may
//! have written them.

use crate::first;
use ostler_core::event::{Entry, Event};
use ostler_core::life::{State, step};
use ostler_core::outcome::{Exit, Outcome, judge};
use ostler_core::record::{Channel, Ending, Lines, Plan, Request, Session, Tty};
use ostler_keeper::wire::{self, Call, Incoming, Reply};
use ostler_store::{HelperRecord, RunRecord};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// What can be parsed is written so that it is parsed to the same value.
fn comes_back<T: DeserializeOwned + Serialize + Debug>(bytes: &[u8]) {
    if let Ok(record) = serde_json::from_slice::<T>(bytes) {
        let text = serde_json::to_vec(&record).unwrap();
        let again: T = serde_json::from_slice(&text).unwrap();
        assert_eq!(format!("{record:?}"), format!("{again:?}"));
    }
}

pub fn records(bytes: &[u8]) {
    let (which, bytes) = first(bytes);
    let kinds: [fn(&[u8]); 7] = [
        comes_back::<Session>,
        comes_back::<RunRecord>,
        comes_back::<HelperRecord>,
        comes_back::<Exit>,
        comes_back::<Outcome>,
        comes_back::<Entry>,
        comes_back::<Request>,
    ];
    kinds[which % kinds.len()](bytes);
}

/// Any journal can be folded, and at every point of it the life cycle knows the next effects and the outcome.
pub fn journal(bytes: &[u8]) {
    let found = ostler_store::journal::parse(bytes, 0);
    assert!(found.end <= bytes.len() as u64);
    for channel in [
        Channel::Command,
        Channel::Lines(Lines::Turns),
        Channel::Lines(Lines::OpenedTurns),
        Channel::Lines(Lines::OneTurn),
        Channel::Tty(Tty::Nothing),
        Channel::Tty(Tty::Hooks),
    ] {
        let plan = Plan {
            channel,
            keep: false,
            ending: Ending::EndOfInput,
            linger_ms: 1000,
            rules: ostler_core::rules::Rules::default(),
        };
        let mut state = State::new(plan);
        let mut now = 0;
        for entry in &found.entries {
            let ended = state.outcome.clone();
            let starts = matches!(entry.event, Event::Started { .. } | Event::NotStarted { .. });
            state = step(state, entry).0;
            now = entry.ms.max(now);
            assert!(ended.is_none() || starts || state.outcome == ended, "an outcome is final");
            let _ = (state.effects(now), state.phase(), judge(&state, now));
        }
    }
}

pub fn wire(bytes: &[u8]) {
    match wire::parse(bytes) {
        Incoming::Keys { position, keys } => assert_eq!(wire::keys(position, keys), bytes),
        Incoming::Call(request) => {
            let again = wire::encode(&request);
            let known = request != Call::Unknown;
            assert!(!known || wire::parse(&again) == Incoming::Call(request));
        }
        Incoming::Nonsense => {}
    }
    comes_back::<Reply>(bytes);
}
