//! Notifications with the built program: each moment arrives, signed, once by its id, whatever fails and whichever
//! process is killed. A sender delays no session, and none is left behind.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot prepare or read its files has failed")]

mod desktop;
mod faults;
mod kills;
mod moments;
mod server;
mod testing;

use ostler_sys::process::{Identity, command_line};
use ostler_testkit::{Harness, Session, patience};
use server::Server;

fn harness() -> Harness {
    Harness::new(env!("CARGO_BIN_EXE_ostler"))
}

/// A home whose sessions send every notification to this server; `more` is added to `[notify]`.
fn notifying(server: &Server, more: &str) -> Harness {
    let harness = harness();
    configure(&harness, server, more);
    harness
}

fn configure(harness: &Harness, server: &Server, more: &str) {
    std::fs::write(harness.root().join("secret"), "It's a Secret to Everybody\n").unwrap();
    let (url, secret) = (server.url("/hook"), harness.root().join("secret"));
    // Unless a test sets it, long enough for a busy machine: when the answer is late, a notification is sent again.
    let timeout = if more.contains("timeout") { "" } else { "timeout = '10s'" };
    harness.configure(&format!(
        "[notify]\n{timeout}\n{more}\n[notify.webhook]\nurl = '{url}'\nsecret_file = '{}'\n",
        secret.display()
    ));
}

fn is_sender(process: &Identity) -> bool {
    command_line(process.pid()).get(1).is_some_and(|word| word == "__notify")
}

/// Waits until every sender has exited. A sender that retries exits when no notification waits.
fn until_senders_are_gone(harness: &Harness) {
    patience::until("no sender runs", &[], || (!harness.alive().iter().any(is_sender)).then_some(()));
}

fn until_turn(harness: &Harness, session: &Session<'_>, code: i32) {
    harness.run(&["wait", session.id(), "--until", "turn"]).exits(code);
}
