//! What the pictures show.

use crate::desk::{DETACH, Desk, SHOT};
use crate::steady::{without_seconds, without_times};
use crate::svg;
use anyhow::Result;
use ostler_screen::Size;
use std::path::Path;

pub struct Scene {
    pub name: &'static str,
    /// A description for people who cannot see the picture.
    title: &'static str,
    rows: u16,
    columns: u16,
    play: fn(&mut Desk) -> Result<()>,
}

/// More rows than any scene shows.
const ROWS: u16 = 60;

pub const ALL: [Scene; 7] = [
    Scene {
        name: "first",
        title: "ostler runs agents, lists them, and answers what one asks",
        rows: ROWS,
        columns: 96,
        play: first,
    },
    Scene { name: "run", title: "ostler run demo, from the prompt to the result", rows: ROWS, columns: 96, play: run },
    Scene { name: "ls", title: "ostler ls: one line for each session", rows: ROWS, columns: 110, play: ls },
    Scene {
        name: "answer",
        title: "ostler answer shows the question in full and asks",
        rows: ROWS,
        columns: 96,
        play: answer,
    },
    Scene {
        name: "ui",
        title: "ostler ui: all sessions by what they need, with what one of them asks",
        rows: 26,
        columns: 120,
        play: ui,
    },
    Scene {
        name: "groups",
        title: "ostler run starts three agents, compare shows what each has done, pick lands the best",
        rows: ROWS,
        columns: 110,
        play: groups,
    },
    Scene { name: "chat", title: "ostler attach: a chat with an agent", rows: 24, columns: 96, play: chat },
];

impl Scene {
    pub fn picture(&self, program: &Path) -> Result<String> {
        let mut desk = Desk::new(program, Size { rows: self.rows, columns: self.columns })?;
        let played = (self.play)(&mut desk);
        let cleared = desk.clears_up();
        played.and(cleared)?;
        let screen = desk.attached.as_ref().unwrap_or(&desk.screen);
        let mut rows = screen.pieces();
        for piece in rows.iter_mut().flatten() {
            piece.text = without_seconds(&without_times(&piece.text));
        }
        Ok(svg::draw(&rows, self.columns, self.title))
    }
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// A session in the background, and its id.
fn start(desk: &Desk, ago: u64, words: &[&str]) -> Result<String> {
    // Some seconds more, because making the picture takes time.
    desk.set_clock_back(ago + 20)?;
    desk.unseen(&[&["run", "-d"], words].concat())
}

/// Three sessions: one asks, one is idle, one has ended.
fn first(desk: &mut Desk) -> Result<()> {
    let over = start(desk, 2 * HOUR, &["demo", "fix the failing test"])?;
    desk.unseen(&["wait", &over])?;
    start(desk, 12 * MINUTE, &["--name", "login", "--keep", "demo", "say ready for the next step"])?;
    desk.unseen(&["wait", "--until", "turn", "login"])?;
    start(desk, 3 * MINUTE, &["--name", "deploy", "demo", "ask git push --tags"])?;
    desk.unseen(&["wait", "--until", "asking", "deploy"])?;
    desk.set_clock_back(0)?;
    desk.types("ostler ls", &["ls"], &[])?;
    desk.types("ostler answer deploy", &["answer", "deploy"], &[("[y/n", "n not on a Friday\r")])?;
    desk.types(
        "ostler send login --wait \"say the login works now\"",
        &["send", "login", "--wait", "say the login works now"],
        &[],
    )?;
    desk.types("ostler stop login", &["stop", "login"], &[])
}

fn run(desk: &mut Desk) -> Result<()> {
    desk.set_clock_back(0)?;
    desk.types("ostler run demo \"fix the failing test\"", &["run", "demo", "fix the failing test"], &[("[y/n", "y\r")])
}

fn ls(desk: &mut Desk) -> Result<()> {
    let over = start(desk, 2 * HOUR, &["demo", "fix the failing test"])?;
    desk.unseen(&["wait", &over])?;
    let failed = start(desk, HOUR, &["--name", "nightly build", "--", "sh", "-c", "echo 3 tests failed; exit 1"])?;
    desk.unseen(&["wait", &failed])?;
    start(desk, 40 * MINUTE, &["--name", "server", "--", "sleep", "6000"])?;
    desk.unseen(&["stop", "server"])?;
    start(desk, 12 * MINUTE, &["--name", "login", "--keep", "demo", "say ready for the next step"])?;
    desk.unseen(&["wait", "--until", "turn", "login"])?;
    start(desk, 3 * MINUTE, &["--name", "refactor", "demo", "sleep"])?;
    desk.until_shown("refactor", "\"state\": \"working\"")?;
    start(desk, 3 * MINUTE, &["--name", "deploy", "demo", "ask git push --tags"])?;
    desk.unseen(&["wait", "--until", "asking", "deploy"])?;
    desk.set_clock_back(0)?;
    desk.types("ostler ls", &["ls"], &[])
}

fn answer(desk: &mut Desk) -> Result<()> {
    start(desk, 3 * MINUTE, &["--name", "deploy", "demo", "ask rm -rf build && make release"])?;
    desk.unseen(&["wait", "--until", "asking", "deploy"])?;
    desk.set_clock_back(0)?;
    desk.types("ostler answer", &["answer"], &[("[y/n", "y\r")])
}

/// The dashboard: two sessions that need a person, two that work, one that is idle, one that has ended.
fn ui(desk: &mut Desk) -> Result<()> {
    let over = start(desk, 2 * HOUR, &["--name", "changelog", "demo", "say The changelog has the new command."])?;
    desk.unseen(&["wait", &over])?;
    let failed = start(desk, HOUR, &["--name", "nightly build", "--", "sh", "-c", "echo 3 tests failed; exit 1"])?;
    desk.unseen(&["wait", &failed])?;
    start(desk, 40 * MINUTE, &["--name", "dev server", "--", "sh", "-c", "echo listening on port 8080; sleep 6000"])?;
    desk.until_shown("dev server", "listening on port 8080")?;
    start(desk, 12 * MINUTE, &["--name", "login", "--keep", "demo", "say The login works again."])?;
    desk.unseen(&["wait", "--until", "turn", "login"])?;
    start(desk, 7 * MINUTE, &["--name", "refactor", "--keep", "demo", "sleep"])?;
    desk.until_shown("refactor", "Bash sleep 1000")?;
    start(desk, 4 * MINUTE, &["--name", "release", "--keep", "demo", "fix the failing test"])?;
    desk.unseen(&["wait", "--until", "turn", "release"])?;
    desk.set_clock_back(3 * MINUTE + 20)?;
    desk.unseen(&["send", "release", "ask git push --tags"])?;
    desk.unseen(&["wait", "--until", "asking", "release"])?;
    desk.set_clock_back(0)?;
    desk.types("ostler ui", &["ui"], &[("? asks Ask git push --tags", SHOT), ("q quit", "q")])
}

fn chat(desk: &mut Desk) -> Result<()> {
    start(desk, 3 * MINUTE, &["--name", "fix", "--keep", "demo", "fix the failing test"])?;
    desk.unseen(&["wait", "--until", "turn", "fix"])?;
    desk.types("ostler attach fix", &["attach", "fix"], &[("detaches", DETACH)])
}

/// Three attempts to fix one bug, of which one is right.
fn groups(desk: &mut Desk) -> Result<()> {
    desk.set_clock_back(0)?;
    desk.has_repository(&[
        ("greet.sh", "name=$1\necho \"hello $nmae\"\n"),
        ("test.sh", "test \"$(sh greet.sh ann)\" = \"hello ann\"\n"),
        ("attempts.toml", "agent = \"demo\"\nattempt = [\"nmae name\", \"nmae nam\", \"hello hallo\"]\nprompt = \"edit-file greet.sh {{attempt}}\"\n"),
    ])?;
    desk.types(
        "ostler run --matrix attempts.toml --name greet",
        &["run", "--matrix", "attempts.toml", "--name", "greet"],
        &[],
    )?;
    desk.types("ostler compare greet --check \"sh test.sh\"", &["compare", "greet", "--check", "sh test.sh"], &[])?;
    desk.types(
        "ostler pick greet-demo-1 --check \"sh test.sh\"",
        &["pick", "greet-demo-1", "--check", "sh test.sh"],
        &[],
    )
}
