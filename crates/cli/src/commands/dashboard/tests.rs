//! The dashboard without a terminal: keys in, effects and a buffer out.

#![expect(clippy::unwrap_used, reason = "tests")]

use super::draw::draw;
use super::input::{Mode, Verb};
use super::keys::Effect;
use super::preview::Preview;
use super::row::Row;
use super::state::{Line, Pick, State};
use jiff::Timestamp;
use ostler_core::fact::Ask;
use ostler_core::view::{Phase, View};
use ostler_tui::{Buffer, Key, Keys, Rect, Theme};
use proptest::prelude::*;
use serde_json::json;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_780_000_000 + second).unwrap()
}

fn view(number: i64, name: &str, state: Phase) -> View {
    let mut view: View = serde_json::from_value(json!({
        "schema": 1, "id": format!("9{number:07}"), "name": name, "title": name, "agent": "demo", "native_id": null,
        "cwd": "/work/shop", "branch": "main", "mode": "headless", "state": "idle", "since": at(number), "alive": true,
        "kept": true, "ended": false, "pid": null, "holder_pid": null, "keeper_pid": null, "run": 1, "turns": 0, "queued": 0,
        "message_waits": null, "quiet_s": 0, "created": at(number), "updated": at(number), "transcript": null, "tokens": null,
        "cost_usd": null, "outcome": null, "asking": null, "last": "its last line", "alarm": null, "parent": null,
        "archived": false, "prompt": null, "command": [], "labels": {},
    }))
    .unwrap();
    view.enter(state);
    view
}

fn asking(number: i64, name: &str, command: &str) -> View {
    let mut view = view(number, name, Phase::Asking);
    let input = json!({ "command": command });
    let ask = json!({ "request": format!("request-{number}"), "tool": "Bash", "text": "", "input": input });
    view.asking = Some(serde_json::from_value::<Ask>(ask).unwrap());
    view
}

fn state(views: &[View], size: (u16, u16)) -> State {
    let mut state = State::new(Theme { colour: true }, size, at(100));
    state.fill(views.iter().map(Row::of_view), 0);
    state
}

fn type_into(state: &mut State, keys: &[u8]) -> Vec<Effect> {
    let mut decoder = Keys::default();
    let mut pressed = decoder.read(keys);
    pressed.extend(decoder.escape());
    pressed.into_iter().flat_map(|key| state.press(key)).collect()
}

fn shown(state: &mut State) -> Vec<String> {
    let (rows, columns) = state.size;
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
    draw(state, &mut Preview::empty(), &mut buffer);
    let row = |y| (0..columns).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..rows).map(row).collect()
}

fn picked(state: &State) -> &str {
    state.row().map_or("", |row| &row.name)
}

#[test]
fn what_is_selected_stays_selected_when_the_list_changes() {
    let mut state =
        state(&[view(1, "one", Phase::Idle), view(2, "two", Phase::Idle), view(3, "three", Phase::Idle)], (20, 60));
    type_into(&mut state, b"j");
    assert_eq!(picked(&state), "two");
    state.put([Row::of_view(&asking(2, "two", "ls"))]);
    assert_eq!((picked(&state), state.place()), ("two", Some(1)));
    state.remove(state.row().unwrap().id);
    assert!(!picked(&state).is_empty(), "what stands in its place is selected");
}

#[test]
fn a_verb_that_ends_something_is_asked_for_once_and_only_y_does_it() {
    let mut state = state(&[view(1, "one", Phase::Working)], (20, 60));
    for key in [b"n", b"x", b"\r", b"q"] {
        assert!(type_into(&mut state, b"s").is_empty());
        assert!(type_into(&mut state, key).is_empty());
        state.mode = Mode::List;
    }
    let done = type_into(&mut state, b"sy");
    assert!(matches!(&done[..], [Effect::Do(Verb::Stop, of)] if of.len() == 1), "{done:?}");
}

#[test]
fn an_answer_is_bound_to_the_question_that_was_shown() {
    let mut state = state(&[asking(1, "one", "rm -r build")], (20, 60));
    assert!(type_into(&mut state, b"a").is_empty());
    assert!(shown(&mut state).iter().any(|row| row.contains("rm -r build")));
    let done = type_into(&mut state, b"y");
    assert!(matches!(&done[..], [Effect::Answer { answer, .. }] if answer.allow && answer.request == "request-1"));
    // Another question came meanwhile: nothing is answered.
    type_into(&mut state, b"a");
    let mut other = asking(1, "one", "rm -r /");
    other.asking.as_mut().unwrap().request = "request-2".to_owned();
    state.put([Row::of_view(&other)]);
    assert!(type_into(&mut state, b"\r").iter().all(|effect| !matches!(effect, Effect::Answer { .. })));
}

#[test]
fn marked_sessions_are_meant_and_questions_of_several_come_one_by_one() {
    let mut state =
        state(&[asking(1, "one", "ls 1"), asking(2, "two", "ls 2"), view(3, "three", Phase::Idle)], (20, 60));
    type_into(&mut state, b"gvv");
    assert_eq!(state.marked.len(), 2);
    type_into(&mut state, b"a");
    assert!(shown(&mut state).iter().any(|row| row.contains("ls 1")));
    assert_eq!(type_into(&mut state, b"y").len(), 1);
    assert!(shown(&mut state).iter().any(|row| row.contains("ls 2")));
    assert_eq!(type_into(&mut state, b"y").len(), 1);
    assert!(state.marked.is_empty() && matches!(state.mode, Mode::List));
}

#[test]
fn the_keys_that_are_listed_are_those_that_do_something() {
    for (keys, _) in super::draw::KEYS {
        for key in keys.split(' ').filter(|key| key.chars().count() == 1 && key.is_ascii()) {
            let mut state =
                state(&[asking(1, "one", "ls"), asking(2, "two", "ls"), view(3, "three", Phase::Idle)], (20, 60));
            type_into(&mut state, b"j");
            let (before, place) = (shown(&mut state), state.picked);
            let effects = type_into(&mut state, key.as_bytes());
            let changed = shown(&mut state) != before || state.picked != place || !effects.is_empty();
            assert!(changed && !state.said.as_ref().is_some_and(|said| said.text.contains("no such key")), "{key}");
        }
    }
    let mut state = state(&[view(1, "one", Phase::Idle)], (20, 60));
    type_into(&mut state, b"d");
    assert!(state.said.is_some_and(|said| said.text.contains("no such key")));
}

#[test]
fn what_is_pasted_is_never_a_command() {
    let mut state = state(&[asking(1, "one", "ls"), view(2, "two", Phase::Working)], (20, 60));
    for before in [&b""[..], b"s", b"a", b"i", b" "] {
        state.mode = Mode::List;
        type_into(&mut state, before);
        let effects = type_into(&mut state, b"\x1b[200~sy ay\rA y\nq\x1b[201~");
        assert!(effects.is_empty(), "{effects:?}");
    }
}

#[test]
fn nothing_wakes_for_what_rests() {
    let rests = state(&[view(1, "one", Phase::Idle)], (20, 60));
    assert!(rests.rows.values().all(|row| row.stays_true(at(100)).is_none()));
    let works = state(&[view(1, "one", Phase::Working)], (20, 60));
    assert!(works.rows.values().all(|row| row.stays_true(at(100)).is_some_and(|time| time.as_millis() <= 1000)));
}

#[test]
fn without_colour_the_same_is_told_by_signs() {
    let views = [asking(1, "one", "ls"), view(2, "two", Phase::Working), view(3, "three", Phase::Idle)];
    let mut coloured = state(&views, (20, 100));
    let mut plain = state(&views, (20, 100));
    plain.theme = Theme { colour: false };
    assert_eq!(shown(&mut coloured), shown(&mut plain));
}

fn any_key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::sample::select(b"jkgGvaxrnisRfAoy/? \t\r\x1bqyn1e".to_vec()).prop_map(|key| vec![key]),
        1 => prop::sample::select(vec![&b"\x1b[A"[..], b"\x1b[B", b"\x1b[5~", b"\x1b[6~", b"\x1b[Z", b"\x1b[<0;3;4M", b"\x1b[<65;70;9M"])
            .prop_map(<[u8]>::to_vec),
        1 => any::<u8>().prop_map(|key| vec![key]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_is_pressed_at_any_size_it_draws_and_one_line_is_selected(
        keys in prop::collection::vec(any_key(), 0..40), rows in 1u16..45, columns in 1u16..140, count in 0i64..30,
    ) {
        let views: Vec<View> = (0..count)
            .map(|number| match number % 4 {
                0 => asking(number, &format!("表 {number}"), &"x\ny ".repeat(40)),
                1 => view(number, "working", Phase::Working),
                _ => view(number, &"long ".repeat(30), Phase::Idle),
            })
            .collect();
        let mut state = state(&views, (rows, columns));
        for key in keys {
            type_into(&mut state, &key);
            shown(&mut state);
            if matches!(state.mode, Mode::List) && state.listed().next().is_some() {
                prop_assert!(state.place().is_some());
                let seen = state.areas().list.height == 0 || state.seen().iter().any(|line| match (line, state.picked) {
                    (Line::Session(id), Some(Pick::Session(picked))) => *id == picked,
                    (Line::Fold(_), Some(Pick::Fold)) => true,
                    _ => false,
                });
                prop_assert!(seen, "what is selected is in view");
            }
        }
        let _ = state.press(Key::Escape);
    }
}
