//! A server that fails or does not answer delays no session, and no sender is left behind.

use crate::server::{Answer, Server, arrived};
use crate::{configure, harness, is_sender, notifying, until_senders_are_gone, until_turn};
use ostler_sys::pause_points::{Point, Role, VARIABLE, token};
use ostler_sys::process::{Identity, Life, Pidfd};
use ostler_testkit::{ProcessKind, Session, SmallDisk, patience};
use rustix::process::Signal;

/// The notifications in the spool of a home.
fn records(harness: &ostler_testkit::Harness) -> Vec<serde_json::Value> {
    let files = std::fs::read_dir(harness.home().join("notify")).into_iter().flatten().flatten();
    let records = files.filter(|file| file.file_name().to_string_lossy().ends_with(".json"));
    records.filter_map(|file| serde_json::from_slice(&std::fs::read(file.path()).ok()?).ok()).collect()
}

#[test]
fn a_server_that_never_answers_delays_no_turn_stop_or_archive_and_purge_ends_the_sender() {
    let server = Server::new();
    let harness = notifying(&server, "timeout = '2s'");
    server.always(Some(Answer::Stall));
    let session = harness.detach(&["--keep", "demo", "say one"]);
    server.until("the sender waits for an answer", |requests| !requests.is_empty());
    for text in ["say two", "say three"] {
        harness.run(&["send", session.id(), text]).exits(0);
        until_turn(&harness, &session, 0);
    }
    assert_eq!(session.show().turns, 3);
    // When the keeper that started the sender is killed, its replacement does not count the sender as one of the
    // agent's processes.
    let keeper = session.kill(ProcessKind::Keeper);
    session.replaced(ProcessKind::Keeper, &keeper);
    session.stop();
    let outcome = session.show().outcome().clone();
    assert_eq!((outcome.kind.as_str(), outcome.left.len()), ("succeeded", 0), "{outcome:?}");
    // Holder and keeper have exited. The sender is left; no process waits for it.
    patience::until("only the sender is left", &[], || (harness.alive().len() == 1).then_some(()));
    harness.run(&["archive", session.id()]).exits(0);
    harness.run(&["purge", session.id()]).exits(0);
    until_senders_are_gone(&harness);
    assert!(records(&harness).is_empty(), "the notifications of a purged session are deleted");
    assert!(arrived(&server.requests()).is_empty());
}

#[test]
fn a_sender_does_not_delay_a_session_without_a_cgroup() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let server = Server::new();
    let harness = notifying(&server, "timeout = '2s'");
    server.always(Some(Answer::Stall));
    let session = harness.detach_without_cgroup(&["--keep", "demo", "say one"]);
    server.until("the sender waits for an answer", |requests| !requests.is_empty());
    // The orphaned sender becomes a child of the holder, like processes that an agent leaves behind.
    let keeper = session.kill(ProcessKind::Keeper);
    session.replaced(ProcessKind::Keeper, &keeper);
    session.stop();
    let outcome = session.show().outcome().clone();
    assert_eq!((outcome.kind.as_str(), outcome.left.len()), ("succeeded", 0), "{outcome:?}");
    server.always(None);
    server.until_arrived(&["turn", "ended"]);
    until_senders_are_gone(&harness);
}

#[test]
fn what_did_not_arrive_within_an_hour_is_given_up_shown_by_doctor_and_can_be_cleared() {
    let server = Server::new();
    let mut harness = notifying(&server, "moments = ['ended']");
    harness.has_own_clock();
    server.always(Some(Answer::Status(503)));
    let session = harness.detach(&["--", "true"]);
    server.until("it was tried twice", |requests| requests.len() >= 2);
    harness.shift_clock(3601);
    until_senders_are_gone(&harness);
    let found = harness.run(&["doctor", "--json"]).json();
    let findings = found.as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["check"] == "notifications" && finding["level"] == "problem");
    let finding = finding.unwrap_or_else(|| panic!("{found:#}"));
    let what = finding["what"].as_str().unwrap();
    assert!(what.contains("webhook") && what.contains("HTTP 503") && what.contains(session.id()), "{what}");
    assert!(finding["do"].as_str().unwrap().contains("ostler notify test"), "{finding}");
    let before = server.requests().len();
    harness.run(&["notify", "clear"]).exits(0);
    let found = harness.run(&["doctor", "--json"]).json();
    let is_problem = |finding: &serde_json::Value| finding["check"] == "notifications" && finding["level"] == "problem";
    assert!(!found.as_array().unwrap().iter().any(is_problem), "{found:#}");
    assert_eq!(server.requests().len(), before);
}

/// The timeout is longer than this test may take, so the test cannot pass by waiting for the end of an attempt.
#[test]
fn what_is_cleared_while_a_server_stalls_is_not_sent_and_other_ways_still_deliver() {
    let server = Server::new();
    let harness = harness();
    let told = harness.root().join("told");
    let until_told = |session: &Session<'_>| {
        patience::until("the command has run for it", &[], || {
            std::fs::read_to_string(&told).ok().filter(|told| told.contains(&format!("{}-", session.id())))
        });
    };
    harness.configure(&format!(
        "[notify]\ntimeout = '1h'\nmoments = ['ended']\n\
         command = ['sh', '-c', 'echo \"$OSTLER_NOTIFY_ID\" >> {}']\n[notify.webhook]\nurl = '{}'\n",
        told.display(),
        server.url("/hook")
    ));
    server.always(Some(Answer::Stall));
    let cleared = [harness.detach(&["--", "true"]), harness.detach(&["--", "true"])];
    cleared.iter().for_each(until_told);
    server.until("the sender waits for an answer", |requests| !requests.is_empty());
    let said = harness.run(&["notify", "clear"]).exits(0);
    assert!(said.stdout.contains("cleared 2 notifications"), "{said:?}");
    let session = harness.detach(&["--", "true"]);
    until_told(&session);
    server.always(None);
    server.hang_up();
    let arrived = server.until_arrived(&["ended"]);
    assert_eq!(arrived[0].json()["session"], session.id());
    until_senders_are_gone(&harness);
    assert_eq!(server.requests().len(), 2, "the request that was in progress, and the new one");
    let dropped = records(&harness).iter().filter(|record| record["ways"]["webhook"]["state"] == "dropped").count();
    assert_eq!(dropped, 2, "{:#?}", records(&harness));
}

#[test]
fn a_secret_that_only_some_sessions_have_in_their_environment_is_used_by_those_that_have_it() {
    let server = Server::new();
    let mut harness = harness();
    harness.configure(&format!(
        "[notify]\nmoments = ['ended']\n[notify.webhook]\nurl = '{}'\nsecret_env = 'HOOKSEC'\n",
        server.url("/hook")
    ));
    let without = harness.detach(&["--", "true"]);
    patience::until("its sender has no secret", &[], || {
        let words = |record: &serde_json::Value| record["ways"]["webhook"]["error"] == "HOOKSEC is not set";
        records(&harness).iter().any(words).then_some(())
    });
    assert!(server.requests().is_empty());
    let id = without.id().to_owned();
    harness.set("HOOKSEC", "s3cret");
    let with = harness.detach(&["--", "true"]).id().to_owned();
    // Its sender also sends what the first sender could not.
    let arrived = server.until_arrived(&["ended", "ended"]);
    let mut sessions: Vec<String> =
        arrived.iter().map(|one| one.json()["session"].as_str().unwrap().to_owned()).collect();
    sessions.sort();
    let mut expected = [id, with];
    expected.sort();
    assert_eq!(sessions, expected);
    assert!(arrived.iter().all(|one| one.header("x-hub-signature-256").starts_with("sha256=")));
    until_senders_are_gone(&harness);
    assert_eq!(server.requests().len(), 2, "each once");
}

#[test]
fn a_sender_exits_when_its_way_is_no_longer_configured_or_its_folder_is_deleted() {
    let server = Server::new();
    let harness = notifying(&server, "moments = ['ended']");
    server.always(Some(Answer::Status(500)));
    let session = harness.detach(&["--", "true"]);
    server.until("it was tried", |requests| !requests.is_empty());
    harness.configure("grace = '5s'\n");
    until_senders_are_gone(&harness);
    assert!(records(&harness).iter().all(|record| record["ways"]["webhook"]["state"] == "dropped"));
    configure(&harness, &server, "moments = ['ended']");
    let other = harness.detach(&["--", "true"]);
    server.until("the other was tried", |requests| requests.iter().any(|one| one.id().starts_with(other.id())));
    // The sender may write to the folder while it is being deleted.
    let folder = harness.home().join("notify");
    patience::until("the folder is deleted", &[], || {
        let _ = std::fs::remove_dir_all(&folder);
        (!folder.exists()).then_some(())
    });
    until_senders_are_gone(&harness);
    assert!(session.show().ended && other.show().ended);
}

/// The state of a process in /proc: `R` runs, `S` sleeps.
fn state_of(process: &Identity) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.pid())).unwrap();
    stat[stat.rfind(')').unwrap() + 2..].chars().next().unwrap()
}

#[test]
fn a_sender_on_a_full_disk_waits_for_space_and_then_sends_although_the_session_has_ended() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let server = Server::new();
    let disk = SmallDisk::mount("4m");
    let mut harness = notifying(&server, "moments = ['ended']");
    harness.keep_sessions_below(disk.path());
    let config = std::fs::read_to_string(harness.root().join("config/ostler/config.toml")).unwrap();
    harness.configure(&format!("min_free_space = 'off'\n{config}"));
    let pauses = harness.root().join("pauses");
    std::fs::create_dir(&pauses).unwrap();
    harness.set(VARIABLE, pauses.clone());
    let session = harness.detach(&["--keep", "demo", "say before"]);
    until_turn(&harness, &session, 0);
    // The sender is paused at its start, until the session has ended and the disk is full.
    std::fs::write(pauses.join(format!("{}.stop", token(Role::Sender, Point::SenderEntered))), "x").unwrap();
    session.stop();
    let stopped = |process: &Identity| is_sender(process) && process.look().unwrap() == Life::Stopped;
    let sender = patience::until("only the sender is left, and is stopped", &[], || {
        let alive = harness.alive();
        alive.first().filter(|process| alive.len() == 1 && stopped(process)).cloned()
    });
    let ballast = disk.fill();
    Pidfd::open(&sender).unwrap().unwrap().signal(Signal::CONT).unwrap();
    // A sender that sleeps has tried, and waits.
    patience::until("the sender waits for room", &[], || (state_of(&sender) == 'S').then_some(()));
    assert!(sender.may_live() && server.requests().is_empty());
    std::fs::remove_file(ballast).unwrap();
    server.until_arrived(&["ended"]);
    until_senders_are_gone(&harness);
}
