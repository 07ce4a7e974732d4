//! Restarts, limits and usage limits with the built program: each takes effect, whichever process is killed, and no
//! message is sent and no run is started twice.

#![expect(clippy::unwrap_used, reason = "a test that cannot prepare or read its files has failed")]

mod handing_over;
mod limits;
mod restarts;
mod usage;

use ostler_testkit::{Harness, ProcessKind, Session};

fn harness() -> Harness {
    Harness::new(env!("CARGO_BIN_EXE_ostler"))
}

/// A home whose demo agent reaches these usage limits, one in each turn.
fn limited(lines: &str) -> Harness {
    let mut harness = harness();
    let file = harness.root().join("limits");
    std::fs::write(&file, lines).unwrap();
    harness.set("OSTLER_DEMO_LIMITS", file);
    harness
}

/// Each helper is killed and replaced, one after the other.
fn kill_both(session: &Session<'_>) {
    for who in [ProcessKind::Keeper, ProcessKind::Holder] {
        let before = session.kill(who);
        session.replaced(who, &before);
    }
}

/// The prompts that the demo agent received, read from its own transcript.
fn told(session: &Session<'_>) -> Vec<String> {
    let transcript = session.show().transcript;
    // Without a transcript it has received nothing yet.
    let text = transcript.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    // The agent may be writing the last line.
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let lines = whole.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines
        .filter(|line| line["type"] == "user")
        .filter_map(|line| line["message"]["content"].as_str().map(str::to_owned))
        .collect()
}
