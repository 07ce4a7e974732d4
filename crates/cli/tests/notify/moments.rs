//! Which notifications are sent, and which are not.

use crate::server::{Answer, Server};
use crate::{configure, harness, notifying, until_senders_are_gone, until_turn};
use ostler_testkit::ProcessKind;
use std::process::{Command, Stdio};

/// The same signature, calculated by another program.
fn signature_by_openssl(body: &[u8]) -> Option<String> {
    let mut openssl = Command::new("openssl")
        .args(["dgst", "-sha256", "-hmac", "It's a Secret to Everybody"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    std::io::Write::write_all(&mut openssl.stdin.take()?, body).ok()?;
    let output = openssl.wait_with_output().ok()?;
    Some(format!("sha256={}", String::from_utf8(output.stdout).ok()?.trim().rsplit(' ').next()?))
}

#[test]
fn each_moment_arrives_once_by_its_id_and_signed_although_every_first_attempt_fails() {
    let server = Server::new();
    let mut harness = notifying(&server, "");
    server.fails_first_with(&[
        Answer::Status(500),
        Answer::HangUp,
        Answer::Stall,
        Answer::Redirect,
        Answer::Rubbish,
        Answer::LieAboutLength,
        Answer::Status(404),
    ]);
    let kept = harness.detach(&["--keep", "--name", "kept", "demo", "ask me"]);
    harness.run(&["wait", "--until", "asking", kept.id()]).exits(4);
    harness.run(&["answer", kept.id(), "--allow"]).exits(0);
    until_turn(&harness, &kept, 0);
    harness.run(&["send", kept.id(), "fail the server is down"]).exits(0);
    until_turn(&harness, &kept, 1);
    kept.stop();
    let id = kept.id().to_owned();
    let lost = harness.detach(&["--", "sleep", "600"]);
    lost.living(ProcessKind::Keeper);
    lost.orphan();
    lost.kill_if_alive(ProcessKind::Agent);
    harness.run(&["wait", lost.id()]).exits(5);
    let failed = harness.detach(&["--", "false"]);
    harness.run(&["wait", failed.id()]).exits(1);
    harness.set("OSTLER_DEMO_LATE", "600000");
    let unproven = harness.detach(&["--keep", "demo", "say not saved"]);
    until_turn(&harness, &unproven, 0);
    harness.run(&["stop", "--kill", unproven.id()]).exits(8);

    let arrived = server.until_arrived(&["asking", "turn", "failed", "ended", "lost", "failed", "turn", "unproven"]);
    until_senders_are_gone(&harness);
    let requests = server.requests();
    // A notification that has arrived is not sent again. One that has not is sent again with the same id and body.
    for one in &arrived {
        let same: Vec<_> = requests.iter().filter(|request| request.id() == one.id()).collect();
        assert!(same.iter().all(|request| request.body == one.body), "{same:?}");
        let successes = same.iter().filter(|request| request.answer == one.answer).count();
        assert_eq!(successes, 1, "{same:?}");
        assert!(same.len() <= 2, "{same:?}");
    }
    assert!(requests.iter().all(|request| request.path == "/hook"), "a redirect is not followed");
    for request in &requests {
        assert_eq!(request.header("x-ostler-event"), request.moment());
        assert_eq!(request.json()["id"], request.id());
        let Some(signature) = signature_by_openssl(&request.body) else { continue };
        assert_eq!(request.header("x-hub-signature-256"), signature);
    }
    let of_kept = |moment: &str| {
        let found = arrived.iter().find(|one| one.moment() == moment && one.json()["session"] == id.as_str());
        found.unwrap_or_else(|| panic!("no {moment} of {id}")).json()
    };
    assert_eq!(of_kept("asking")["text"], "Ask me");
    assert_eq!(of_kept("turn")["text"], "allowed: me");
    assert_eq!(of_kept("failed")["title"], "kept has failed");
    assert!(of_kept("failed")["text"].as_str().unwrap().contains("the server is down"), "{}", of_kept("failed"));
    assert_eq!((&of_kept("ended")["name"], &of_kept("ended")["agent"]), (&"kept".into(), &"demo".into()));
}

#[test]
fn only_configured_moments_are_sent_and_without_notify_there_is_neither_note_nor_folder() {
    let server = Server::new();
    let harness = harness();
    let silent = harness.detach(&["--keep", "demo", "say nothing"]);
    until_turn(&harness, &silent, 0);
    silent.stop();
    let journal = std::fs::read_to_string(silent.path().join("journal.jsonl")).unwrap();
    assert!(!journal.contains("\"notify\""), "{journal}");
    assert!(!harness.home().join("notify").exists());

    // A new configuration also applies to a session that runs already.
    let session = harness.detach(&["--keep", "demo", "say before"]);
    until_turn(&harness, &session, 0);
    configure(&harness, &server, "moments = ['failed', 'ended']");
    harness.run(&["send", session.id(), "say after"]).exits(0);
    until_turn(&harness, &session, 0);
    harness.run(&["send", session.id(), "fail on purpose"]).exits(0);
    until_turn(&harness, &session, 1);
    server.until_arrived(&["failed"]);
    // Every turn of this test is shorter than an hour.
    configure(&harness, &server, "min_duration = '1h'");
    harness.run(&["send", session.id(), "say quick"]).exits(0);
    until_turn(&harness, &session, 0);
    // Quiet at any hour.
    configure(&harness, &server, "quiet = '00:00-23:59'\nmoments = ['turn']");
    harness.run(&["send", session.id(), "say hush"]).exits(0);
    until_turn(&harness, &session, 0);
    configure(&harness, &server, "moments = ['ended']");
    session.stop();
    let arrived = server.until_arrived(&["failed", "ended"]);
    until_senders_are_gone(&harness);
    assert_eq!(server.requests().len(), arrived.len());
    let journal = std::fs::read_to_string(session.path().join("journal.jsonl")).unwrap();
    let noted = journal.lines().filter(|line| line.contains("\"notify\"")).count();
    assert_eq!(noted, 3, "failed, the turn in quiet hours, ended: {journal}");
}

#[test]
fn a_usage_limit_and_a_used_up_budget_are_sent() {
    let server = Server::new();
    let mut harness = notifying(&server, "moments = ['limit', 'budget']");
    let limits = harness.root().join("limits");
    std::fs::write(&limits, "3600\n").unwrap();
    harness.set("OSTLER_DEMO_LIMITS", limits);
    let limited = harness.detach(&["--name", "limited", "demo", "say hello"]);
    let arrived = server.until_arrived(&["limit"]);
    assert_eq!(arrived[0].json()["title"], "limited waits for a usage limit");
    harness.run(&["stop", limited.id()]);
    let dear = harness.detach(&["--keep", "--budget", "0.05", "demo", "spend 0.06 done"]);
    harness.run(&["wait", dear.id()]).exits(0);
    let arrived = server.until_arrived(&["limit", "budget"]);
    let text = arrived.iter().find(|one| one.moment() == "budget").unwrap().json()["text"].to_string();
    assert!(text.contains("its budget of $0.05 is used up ($0.06)"), "{text}");
    until_senders_are_gone(&harness);
}
