//! `logs`: the conversation in order, or what a command printed; `-f` follows to the end.

use crate::harness;
use ostler_testkit::{Harness, ProcessKind};

#[test]
fn a_conversation_is_shown_in_order() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "say one"]);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    harness.run(&["send", session.id(), "say two"]).exits(0);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    let logs = harness.run(&["logs", "--json", session.id()]).exits(0);
    let spoken: Vec<String> = logs
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|item| item["kind"] == "told" || item["kind"] == "said")
        .map(|item| format!("{} {}", item["kind"].as_str().unwrap(), item["text"].as_str().unwrap()))
        .collect();
    assert_eq!(spoken, ["told say one", "said one", "told say two", "said two"]);
    let plain = harness.run(&["logs", session.id()]).exits(0);
    let text = format!("{}{}", plain.stdout, plain.stderr);
    let places: Vec<usize> = ["one", "two"].iter().map(|word| text.rfind(word).unwrap()).collect();
    assert!(places.is_sorted(), "{plain:?}");
}

#[test]
fn a_carriage_return_in_a_message_drops_nothing() {
    let harness = harness();
    let answer = harness.run(&["run", "demo", "say one\rtwo\r\nthree"]).exits(0);
    assert_eq!(answer.stdout, "one\ntwo\nthree\n");
    let session = harness.detach(&["--keep", "demo"]);
    let reply = harness.run(&["send", "--wait", session.id(), "say four\rfive"]).exits(0);
    assert_eq!(reply.stdout, "four\nfive\n");
    let plain = harness.run(&["logs", session.id()]).exits(0).stdout;
    assert!(plain.contains("› say four\n  five\n"), "{plain}");
    assert!(plain.ends_with("\nfour\nfive\n"), "{plain}");
    session.stop();
}

#[test]
fn logs_f_prints_everything_and_exits_at_the_end() {
    let harness = harness();
    let flag = harness.root().join("flag");
    let misbehave = harness.misbehave();
    let session = harness.detach(&["--", &misbehave, "say=before", &format!("until={}", flag.display()), "say=after"]);
    let follower = harness.start(&["logs", "-f", "--raw", session.id()]);
    session.until_printed("before");
    let before = session.kill(ostler_testkit::ProcessKind::Keeper);
    session.replaced(ostler_testkit::ProcessKind::Keeper, &before);
    assert!(follower.runs());
    std::fs::write(&flag, "").unwrap();
    let output = follower.finish().exits(0);
    assert_eq!(output.stdout, "before\nafter\n");
}

fn logs(harness: &Harness, arguments: &[&str]) -> String {
    harness.run(&[&["logs"], arguments].concat()).exits(0).stdout
}

/// The last lines of a text.
fn tail(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines[lines.len().saturating_sub(count)..].concat()
}

#[test]
fn the_last_lines_are_the_end_of_all_lines() {
    let harness = harness();
    // More than the first read, and a last line without a newline.
    let script = "seq 100000; printf 'no end'; seq 7 >&2";
    let session = harness.detach(&["--", "sh", "-c", script]);
    harness.run(&["wait", session.id()]).exits(0);
    let all = logs(&harness, &[session.id()]);
    for count in [0, 1, 10, 20_000, 200_000] {
        let count_word = count.to_string();
        let last = harness.run(&["logs", "-n", &count_word, session.id()]).exits(0);
        assert!(last.stdout == tail(&all, count), "the last {count} lines");
        assert_eq!(last.stderr, tail("1\n2\n3\n4\n5\n6\n7\n", count), "of standard error");
        assert!(logs(&harness, &["--raw", "-n", &count_word, session.id()]) == tail(&all, count), "raw, {count}");
    }
    // A pattern is applied first, also when what matches is far from the end.
    assert_eq!(logs(&harness, &["-n", "2", "--grep", "^(1|55)$", session.id()]), "1\n55\n");
    assert_eq!(logs(&harness, &["-g", "NO END", "-i", session.id()]), "no end");
    assert_eq!(logs(&harness, &["--raw", "-g", "^9999", "-n", "3", session.id()]), "99997\n99998\n99999\n");
}

#[test]
fn a_conversation_is_shown_from_its_end_as_well() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "say one"]);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    for message in ["say two", "say three"] {
        harness.run(&["send", "--wait", session.id(), message]).exits(0);
    }
    let follower = harness.start(&["logs", "-f", "-n", "3", "--grep", "t", session.id()]);
    harness.run(&["send", "--wait", session.id(), "say ten four"]).exits(0);
    session.stop();
    let all = logs(&harness, &[session.id()]);
    for count in 0..=9 {
        assert_eq!(logs(&harness, &["-n", &count.to_string(), session.id()]), tail(&all, count), "of {all}");
    }
    assert_eq!(logs(&harness, &["--grep", "^t", session.id()]), "two\nthree\nten four\n");
    let json: serde_json::Value =
        serde_json::from_str(&logs(&harness, &["--json", "--grep", "ten four", "-n", "1", session.id()])).unwrap();
    assert_eq!((json["kind"].as_str(), json["end"]["text"].as_str()), (Some("turn_ended"), Some("ten four")));
    assert!(json["at"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
    // Whether `logs -f` began before or after the last message, each line that matches is printed once.
    let followed = follower.finish().exits(0).stdout;
    assert!(followed.ends_with("› say ten four\nten four\n"), "{followed}");
    assert_eq!(followed.matches("ten four").count(), 2, "{followed}");
}

#[test]
fn what_came_since_a_time_is_shown_with_its_time() {
    let mut harness = harness();
    harness.has_own_clock();
    harness.shift_clock(0);
    let gate = harness.root().join("gate");
    let misbehave = harness.misbehave();
    let until = format!("until={}", gate.display());
    let session = harness.detach(&["--", &misbehave, "say=early", &until, "say=late"]);
    session.until_printed("early");
    let talk = harness.detach(&["--keep", "demo", "say early"]);
    harness.run(&["wait", "--until", "turn", talk.id()]).exits(0);
    harness.shift_clock(7200);
    std::fs::write(&gate, "").unwrap();
    harness.run(&["wait", session.id()]).exits(0);
    harness.run(&["send", "--wait", talk.id(), "say late"]).exits(0);
    for (id, early, late) in
        [(session.id(), "early\n", "late\n"), (talk.id(), "› say early\nearly\n", "› say late\nlate\n")]
    {
        assert_eq!(logs(&harness, &["--since", "1h", id]), late);
        assert_eq!(logs(&harness, &["--since", "3h", id]), format!("{early}{late}"));
        assert_eq!(logs(&harness, &["--since", "3h", "-n", "1", id]), "late\n");
        let timed = logs(&harness, &["--timestamps", id]);
        let times: Vec<jiff::Timestamp> =
            timed.lines().map(|line| line.split_once(' ').unwrap().0.parse().unwrap()).collect();
        let apart = times[times.len() - 1].duration_since(times[0]);
        assert!((7190..7500).contains(&apart.as_secs()), "{timed}");
        let untimed: String = timed.lines().map(|line| format!("{}\n", line.split_once(' ').unwrap().1)).collect();
        assert_eq!(untimed, format!("{early}{late}"));
    }
    // A session that was started by an older version has no times.
    std::fs::remove_file(session.run_file("out.times")).unwrap();
    let refused = harness.run(&["logs", "--since", "1h", session.id()]).exits(2);
    assert!(refused.complaint().contains("has no times"), "{refused:?}");
    assert_eq!(logs(&harness, &[session.id()]), "early\nlate\n");
    // Without that file a conversation still has the times of what ostler did.
    std::fs::remove_file(talk.run_file("out.times")).unwrap();
    assert_eq!(logs(&harness, &["--since", "1h", talk.id()]), "› say late\nlate\n");
    talk.stop();
}

#[test]
fn options_that_make_no_sense_are_refused_with_the_reason() {
    let harness = harness();
    let drawn = harness.detach(&["-t", "--", "sh", "-c", "echo drawn; sleep 600"]);
    drawn.until_printed("drawn");
    for (arguments, reason) in [
        (&["--since", "1h"][..], "draws on its terminal has no times"),
        (&["--timestamps"], "draws on its terminal has no times"),
        (&["--raw", "--since", "1h"], "draws on its terminal has no times"),
        (&["--json"], "is not a conversation"),
        (&["--raw", "--timestamps"], "cannot be used with"),
        (&["--screen", "--json"], "cannot be used with"),
        (&["--grep", "("], "is not a regular expression"),
        (&["--since", "soon"], "is not a time"),
        (&["-i"], "--grep"),
    ] {
        let refused = harness.run(&[&["logs", drawn.id()], arguments].concat()).exits(2);
        assert!(refused.stderr.contains(reason), "{arguments:?}: {}", refused.stderr);
    }
    assert_eq!(logs(&harness, &[drawn.id(), "--screen"]), "drawn\n");
    assert_eq!(logs(&harness, &[drawn.id(), "-n", "1"]), "drawn\n");
    let printed = harness.detach(&["--", "true"]);
    harness.run(&["wait", printed.id()]).exits(0);
    let refused = harness.run(&["logs", "--screen", printed.id()]).exits(2);
    assert!(refused.complaint().contains("has no screen"), "{refused:?}");
    harness.run(&["stop", "--kill", drawn.id()]);
}

#[test]
fn a_turn_that_was_cut_off_is_marked_and_one_that_ended_is_not() {
    let mut harness = harness();
    let session = harness.detach(&["demo", "sleep"]);
    session.until_printed("sleep 1000");
    session.kill(ProcessKind::Agent);
    harness.run(&["wait", session.id()]).exits(1);
    let last = logs(&harness, &["-n", "1", session.id()]);
    assert_eq!(last, "the turn was cut off: the agent was killed by SIGKILL\n", "{}", logs(&harness, &[session.id()]));
    // The same for a turn that was ended by a user.
    let session = harness.detach(&["demo", "sleep"]);
    session.until_printed("sleep 1000");
    harness.run(&["stop", "--kill", session.id()]);
    let last = logs(&harness, &["-n", "1", session.id()]);
    assert!(last.starts_with("the turn was cut off: stopped by tester"), "{last}");
    let item: serde_json::Value = serde_json::from_str(&logs(&harness, &["--json", "-n", "1", session.id()])).unwrap();
    assert_eq!((item["kind"].as_str(), item["end"]["verdict"].as_str()), (Some("turn_ended"), Some("interrupted")));
    // When an agent is killed between turns, no turn is cut off.
    let session = harness.detach(&["--keep", "demo", "say one"]);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    session.kill(ProcessKind::Agent);
    harness.run(&["wait", session.id()]);
    assert_eq!(logs(&harness, &[session.id()]), "› say one\none\n");
    // Here the exit of the agent is not observed. The agent is thinking, so no tool process is left.
    harness.set("OSTLER_DEMO_PACE", "100000");
    let session = harness.detach(&["demo", "say one"]);
    session.until("its prompt was delivered", || {
        let journal = std::fs::read_to_string(session.path().join("journal.jsonl")).unwrap_or_default();
        journal.contains("\"delivered\"").then_some(())
    });
    session.orphan();
    session.kill(ProcessKind::Agent);
    let all = logs(&harness, &[session.id()]);
    assert!(all.starts_with("› say one\nthe turn was cut off: "), "{all}");
}
