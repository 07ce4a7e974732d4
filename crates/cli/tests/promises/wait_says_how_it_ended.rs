//! `wait`: each exit code, and what it prints.

use crate::harness;
use ostler_testkit::{Harness, ProcessKind, Session};
use std::time::{Duration, Instant};

fn lost(harness: &Harness) -> Session<'_> {
    let session = harness.detach(&["--", "sleep", "600"]);
    session.orphan();
    session.kill(ProcessKind::Agent);
    session
}

#[test]
fn success_failure_and_signal() {
    let harness = harness();
    for (script, code, kind) in [("exit 0", 0, "succeeded"), ("exit 3", 1, "failed"), ("kill -SEGV $$", 1, "failed")] {
        let session = harness.detach(&["--", "sh", "-c", script]);
        let output = harness.run(&["wait", session.id()]).exits(code);
        assert!(output.stdout.starts_with(&format!("{} status={kind} ", session.id())), "{output:?}");
        assert_eq!(output.stdout.lines().count(), 1);
        let json = harness.run(&["wait", "--json", session.id()]).exits(code).json();
        assert_eq!(json["outcome"]["kind"], kind);
    }
}

#[test]
fn wrong_usage_is_2_and_an_ambiguous_prefix_lists_its_candidates() {
    let harness = harness();
    harness.run(&["wait"]).exits(2).complaint();
    let session = harness.detach(&["--", "true"]);
    harness.run(&["wait", session.id(), "--timeout", "soon"]).exits(2).complaint();
    harness.run(&["wait", session.id(), "--timeout", "1s", "--poll", "1s"]).exits(2).complaint();
    harness.run(&["wait", session.id()]).exits(0);
    // Ids are random, so two with the same beginning have to be created.
    for twin in ["zzzzzzz0", "zzzzzzz1"] {
        let copy = harness.session(twin);
        harness.copy(&session.path(), &copy.path());
        let record = copy.path().join("session.json");
        let renamed = std::fs::read_to_string(&record).unwrap().replace(session.id(), twin);
        std::fs::write(&record, renamed).unwrap();
    }
    let complaint = harness.run(&["wait", "zzz"]).exits(2);
    let complaint = complaint.complaint();
    assert!(complaint.contains("zzzzzzz0, zzzzzzz1"), "{complaint}");
    harness.run(&["wait", "zzzzzzz0"]).exits(0);
}

#[test]
fn wait_until_turn_is_refused_where_turns_are_not_reported() {
    let harness = harness();
    harness.configure("[agents.mine]\ncommand = [\"sleep\", \"600\"]\n");
    for words in [&["--", "sleep", "600"][..], &["-t", "--", "sleep", "600"], &["mine"], &["-t", "mine"]] {
        let session = harness.detach(words);
        assert_eq!(session.show().state, "running", "{words:?}");
        let refused = harness.run(&["wait", session.id(), "--until", "turn"]).exits(2);
        let complaint = refused.complaint();
        assert!(
            complaint.contains("turns") && complaint.contains(&format!("ostler wait {}", session.id())),
            "{complaint}"
        );
        // Also together with a session that has turns.
        let idle = harness.detach(&["--keep", "demo", "say done"]);
        harness.run(&["wait", idle.id(), session.id(), "--until", "turn"]).exits(2).complaint();
        harness.run(&["stop", session.id(), idle.id()]).exits(0);
        harness.run(&["wait", session.id(), "--until", "turn"]).exits(6);
    }
}

#[test]
fn an_unknown_id_is_3() {
    let harness = harness();
    for word in ["nosuch00", "zz", "@last", "../sessions", "a/b", ".", ""] {
        harness.run(&["wait", word]).exits(3).complaint();
    }
}

#[test]
fn a_question_is_4() {
    let harness = harness();
    let session = harness.detach(&["demo", "ask May I?"]);
    let asked = harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    let words = format!("{} status=asking: Ask May I?; answer: ostler answer", session.id());
    assert!(asked.stdout.starts_with(&words), "{asked:?}");
    let shown = session.show();
    assert_eq!((shown.state.as_str(), shown.alive), ("asking", true));
    assert!(shown.asking.is_some());
    harness.run(&["answer", session.id(), "--allow"]).exits(0);
    harness.run(&["wait", session.id()]).exits(0);
    assert_eq!(session.show().outcome().text.as_deref(), Some("allowed: May I?"));
}

#[test]
fn a_question_ends_every_wait_with_4_and_says_how_to_answer_it() {
    let harness = harness();
    let session = harness.detach(&["demo", "ask May I?"]);
    let id = session.id();
    // The session may not have asked yet: the first command waits for that, the others return at once.
    for words in [&["--timeout", "60s"][..], &[], &["--until", "turn"], &["--poll", "60s"]] {
        let output = harness.run(&[&["wait", id], words].concat()).exits(4);
        let expected = format!("{id} status=asking: Ask May I?; answer: ostler answer {id} --allow | --deny\n");
        assert_eq!(output.stdout, expected, "{words:?}");
    }
    let json = harness.run(&["wait", "--json", id]).exits(4).json();
    assert_eq!((&json["asking"]["tool"], &json["asking"]["input"]["text"]), (&"Ask".into(), &"May I?".into()));
    harness.run(&["wait", id, "--until", "asking", "--through-questions"]).exits(2).complaint();

    // Of several sessions, those that ask or have ended are named.
    let endless = harness.detach(&["--", "sleep", "600"]);
    let done = harness.detach(&["--", "true"]);
    harness.run(&["wait", done.id()]).exits(0);
    let output = harness.run(&["wait", endless.id(), id, done.id()]).exits(4);
    assert!(!output.stdout.contains(endless.id()), "{output:?}");
    assert!(output.stdout.contains(&format!("{id} status=asking: Ask May I?")), "{output:?}");
    assert!(output.stdout.contains(&format!("{} status=succeeded", done.id())), "{output:?}");
    endless.stop();

    let patient = harness.start(&["wait", id, "--through-questions"]);
    harness.run(&["wait", id, "--through-questions", "--poll", "200ms"]).exits(0);
    harness.run(&["wait", id, "--through-questions", "--timeout", "200ms"]).exits(124);
    harness.run(&["answer", id, "--allow"]).exits(0);
    patient.finish().exits(0);
}

#[test]
fn a_session_that_is_to_stop_after_its_turn_asks_first() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "ask May I?"]);
    harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    let stopping = harness.start(&["stop", "--after-turn", session.id()]);
    session.until_look("it is to stop", |view| view.state.word() == "stopping");
    harness.run(&["wait", session.id()]).exits(4);
    harness.run(&["answer", session.id(), "--allow"]).exits(0);
    stopping.finish().exits(0);
    harness.run(&["wait", session.id()]).exits(0);
}

#[test]
fn lost_is_5_and_for_a_poller_124_at_once() {
    let harness = harness();
    let session = lost(&harness);
    let started = Instant::now();
    let output = harness.run(&["wait", session.id(), "--poll", "2m"]).exits(124);
    assert!(started.elapsed() < Duration::from_secs(60), "took {:?}", started.elapsed());
    assert!(output.stdout.contains("status=lost"), "{output:?}");
    harness.run(&["wait", session.id()]).exits(5);
    harness.run(&["wait", session.id(), "--timeout", "20s"]).exits(5);
    harness.run(&["wait", session.id(), "--poll", "20s"]).exits(124);
}

#[test]
fn stopped_is_6_and_interrupted_too() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    session.stop();
    harness.run(&["wait", session.id()]).exits(6);
    let session = harness.detach(&["--keep", "demo", "sleep"]);
    session.until_look("the tool runs", |view| view.last.as_deref().is_some_and(|last| last.contains("sleep 1000")));
    harness.run(&["interrupt", session.id()]).exits(0);
    harness.run(&["wait", session.id(), "--until", "turn"]).exits(6);
    session.stop();
}

#[test]
fn a_success_that_is_not_proven_saved_is_8() {
    let mut harness = harness();
    harness.set("OSTLER_DEMO_LATE", "600000");
    let session = harness.detach(&["--keep", "demo", "say hello"]);
    harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    harness.run(&["stop", "--kill", session.id()]).exits(8).complaint();
    harness.run(&["wait", session.id()]).exits(8);
    assert_eq!(session.show().outcome().saved, "unverified");
    harness.run(&["stop", session.id()]).exits(0);
}

#[test]
fn a_live_session_is_124_after_the_timeout_and_0_for_a_poller() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    harness.run(&["wait", session.id(), "--timeout", "100ms"]).exits(124);
    let output = harness.run(&["wait", session.id(), "--poll", "100ms"]).exits(0);
    assert!(output.stdout.contains("status=alive"), "{output:?}");
    assert!(output.stdout.contains(&format!("ostler wait {}", session.id())), "{output:?}");
    session.stop();
}

#[test]
fn a_poller_returns_at_the_end_before_its_time_is_up() {
    let harness = harness();
    for (script, code) in [("exit 0", 0), ("exit 9", 1)] {
        let session = harness.detach(&["--", "sh", "-c", script]);
        let started = Instant::now();
        let output = harness.run(&["wait", session.id(), "--poll", "2m"]).exits(code);
        assert!(started.elapsed() < Duration::from_secs(60), "took {:?}", started.elapsed());
        assert!(!output.stdout.contains("status=alive"));
    }
}

#[test]
fn an_error_of_ostler_is_125() {
    let mut harness = harness();
    let file = harness.root().join("file");
    std::fs::write(&file, "").unwrap();
    harness.set("OSTLER_HOME", &file);
    harness.run(&["wait", "abc"]).exits(125).complaint();
    // The clean-up after the test needs a valid home, even when it does not exist.
    harness.set("OSTLER_HOME", harness.root().join("ostler"));
}

#[test]
fn several_ids_are_all_waited_for_and_the_worst_counts_unless_any_is_given() {
    let harness = harness();
    let flag = harness.root().join("flag");
    let misbehave = harness.misbehave();
    let good = harness.detach(&["--", "true"]);
    let bad = harness.detach(&["--", &misbehave, &format!("until={}", flag.display()), "exit=1"]);
    let output = harness.run(&["wait", "--any", bad.id(), good.id()]).exits(0);
    assert!(output.stdout.contains(good.id()) && !output.stdout.contains(bad.id()), "{output:?}");
    let all = harness.start(&["wait", good.id(), bad.id()]);
    assert!(all.runs());
    std::fs::write(&flag, "").unwrap();
    let output = all.finish().exits(1);
    assert_eq!(output.stdout.lines().count(), 2, "{output:?}");
}

#[test]
fn the_end_of_a_turn_is_waited_for_and_its_outcome_is_the_code() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo"]);
    harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    harness.run(&["send", session.id(), "fail because"]).exits(0);
    harness.run(&["wait", session.id(), "--until", "turn"]).exits(1);
    harness.run(&["send", session.id(), "say fine"]).exits(0);
    harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    session.stop();
}

#[test]
fn a_poller_does_not_count_leftover_processes_as_the_program() {
    let harness = harness();
    // The process that is left exits when the test says so, and is not ended before that.
    harness.configure("linger = \"1h\"\n");
    let flag = harness.root().join("flag");
    let script = format!("{} until={} & exit 0", harness.misbehave(), flag.display());
    let session = harness.detach(&["--", "sh", "-c", &script]);
    session.until_look("the program is gone", |view| !view.alive);
    let output = harness.run(&["wait", "--poll", "0s", session.id()]).exits(124);
    assert!(!output.stdout.contains("status=alive"), "{output:?}");
    assert!(!session.show().ended, "the other process is still there");
    std::fs::write(&flag, "").unwrap();
    harness.run(&["wait", session.id()]).exits(0);
}
