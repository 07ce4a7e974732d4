//! `events` prints everything that happens to every session, and needs only files for it.

use crate::harness;
use ostler_testkit::{Harness, ProcessKind, Session, Started, patience};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::process::{ChildStdout, Command};

/// `events -f`, line by line.
struct Listener {
    started: Started,
    lines: BufReader<ChildStdout>,
}

impl Listener {
    fn new(harness: &Harness) -> Listener {
        let mut command = harness.command(harness.program());
        command.args(["events", "-f"]);
        Listener::of(command)
    }

    fn of(command: Command) -> Listener {
        let (started, lines) = Started::with_lines(command);
        Listener { started, lines }
    }

    fn next(&mut self) -> Value {
        if !self.lines.buffer().contains(&b'\n') {
            assert!(patience::readable(&[self.lines.get_ref().as_fd()], patience::LIMIT), "no further event came");
        }
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// The events of this session up to and including `what`.
    fn until(&mut self, session: &Session<'_>, what: &str) -> Vec<String> {
        let mut told = Vec::new();
        loop {
            let event = self.next();
            if event["session"] == session.id() {
                told.push(event["what"].as_str().unwrap().to_owned());
                if event["what"] == what {
                    return told;
                }
            }
        }
    }
}

#[test]
fn everything_that_has_happened_is_printed_once_and_in_the_order_of_time() {
    let harness = harness();
    let (first, second) = (harness.detach(&["--", "true"]), harness.detach(&["demo", "hello"]));
    harness.run(&["wait", first.id(), second.id()]).exits(0);
    harness.run(&["archive", first.id()]).exits(0);
    let told: Vec<Value> =
        harness.run(&["events"]).exits(0).stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (id, whats) in [(first.id(), ["started", "ended"]), (second.id(), ["started", "turn_ended"])] {
        for what in whats {
            let count = told.iter().filter(|event| event["session"] == id && event["what"] == what).count();
            assert_eq!(count, 1, "{id} {what}");
        }
    }
    let times: Vec<&str> =
        told.iter().filter(|event| event["what"] != "started").map(|e| e["at"].as_str().unwrap()).collect();
    let parsed: Vec<jiff::Timestamp> = times.iter().map(|time| time.parse().unwrap()).collect();
    assert!(parsed.is_sorted(), "{times:?}");
}

#[test]
fn a_new_session_is_followed_from_its_first_entry_to_its_deletion() {
    let harness = harness();
    let mut listener = Listener::new(&harness);
    // The listener is ready once it has printed the events of a session that started after it.
    let session = harness.detach(&["--", "true"]);
    let told = listener.until(&session, "ended");
    assert!(told.contains(&"started".to_owned()) && told.contains(&"exited".to_owned()), "{told:?}");
    let session = harness.detach(&["--", "sh", "-c", "exit 3"]);
    let told = listener.until(&session, "ended");
    assert_eq!(told[..2], ["appeared", "started"]);
    assert_eq!(told.iter().filter(|what| *what == "started").count(), 1);
    harness.run(&["archive", session.id()]).exits(0);
    assert_eq!(listener.until(&session, "archived"), ["archived"]);
    harness.run(&["restore", session.id()]).exits(0);
    assert_eq!(listener.until(&session, "restored"), ["restored"]);
    harness.run(&["purge", session.id()]).exits(0);
    assert_eq!(listener.until(&session, "purged"), ["purged"]);
}

#[test]
fn files_alone_are_enough_and_a_torn_line_is_waited_for() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    let mut listener = Listener::new(&harness);
    listener.until(&session, "keeper_started");
    session.orphan();
    let mut journal = File::options().append(true).open(session.path().join("journal.jsonl")).unwrap();
    let line = "{\"at\":\"2030-01-01T00:00:00Z\",\"ms\":1,\"run\":1,\"what\":\"teleported\",\"to\":\"é\"}\n";
    let (half, rest) = line.split_at(line.len() / 2);
    journal.write_all(half.as_bytes()).unwrap();
    // The end of another session is printed while this line is incomplete.
    let other = harness.detach(&["--", "true"]);
    listener.until(&other, "ended");
    journal.write_all(rest.as_bytes()).unwrap();
    let event = listener.next();
    assert_eq!((event["what"].as_str(), event["to"].as_str()), (Some("teleported"), Some("é")));
    session.kill(ProcessKind::Agent);
    harness.run(&["wait", session.id()]).exits(5);
    assert_eq!(listener.until(&session, "ended"), ["ended"]);
}

#[test]
fn events_exits_quietly_when_its_reader_stops() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    let mut listener = Listener::new(&harness);
    listener.until(&session, "keeper_started");
    drop(listener.lines);
    assert_eq!(listener.started.finish().code, Some(0), "at once, without anything having happened");
}

#[test]
fn without_inotify_watches_the_files_are_polled() {
    for limit in ["max_inotify_instances", "max_inotify_watches"] {
        let harness = harness();
        // A user namespace has its own limits.
        let script = format!("echo 0 > /proc/sys/user/{limit} && exec \"$0\" events -f");
        let mut command = harness.command("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", &script]).arg(harness.program());
        let possible = harness.command("unshare").args(["--user", "--map-root-user", "true"]).status();
        if !possible.is_ok_and(|status| status.success()) {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "user namespaces are needed");
            eprintln!("left out: no user namespaces here");
            return;
        }
        let mut listener = Listener::of(command);
        let session = harness.detach(&["--", "true"]);
        assert!(listener.until(&session, "ended").contains(&"started".to_owned()));
        harness.run(&["purge", session.id()]).exits(0);
        assert_eq!(listener.until(&session, "purged"), ["purged"]);
    }
}

fn told(harness: &Harness, arguments: &[&str]) -> Vec<Value> {
    let output = harness.run(&[&["events"], arguments].concat()).exits(0);
    output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn only_events_of_the_named_sessions_are_printed() {
    let harness = harness();
    let (first, second, third) = (
        harness.detach(&["--name", "first one", "--", "true"]),
        harness.detach(&["--", "true"]),
        harness.detach(&["--", "true"]),
    );
    harness.run(&["wait", first.id(), second.id(), third.id()]).exits(0);
    harness.run(&["archive", first.id()]).exits(0);
    let ids: Vec<Value> =
        told(&harness, &["first", second.id()]).into_iter().map(|event| event["session"].clone()).collect();
    for id in [first.id(), second.id()] {
        assert!(ids.iter().any(|told| told == id), "{id}: {ids:?}");
    }
    assert!(ids.iter().all(|told| told != third.id()), "{ids:?}");
    harness.run(&["events", "nosuch"]).exits(3);
}

#[test]
fn only_events_since_the_given_time_are_printed() {
    let harness = harness();
    let old = harness.detach(&["--", "true"]);
    harness.run(&["wait", old.id()]).exits(0);
    // The keeper publishes the outcome first, and notes the end after that.
    let journal = old.path().join("journal.jsonl");
    let has_ended = |text: String| text.contains("\"what\":\"ended\"").then_some(());
    old.until("its end is noted", || std::fs::read_to_string(&journal).ok().and_then(has_ended));
    let all = told(&harness, &[]);
    // From the middle of the events.
    let middle = all[all.len() / 2]["at"].as_str().unwrap();
    let from: jiff::Timestamp = middle.parse().unwrap();
    let later = all.iter().filter(|event| event["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap() >= from);
    assert_eq!(told(&harness, &["--since", middle]).iter().collect::<Vec<_>>(), later.collect::<Vec<_>>());
    assert_eq!(told(&harness, &["--since", "1h"]).len(), all.len());
    assert_eq!(told(&harness, &["--since", "now"]), Vec::<Value>::new());
    let refused = harness.run(&["events", "--since", "yesterday"]).exits(2);
    assert!(refused.stderr.contains("is not a time"), "{}", refused.stderr);

    // Follow from now on: of an old session only new events are printed.
    let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    File::options().write(true).open(&journal).unwrap().set_modified(hour_ago).unwrap();
    let mut command = harness.command(harness.program());
    command.args(["events", "-f", "--since", "now", old.id()]);
    let mut listener = Listener::of(command);
    let _other = harness.detach(&["--", "true"]);
    let mut commands = ["archive", "restore"].into_iter().cycle();
    // It is not known when it begins to watch, so this is repeated.
    while !patience::readable(&[listener.lines.get_ref().as_fd()], std::time::Duration::from_millis(100)) {
        harness.run(&[commands.next().unwrap(), old.id()]).exits(0);
    }
    let event = listener.next();
    assert_eq!(event["session"], old.id());
    assert!(event["what"] == "archived" || event["what"] == "restored", "{event}");
}
