//! Sessions that start later, with the built program: in the order of their queue, never more at once than it has
//! slots, each exactly once, whichever helper is killed, and without a wake-up while they wait.

#![expect(clippy::unwrap_used, reason = "a test that cannot prepare or read its files has failed")]

mod kills;
mod later;
mod order;
mod withdrawing;

use ostler_core::view::Phase;
use ostler_testkit::{Harness, Session};
use std::path::PathBuf;

fn harness() -> Harness {
    Harness::new(env!("CARGO_BIN_EXE_ostler"))
}

/// A home with a queue `q` that has this many slots.
fn with_queue(slots: u32) -> Harness {
    let harness = harness();
    harness.configure(&format!("[queues.q]\nslots = {slots}\n"));
    harness
}

/// The file to which each program appends a line when it runs: the kernel puts the lines in order.
fn log(harness: &Harness) -> PathBuf {
    harness.root().join("log")
}

/// The words that the programs have written so far.
fn said(harness: &Harness) -> Vec<String> {
    let text = std::fs::read_to_string(log(harness)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Queues a program that writes this word and exits.
fn queue_word<'a>(harness: &'a Harness, options: &[&str], word: &str) -> Session<'a> {
    let file = log(harness);
    let script = "echo \"$2\" >> \"$1\"";
    let words = [options, &["--", "sh", "-c", script, "sh", file.to_str().unwrap(), word]].concat();
    harness.detach(&[&["--queue", "q"], words.as_slice()].concat())
}

/// Starts a program that occupies a slot until [`release`], or until it is stopped.
fn block(harness: &Harness) -> Session<'_> {
    let gate = harness.root().join("gate");
    if !gate.exists() {
        assert!(harness.command("mkfifo").arg(&gate).status().unwrap().success());
    }
    let script = "read -r _ < \"$1\"";
    let blocker = harness.detach(&["--queue", "q", "--", "sh", "-c", script, "sh", gate.to_str().unwrap()]);
    blocker.until_look("the blocker runs", |view| view.state == Phase::Running);
    blocker
}

/// Lets all blockers end.
fn release(harness: &Harness) -> std::fs::File {
    // Open for reading as well, so that opening and writing do not wait for a reader; each blocker reads one line.
    let gate = std::fs::OpenOptions::new().read(true).write(true).open(harness.root().join("gate")).unwrap();
    std::io::Write::write_all(&mut &gate, "go\n".repeat(64).as_bytes()).unwrap();
    gate
}

/// Waits until all have ended, whatever their outcome.
fn wait_for(harness: &Harness, sessions: &[Session<'_>]) {
    let ids: Vec<&str> = sessions.iter().map(Session::id).collect();
    let _ = harness.run(&[&["wait"], ids.as_slice()].concat());
    for session in sessions {
        assert!(session.look().ended, "{} has not ended", session.id());
    }
}
