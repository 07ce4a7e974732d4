//! The dashboard (`ostler ui`), driven through a real terminal.
//!
//! * `list`: what is shown where, at every size. `preview`: the selected session.
//! * `verbs`: what each key does to sessions. `leaving`: the terminal is restored, whatever happens.
//! * `search`: all conversations. `untrusted`: names and output that try to control the terminal. `emulators`: a second
//!   emulator shows the same.

mod emulators;
mod leaving;
mod list;
mod preview;
mod search;
mod untrusted;
mod verbs;

use crate::person::Person;
use ostler_core::view::{Phase, View};
use ostler_testkit::{Harness, Session};

pub const WIDE: (u16, u16) = (40, 120);
pub const MIDDLE: (u16, u16) = (24, 80);
pub const NARROW: (u16, u16) = (20, 45);
pub const SIZES: [(u16, u16); 3] = [WIDE, MIDDLE, NARROW];

/// Opens the dashboard, and waits until it shows something.
#[track_caller]
fn opens(harness: &Harness, size: (u16, u16)) -> Person {
    let mut person = Person::runs(harness, size, &["ui"]);
    person.sees("q quit");
    person
}

/// An agent that is kept and waits for a message.
fn idle<'a>(harness: &'a Harness, name: &str, prompt: &str) -> Session<'a> {
    let session = harness.detach(&["--keep", "--name", name, "demo", prompt]);
    session.until_look("it is idle", |view| view.turns >= 1 && view.state == Phase::Idle);
    session
}

/// An agent that asks for a permission.
fn asking<'a>(harness: &'a Harness, name: &str, command: &str) -> Session<'a> {
    let session = harness.detach(&["--keep", "--name", name, "demo", &format!("ask {command}")]);
    session.until_look("it asks", |view| view.asking.is_some());
    session
}

/// An agent in a turn that does not end by itself.
fn working<'a>(harness: &'a Harness, name: &str) -> Session<'a> {
    let session = harness.detach(&["--keep", "--name", name, "demo", "sleep"]);
    is_at_work(&session);
    session
}

/// Waits until its tool runs: before that there may be nothing to interrupt.
fn is_at_work(session: &Session<'_>) {
    let at_work = |view: &View| view.state == Phase::Working && view.last.as_deref() == Some("Bash sleep 1000");
    session.until_look("it is in its tool", at_work);
}

/// The rows of the list, without the preview beside it.
fn list(person: &Person) -> Vec<String> {
    let rows = person.screen.text();
    let left = |row: &String| row.split(['│', '─']).next().unwrap_or_default().trim_end().to_owned();
    rows.iter().skip(1).map(left).take_while(|row| !row.is_empty()).collect()
}

/// The selected row of the list, recognised by its inverse text.
fn selected(person: &Person) -> Option<String> {
    let chosen = |row: &Vec<ostler_screen::Piece>| {
        let text: String = row.iter().filter(|piece| piece.look.inverse).map(|piece| piece.text.as_str()).collect();
        (!text.trim().is_empty()).then(|| text.trim().to_owned())
    };
    person.screen.pieces().iter().skip(1).find_map(chosen)
}

/// Waits until the selected row contains this.
#[track_caller]
fn has_selected(person: &mut Person, text: &str) {
    person.sees_that(&format!("{text} selected"), |person| selected(person).is_some_and(|row| row.contains(text)));
}

/// Waits until the list has a group with this head.
#[track_caller]
fn has_group(person: &mut Person, head: &str) {
    person.sees_that(head, |person| list(person).iter().any(|row| row == head));
}
