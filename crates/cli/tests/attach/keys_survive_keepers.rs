//! Whatever is killed between a person and the program, every key arrives once and in order, and so does every byte
//! that the program writes.

use crate::harness;
use crate::person::Person;
use ostler_testkit::{Harness, ProcessKind, Session, alone};

const LENGTH: usize = 60_000;
/// The end of a synchronised update: with it the drawing of a screen ends.
const DRAWN: &[u8] = b"\x1b[?2026l";

/// Writes back every byte that it reads, unchanged.
fn echoes(harness: &Harness) -> Session<'_> {
    let script = format!("stty raw -echo; printf 'ready>'; head -c {LENGTH} | tee received; exec cat");
    let session = harness.detach(&["-t", "--", "sh", "-c", &script]);
    session.until_printed("ready>");
    session
}

fn text() -> Vec<u8> {
    (0..).flat_map(|number: u32| format!("{number} ").into_bytes()).take(LENGTH).collect()
}

/// Everything that was shown after the screen had been drawn.
fn shown_since_ready(person: &Person) -> &[u8] {
    let ready = person.bytes.windows(6).position(|window| window == b"ready>").unwrap();
    let drawn = person.bytes[ready..].windows(DRAWN.len()).position(|window| window == DRAWN).unwrap();
    &person.bytes[ready + drawn + DRAWN.len()..]
}

fn type_while(harness: &Harness, session: &Session<'_>, mut trouble: impl FnMut(&Session<'_>)) {
    let text = text();
    let mut person = Person::attaches(harness, session.id());
    person.sees("ready>");
    for piece in text.chunks(LENGTH / 12) {
        person.types(piece);
        trouble(session);
    }
    person.sees_that("every byte come back", |person| shown_since_ready(person).len() >= LENGTH);
    assert!(shown_since_ready(&person) == text, "what was shown is not what was typed");
    // tee writes into the file after it has written to the terminal.
    let file = harness.root().join("home/received");
    let received =
        session.until("all of it arrived", || std::fs::read(&file).ok().filter(|received| received.len() >= LENGTH));
    assert!(received == text, "what arrived is not what was typed");
}

#[test]
fn keepers_killed_while_a_person_types_lose_and_repeat_nothing() {
    let _machine = alone();
    let harness = harness();
    let session = echoes(&harness);
    type_while(&harness, &session, |session| {
        session.kill(ProcessKind::Keeper);
    });
}

#[test]
fn holders_killed_while_a_person_types_lose_and_repeat_nothing() {
    let _machine = alone();
    let harness = harness();
    let session = echoes(&harness);
    let mut round = 0;
    type_while(&harness, &session, |session| {
        round += 1;
        if round % 4 == 0 {
            let killed = session.kill(ProcessKind::Holder);
            session.replaced(ProcessKind::Holder, &killed);
        }
    });
}

#[test]
fn keys_typed_just_before_leaving_arrive() {
    let harness = harness();
    let session = echoes(&harness);
    let text = text();
    let mut person = Person::attaches(&harness, session.id());
    person.sees("ready>");
    person.types(&[&text[..5000], b"\x1c"].concat());
    person.is_left_with(0);
    let mut person = Person::attaches(&harness, session.id());
    // More output of the program may follow immediately.
    person.sees_that("the screen", |person| person.bytes.windows(DRAWN.len()).any(|window| window == DRAWN));
    person.types(&text[5000..]);
    session.until("all of it arrived", || {
        let received = std::fs::read(harness.root().join("home/received")).unwrap_or_default();
        (received == text).then_some(())
    });
}
