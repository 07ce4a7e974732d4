//! Notifications with the built program: each moment arrives, once by its id, signed, whatever fails and whichever process is killed, and
//! nothing that sends them delays a session or is left behind.

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

/// A home whose sessions tell this server of everything; `more` is added to `[notify]`.
fn telling(server: &Server, more: &str) -> Harness {
    let harness = harness();
    configure(&harness, server, more);
    harness
}

fn configure(harness: &Harness, server: &Server, more: &str) {
    std::fs::write(harness.root().join("secret"), "It's a Secret to Everybody\n").unwrap();
    let (url, secret) = (server.url("/hook"), harness.root().join("secret"));
    // Where it is not the subject, long enough for a busy machine: what has arrived is sent again when the answer comes too late.
    let timeout = if more.contains("timeout") { "" } else { "timeout = '10s'" };
    harness.configure(&format!(
        "[notify]\n{timeout}\n{more}\n[notify.webhook]\nurl = '{url}'\nsecret_file = '{}'\n",
        secret.display()
    ));
}

fn is_sender(process: &Identity) -> bool {
    command_line(process.pid()).get(1).is_some_and(|word| word == "__notify")
}

/// Waits until everything that was started to send has exited. A retrying sender does so when nothing waits any more.
fn until_senders_are_gone(harness: &Harness) {
    patience::until("no sender runs", &[], || (!harness.alive().iter().any(is_sender)).then_some(()));
}

fn until_turn(harness: &Harness, session: &Session<'_>, code: i32) {
    harness.run(&["wait", session.id(), "--until", "turn"]).exits(code);
}
