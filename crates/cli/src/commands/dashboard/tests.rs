//! The dashboard without a terminal: keys in, effects and a buffer out.

#![expect(clippy::unwrap_used, reason = "tests")]

use super::draw::draw;
use super::input::{Field, Form, Mode, Verb};
use super::keys::{Effect, Work};
use super::next_tick;
use super::preview::Preview;
use super::row::{Need, Row};
use super::search::Heard;
use super::state::{Line, Pick, State};
use jiff::Timestamp;
use ostler_core::fact::Ask;
use ostler_core::view::{Phase, View};
use ostler_engine::search::{Hit, Hits, Next, Piece, Role};
use ostler_tui::{Buffer, Input, Key, Keys, Rect, Theme};
use proptest::prelude::*;
use serde_json::json;
use std::time::{Duration, Instant};

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
    state.fill(views.iter().map(Row::of_view), 0, 0);
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
fn the_sessions_of_a_job_are_listed_below_it_when_a_person_wants_them() {
    let mut job = view(1, "nightly", Phase::Running);
    job.job = Some("loop".to_owned());
    let mut turn = view(2, "fix it", Phase::Working);
    (turn.parent, turn.driven) = (Some(job.id), true);
    let mut asks = asking(3, "asks", "ls");
    (asks.parent, asks.driven) = (Some(job.id), true);
    let mut state = state(&[job, turn, asks], (20, 80));
    let has = |state: &mut State, words: &str| shown(state).iter().any(|row| row.contains(words));
    assert!(!has(&mut state, "fix it") && has(&mut state, "nightly"));
    assert!(has(&mut state, "asks"), "a question is never folded away");
    state.select(Pick::Session(state.rows.values().find(|row| row.job).unwrap().id));
    type_into(&mut state, b"\x1b[C");
    assert!(has(&mut state, "└ fix it"));
    type_into(&mut state, b"j");
    assert_eq!(picked(&state), "fix it");
    type_into(&mut state, b"\x1b[D");
    assert_eq!(picked(&state), "nightly");
    assert!(!has(&mut state, "fix it"));
}

#[test]
fn a_verb_that_ends_something_is_asked_for_once_and_only_y_does_it() {
    let mut state = state(&[view(1, "one", Phase::Working)], (20, 60));
    for key in [b"n", b"x", b"\r", b"q", b"o", b"\x1b"] {
        assert!(type_into(&mut state, b"s").is_empty());
        assert!(type_into(&mut state, key).is_empty());
        assert!(matches!(state.mode, Mode::List), "any other key means no");
    }
    let done = type_into(&mut state, b"sy");
    assert!(matches!(&done[..], [Effect::Work(Work::Do(Verb::Stop, of))] if of.len() == 1), "{done:?}");
}

#[test]
fn an_answer_is_bound_to_the_question_that_was_shown() {
    let mut state = state(&[asking(1, "one", "rm -r build")], (20, 60));
    assert!(type_into(&mut state, b"a").is_empty());
    assert!(shown(&mut state).iter().any(|row| row.contains("rm -r build")));
    let done = type_into(&mut state, b"y");
    assert!(
        matches!(&done[..], [Effect::Work(Work::Answer { answer, .. })] if answer.allow && answer.request == "request-1")
    );
    // Another question came meanwhile: nothing is answered.
    type_into(&mut state, b"a");
    let mut other = asking(1, "one", "rm -r /");
    other.asking.as_mut().unwrap().request = "request-2".to_owned();
    state.put([Row::of_view(&other)]);
    assert!(type_into(&mut state, b"y\r").is_empty());
    assert!(shown(&mut state).iter().any(|row| row.contains("no longer asks this; nothing was answered")));
    type_into(&mut state, b"\x1b");
    assert!(matches!(state.mode, Mode::List));
}

#[test]
fn words_that_are_typed_into_a_panel_never_become_keys_of_the_list() {
    let mut state = state(&[asking(1, "one", "rm -r build")], (20, 60));
    type_into(&mut state, b"xno plea");
    // The question is answered elsewhere meanwhile.
    state.put([Row::of_view(&view(1, "one", Phase::Working))]);
    assert!(type_into(&mut state, b"se, try something else\r").is_empty());
    assert!(matches!(state.mode, Mode::Answer(_)), "it is closed by the person");
}

fn work(effects: Vec<Effect>) -> Work {
    let works = effects.into_iter().find_map(|effect| if let Effect::Work(work) = effect { Some(work) } else { None });
    works.unwrap()
}

#[test]
fn what_was_written_is_kept_until_it_has_arrived() {
    let mut state = state(&[view(1, "one", Phase::Idle)], (20, 60));
    let refused = || Err("refused".to_owned());
    // A new session.
    let form = || {
        let (folder, prompt) = (Input::new("/nowhere"), Input::new("fix it"));
        Form { agents: vec!["demo".to_owned()], agent: 0, folder, terminal: false, prompt, field: Field::Prompt }
    };
    state.mode = Mode::New(Box::new(form()));
    type_into(&mut state, b"\x1b");
    assert_eq!(state.form.as_ref().unwrap().prompt.text(), "fix it");
    state.mode = Mode::New(state.form.take().unwrap());
    let launch = work(type_into(&mut state, b"\r"));
    state.done(&launch, refused());
    assert_eq!(state.form.as_ref().unwrap().folder.text(), "/nowhere");
    state.done(&launch, Ok("started".to_owned()));
    assert!(state.form.is_none());
    // A message.
    let to = state.meant();
    state.mode = Mode::Reply { to: to.clone(), input: Input::new("say more") };
    let send = work(type_into(&mut state, b"\r"));
    state.done(&send, refused());
    assert_eq!(state.unsent.get(&to).map(String::as_str), Some("say more"));
    state.done(&send, Ok("accepted".to_owned()));
    assert_eq!((state.unsent.len(), &state.sent[..]), (0, &["say more".to_owned()][..]));
}

#[test]
fn durations_are_counted_together_once_a_second() {
    let now = Instant::now();
    let ms = Duration::from_millis;
    assert_eq!(next_tick(None, now, ms(300)), now + ms(300));
    assert_eq!(next_tick(Some(now), now + ms(1), ms(80)), now + ms(1000), "another row, a little later");
    assert_eq!(next_tick(Some(now), now + ms(1), ms(60_000)), now + ms(60_001), "none sooner than needed");
    assert_eq!(next_tick(Some(now), now + ms(5000), ms(0)), now + ms(5020), "never at once");
}

#[test]
fn an_id_is_found_by_its_beginning_and_not_by_letters_within_it() {
    let row = Row::of_view(&view(1234567, "one", Phase::Idle));
    assert!(row.matches(&["9123".to_owned()]) && !row.matches(&["3456".to_owned()]));
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
    type_into(&mut state, b"z");
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

#[test]
fn what_there_is_is_counted_as_it_changes() {
    let mut state = state(&[asking(1, "one", "ls"), view(2, "two", Phase::Working)], (20, 60));
    state.put([Row::of_view(&view(1, "one", Phase::Idle)), Row::of_view(&asking(3, "three", "ls"))]);
    state.put([Row::of_view(&asking(2, "two", "ls"))]);
    assert_eq!(
        (state.count(Need::You), state.count(Need::Idle), state.count(Need::Working), state.asking()),
        (2, 1, 0, 2)
    );
    state.remove(Row::of_view(&asking(3, "three", "ls")).id);
    assert_eq!((state.count(Need::You), state.asking()), (1, 1));
}

#[test]
fn sessions_that_are_read_later_are_counted_at_first() {
    let mut state = State::new(Theme { colour: true }, (20, 60), at(100));
    state.fill([Row::of_view(&view(1, "one", Phase::Idle))], 2, 0);
    assert!(shown(&mut state).contains(&"… 2 ended".to_owned()));
    type_into(&mut state, b"G ");
    assert!(shown(&mut state).contains(&"▾ 2 ended".to_owned()));
    let mut over = view(2, "over", Phase::Ended);
    over.ended = true;
    state.put_rest([Row::of_view(&over)]);
    let rows = shown(&mut state);
    assert!(rows.contains(&"▾ 1 ended".to_owned()) && rows.iter().any(|row| row.contains("over")), "{rows:?}");
}

#[test]
fn two_slashes_search_and_a_command_is_run_only_after_it_was_shown() {
    let mut state = state(&[view(1, "one", Phase::Idle)], (20, 60));
    let effects = type_into(&mut state, b"//ze");
    assert!(matches!(&effects[..], [Effect::Search(text)] if text == "ze"), "{effects:?}");
    let hit = |next: Next| Hit { next, ..hit() };
    let hear = |state: &mut State, hits: Vec<Hit>| {
        let found = Ok(Hits { hits, complete: true, updating: false, not_updated: None, unread: None, asked: true });
        state.hear(Heard::Found { text: "ze".to_owned(), found });
    };
    hear(&mut state, vec![hit(Next::Adopt("0f".to_owned())), hit(Next::Doctor)]);
    assert!(shown(&mut state).iter().any(|row| row.contains("ostler adopt 0f")));
    assert!(type_into(&mut state, b"\r").is_empty());
    assert!(shown(&mut state).iter().any(|row| row.contains("run: ostler adopt 0f? y / n")));
    // Pasted text answers nothing.
    assert!(type_into(&mut state, b"\x1b[200~y\x1b[201~").is_empty());
    let effects = type_into(&mut state, b"y");
    assert!(matches!(&effects[..], [Effect::Work(Work::Adopt(id))] if id == "0f"), "{effects:?}");
    assert!(matches!(state.mode, Mode::List));
    // The result of an earlier query changes nothing.
    type_into(&mut state, b"//zebra");
    hear(&mut state, vec![hit(Next::Doctor)]);
    assert!(matches!(&state.mode, Mode::Search(searching) if searching.hits.is_empty()));
}

fn hit() -> Hit {
    Hit {
        schema: 1,
        session: None,
        name: None,
        agent: "demo".to_owned(),
        native_id: None,
        title: Some("its title".to_owned()),
        cwd: None,
        at: None,
        role: Role::User,
        text: "zebra".to_owned(),
        snippet: vec![Piece { text: "zebra".to_owned(), marked: true }],
        command: ["ostler", "adopt", "0f"].map(str::to_owned).to_vec(),
        read: Vec::new(),
        file: None,
        next: Next::Doctor,
    }
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

#[test]
fn all_words_about_the_keys_are_seen_in_a_window_of_any_width() {
    for size in [(20, 45), (12, 30), (24, 80), (40, 120), (40, 200)] {
        let mut state = state(&[view(1, "one", Phase::Working)], size);
        type_into(&mut state, b"?");
        let mut seen = Vec::new();
        while matches!(state.mode, Mode::Keys { .. }) {
            let rows = shown(&mut state);
            seen.extend(rows[1..rows.len() - 1].iter().flat_map(|row| row.split_whitespace()).map(str::to_owned));
            type_into(&mut state, b" ");
        }
        for (key, what) in super::draw::KEYS {
            for word in key.split_whitespace().chain(what.split_whitespace()) {
                let place = seen.iter().position(|other| other == word);
                assert!(place.is_some(), "{word:?} of {what:?} is not seen at {size:?}: {seen:?}");
                seen.remove(place.unwrap());
            }
        }
        assert!(seen.is_empty(), "{seen:?}");
    }
}
