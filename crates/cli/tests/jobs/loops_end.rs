//! A loop ends when its condition is met, and when a limit is reached; it says which.

use crate::{children, count, file, harness, lines, passes_at, start, steps};
use ostler_testkit::patience;

#[test]
fn a_passing_check_ends_a_loop_and_the_output_of_a_failing_one_is_in_the_next_prompt() {
    let harness = harness();
    let log = file(&harness, "checks");
    let output = harness.run(&["loop", "demo", "say fixed it", "--until", &passes_at(&log, 3)]).exits(0);
    let said: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(said.len(), 4, "{said:?}");
    assert!(said[0].starts_with("turn 1 of 20, check failed (exit 1)"), "{said:?}");
    assert!(said[2].starts_with("turn 3 of 20, check passed"), "{said:?}");
    assert!(said[3].starts_with("the check passes after 3 turns"), "{said:?}");
    assert_eq!(count(&log), 3);
    let job = harness.ls().into_iter().find(|one| one.agent == "job").unwrap();
    let turns = children(&harness, &job.id, "turn");
    assert_eq!(turns.len(), 3);
    let inbox = std::fs::read_to_string(harness.session(&turns[1]).path().join("inbox.jsonl")).unwrap();
    assert!(inbox.contains("say fixed it") && inbox.contains("so far 1"), "{inbox}");
    for child in &turns {
        assert_eq!(harness.session(child).look().parent.unwrap().as_str(), job.id);
    }
    let shown = harness.run(&["ls"]).exits(0).stdout;
    assert!(shown.contains("the check passes after 3 turns") && shown.contains("loop"), "{shown}");
    harness.run(&["wait", &job.id]).exits(0);
    assert!(harness.run(&["logs", &job.id]).exits(0).stdout.contains("turn 2 of 20"));
}

#[test]
fn turns_and_costs_of_a_loops_sessions_are_shown_together_and_counted_once() {
    let harness = harness();
    let log = file(&harness, "checks");
    harness.run(&["loop", "demo", "spend 0.25 on it", "--until", &passes_at(&log, 3)]).exits(0);
    let job = harness.ls().into_iter().find(|one| one.agent == "job").unwrap().id;
    let shown = harness.run(&["show", "--json", &job]).exits(0).json();
    let total = &shown["total"];
    assert_eq!((&total["sessions"], &total["turns"]), (&3.into(), &3.into()), "{shown}");
    // A turn costs its tokens as well.
    let usd = total["cost_usd"].as_f64().unwrap();
    assert!((0.75..0.76).contains(&usd) && shown["cost_usd"].is_null(), "{shown}");
    let text = harness.run(&["show", &job]).exits(0).stdout;
    assert!(text.contains("3 in 3 sessions") && text.contains(&format!("${usd:.4}")), "{text}");
    let stats = harness.run(&["stats", "--json"]).exits(0).json();
    assert!((stats["total"]["cost_usd"].as_f64().unwrap() - usd).abs() < 1e-9, "{stats}");
    let one = children(&harness, &job, "turn").remove(0);
    assert!(harness.run(&["show", "--json", &one]).exits(0).json()["total"].is_null());
}

#[test]
fn a_loop_ends_when_the_agent_says_that_it_is_done() {
    let harness = harness();
    let output = harness.run(&["loop", "demo", "say all good <done/>"]).exits(0);
    assert!(output.stdout.contains("done after 1 turn"), "{output:?}");
    let output = harness.run(&["loop", "demo", "say OK", "--until-text", "OK"]).exits(0);
    assert!(output.stdout.contains("done after 1 turn"), "{output:?}");
}

#[test]
fn a_loop_that_is_never_done_stops_at_twenty_turns_and_says_so() {
    let harness = harness();
    let output = harness.run(&["loop", "demo", "say more"]).exits(1);
    let said: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(said.len(), 21, "{said:?}");
    assert!(said[20].starts_with("the limit of 20 turns was reached"), "{said:?}");
}

#[test]
fn a_budget_ends_a_loop_within_one_turn() {
    let harness = harness();
    // One turn of the demo agent costs more than this.
    let output = harness.run(&["loop", "demo", "say more", "--budget", "0.000001"]).exits(1);
    assert!(output.stdout.contains("is used up after 1 turn"), "{output:?}");
}

#[test]
fn a_time_limit_stops_the_running_turn_properly() {
    let mut harness = harness();
    harness.set("OSTLER_DEMO_PACE", "100000");
    let job = start(&harness, &["demo", "say more", "--timeout", "2s"]);
    harness.run(&["wait", &job]).exits(1);
    assert_eq!(lines(&harness, &job), ["the time limit was reached in turn 1"]);
    let turns = children(&harness, &job, "turn");
    assert_eq!(turns.len(), 1);
    assert_eq!(harness.session(&turns[0]).show().outcome().kind, "stopped");
}

#[test]
fn with_same_all_turns_are_in_one_conversation() {
    let harness = harness();
    let log = file(&harness, "checks");
    let output = harness.run(&["loop", "--same", "demo", "say again", "--until", &passes_at(&log, 3)]).exits(0);
    assert!(output.stdout.contains("the check passes after 3 turns"), "{output:?}");
    let all = harness.ls();
    let agents: Vec<_> = all.iter().filter(|one| one.agent == "demo").collect();
    assert_eq!(agents.len(), 1, "{agents:?}");
    assert_eq!((agents[0].turns, agents[0].ended), (3, true));
}

#[test]
fn a_prompt_command_makes_the_prompts_and_ends_a_loop_when_it_has_none() {
    let harness = harness();
    let left = file(&harness, "left");
    std::fs::write(&left, "say one\nsay two\n").unwrap();
    let command = format!("head -n 1 {0}; sed -i 1d {0}", left.display());
    let output = harness.run(&["loop", "demo", "--prompt-command", &command]).exits(1);
    assert!(output.stdout.contains("ended before turn 3: the prompt command failed or printed nothing"), "{output:?}");
    let texts: Vec<String> =
        harness.ls().iter().filter(|one| one.agent == "demo").filter_map(|one| one.outcome().text.clone()).collect();
    assert_eq!(texts, ["two", "one"]);
}

#[test]
fn a_question_of_the_agent_is_asked_by_the_job_and_the_answer_continues_it() {
    let harness = harness();
    let prompt = "say <wait-for-user>red or blue?</wait-for-user>";
    harness.run(&["loop", "demo", prompt, "--max", "2", "--name", "colours"]).exits(4);
    let job = harness.ls().into_iter().find(|one| one.agent == "job").unwrap();
    assert_eq!(job.state, "asking");
    assert!(job.asking.unwrap().to_string().contains("red or blue?"));
    harness.run(&["wait", "colours"]).exits(4);
    // The driver is killed while it asks: the question stays, and the answer counts.
    let session = harness.session(&job.id);
    session.kill(ostler_testkit::ProcessKind::Agent);
    session.until_look("it asks again", |view| view.run == 2 && view.asking.is_some());
    harness.run(&["answer", "colours", "--text", "blue"]).exits(0);
    let inbox = patience::until("the next turn begins", &[&session.path(), &harness.home().join("sessions")], || {
        let second = children(&harness, &job.id, "turn").get(1).cloned()?;
        std::fs::read_to_string(harness.session(&second).path().join("inbox.jsonl")).ok()
    });
    assert!(inbox.contains("You asked: red or blue?") && inbox.contains("The answer: blue"), "{inbox}");
    harness.run(&["stop", "colours"]).exits(0);
    assert_eq!(
        steps(&harness, &job.id).iter().filter(|step| step["key"] == "question 1").count(),
        2,
        "asked and answered once"
    );
}

#[test]
fn turns_that_fail_one_after_the_other_end_a_loop() {
    let harness = harness();
    let job = start(&harness, &["demo", "fail"]);
    harness.run(&["wait", &job]).exits(1);
    let said = lines(&harness, &job);
    assert!(said.last().unwrap().starts_with("3 turns failed one after the other"), "{said:?}");
}

#[test]
fn the_cause_of_a_loops_end_is_the_last_line_that_it_prints() {
    let harness = harness();
    let job = start(&harness, &["demo", "say more", "--max", "2"]);
    let words = "the limit of 2 turns was reached";
    let waited = harness.run(&["wait", &job]).exits(1);
    assert!(waited.stdout.contains(&format!("cause=\"{words}")), "{waited:?}");
    let cause = harness.session(&job).show().outcome().cause.clone();
    assert!(cause.starts_with(words), "{cause}");
    assert!(harness.run(&["show", &job]).exits(0).stdout.contains(words));
    let job = start(&harness, &["demo", "say <done/>"]);
    let waited = harness.run(&["wait", &job]).exits(0);
    assert!(waited.stdout.contains("cause=\"done after 1 turn"), "{waited:?}");
}
