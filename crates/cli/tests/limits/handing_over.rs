//! `--on-limit AGENT`: at a usage limit another agent continues, in exactly one session, whichever process is killed.

use crate::{limited, told};
use ostler_sys::pause_points::{self, Point, Role};
use ostler_testkit::{Harness, Session};
use serde_json::Value;

/// The session that continues this one.
fn continues<'h>(harness: &'h Harness, session: &Session<'_>) -> (Session<'h>, Value) {
    let all = harness.run(&["ls", "--all", "--json"]).exits(0).json();
    let other: Vec<&Value> = all.as_array().unwrap().iter().filter(|one| one["id"] != session.id()).collect();
    assert_eq!(other.len(), 1, "{all}");
    let other = harness.session(other[0]["id"].as_str().unwrap());
    let shown = harness.run(&["show", "--json", other.id()]).exits(0).json();
    (other, shown)
}

/// Checks that the session has failed and names the session that continues, and that the prompt arrived there once.
fn is_continued_once(harness: &Harness, session: &Session<'_>) {
    harness.run(&["wait", session.id()]).exits(1);
    let (other, shown) = continues(harness, session);
    assert_eq!((&shown["origin"], &shown["parent"]), (&"handover".into(), &session.id().into()), "{shown}");
    let cause = &harness.run(&["show", "--json", session.id()]).exits(0).json()["outcome"]["cause"];
    let words = format!("demo continues in session {}", other.id());
    assert!(cause.as_str().is_some_and(|cause| cause.contains("limit") && cause.contains(&words)), "{cause}");
    harness.run(&["wait", other.id(), "--until", "turn"]).exits(0);
    other.until_look("its transcript is written", |_| !told(&other).is_empty());
    let prompts = told(&other);
    assert!(prompts.len() == 1 && prompts[0].contains("say hello"), "{prompts:?}");
    assert_eq!(told(session), ["say hello"]);
}

#[test]
fn another_agent_continues_and_the_session_names_it() {
    let harness = limited("3600\n");
    let session = harness.detach(&["--on-limit", "demo", "demo", "say hello"]);
    is_continued_once(&harness, &session);
    harness.nothing_is_left();
}

#[test]
fn a_followed_session_is_followed_to_the_end_of_the_agent_that_continues() {
    let harness = limited("3600\n");
    let output = harness.run(&["run", "--on-limit", "demo", "demo", "say hello"]).exits(0);
    // The answer of the agent that continues.
    assert!(output.stdout.contains("You asked for"), "{}", output.stdout);
    assert!(output.stderr.contains("demo continues in"), "{}", output.stderr);
    let json = limited("3600\n");
    let output = json.run(&["run", "--output", "json", "--on-limit", "demo", "demo", "say hello"]).exits(0);
    let result: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(result["outcome"]["kind"], "succeeded", "{result}");
    harness.nothing_is_left();
    json.nothing_is_left();
}

#[test]
fn a_kept_session_ends_and_the_session_that_continues_is_kept() {
    let harness = limited("3600\n");
    let session = harness.detach(&["--keep", "--on-limit", "demo", "demo", "say hello"]);
    is_continued_once(&harness, &session);
    let (other, shown) = continues(&harness, &session);
    assert_eq!(shown["state"], "idle", "{shown}");
    other.stop();
    harness.nothing_is_left();
}

#[test]
fn one_session_continues_although_a_process_is_killed_at_each_point() {
    let points = [
        (Role::Keeper, Point::HandoverReserved),
        (Role::Keeper, Point::HandoverStarted),
        (Role::Preparer, Point::HandoverMade),
    ];
    for (role, point) in points {
        let mut harness = limited("3600\n");
        let folder = harness.root().join("pause");
        std::fs::create_dir_all(&folder).unwrap();
        harness.set(pause_points::VARIABLE, folder.clone());
        let trap = folder.join(format!("{}.kill", pause_points::token(role, point)));
        std::fs::write(&trap, "x").unwrap();
        let session = harness.detach(&["--on-limit", "demo", "demo", "say hello"]);
        is_continued_once(&harness, &session);
        assert!(!trap.exists(), "no process passed {point:?}");
        harness.nothing_is_left();
    }
}

#[test]
fn an_agent_that_cannot_continue_is_refused_before_anything_starts() {
    let harness = limited("3600\n");
    for (agent, other) in [("demo", "no-such-agent"), ("demo", "command"), ("claude", "claude")] {
        let refused = harness.run(&["run", "-d", "--on-limit", other, agent, "say hello"]);
        assert!(refused.code != Some(0) && refused.complaint().contains(other), "{refused:?}");
    }
    assert!(harness.ls().is_empty());
}

#[test]
fn a_turn_of_a_job_waits_although_another_agent_is_configured_to_continue() {
    let harness = limited("1\n");
    harness.configure("[agents.demo]\non_limit = \"demo\"\n");
    let words = ["loop", "demo", "say hello", "--until", "true"];
    harness.run(&words).exits(0);
    let all = harness.run(&["ls", "--all", "--json"]).exits(0).json();
    // There are the job, its turn and its check, and no session that continues one of them.
    let origins: Vec<&Value> = all.as_array().unwrap().iter().map(|one| &one["origin"]).collect();
    assert!(!origins.contains(&&Value::from("handover")), "{all}");
    let turns = all.as_array().unwrap().iter().filter(|one| one["agent"] == "demo").count();
    assert_eq!(turns, 1, "{all}");
    harness.nothing_is_left();
}
