//! `stop JOB` ends the children of the job with proof, and then the job. Stopping a child stops only that child.

use crate::{children, count, file, harness, lines, passes_at, start};
use ostler_core::view::{Phase, View};
use ostler_sys::process::Pidfd;
use ostler_testkit::{Harness, ProcessKind, patience};
use rustix::process::Signal;

/// A loop whose first turn runs, and takes long.
fn with_a_running_turn(harness: &mut Harness) -> (String, String) {
    harness.set("OSTLER_DEMO_PACE", "100000");
    let job = start(harness, &["demo", "say more"]);
    let folder = harness.home().join("sessions");
    let child = patience::until("the first turn runs", &[&folder, &folder.join(&job)], || {
        let child = children(harness, &job, "turn").first().cloned()?;
        let session = harness.session(&child);
        // An accepted message already counts as work; here the agent has it.
        let journal = std::fs::read_to_string(session.path().join("journal.jsonl")).unwrap_or_default();
        (journal.contains("\"delivered\"") && session.look().status == "working").then_some(child)
    });
    (job, child)
}

#[test]
fn a_stopped_job_ends_its_children_first() {
    let mut harness = harness();
    let (job, child) = with_a_running_turn(&mut harness);
    harness.run(&["stop", &job]).exits(0);
    let (job, child) = (harness.session(&job).show(), harness.session(&child).show());
    assert_eq!((job.outcome().kind.as_str(), child.outcome().kind.as_str()), ("stopped", "stopped"));
    assert_eq!(child.outcome().saved, "verified");
    assert!(child.updated <= job.updated, "{} {}", child.updated, job.updated);
    harness.run(&["wait", &job.id]).exits(6);
    harness.nothing_is_left();
}

#[test]
fn stop_after_turn_lets_the_turn_of_a_job_end_and_begins_no_other() {
    let harness = harness();
    let (log, gate) = (file(&harness, "log"), file(&harness, "gate"));
    let prompt = format!(
        "run-command mkfifo {1}; echo began >> {0}; cat {1}; echo ended >> {0}; exit 0",
        log.display(),
        gate.display()
    );
    let job = start(&harness, &["demo", &prompt, "--max", "5"]);
    patience::until("the turn runs", &[&file(&harness, "")], || log.exists().then_some(()));
    let stopping = harness.start(&["stop", "--after-turn", &job]);
    let child = children(&harness, &job, "turn").pop().unwrap();
    harness.session(&child).until_look("it is asked to end", |view| view.state == Phase::Stopping);
    std::fs::write(&gate, "go\n").unwrap();
    stopping.finish().exits(0);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "began\nended\n");
    assert_eq!(children(&harness, &job, "turn"), [child]);
    harness.run(&["wait", &job]).exits(6);
    harness.nothing_is_left();
}

#[test]
fn a_second_stop_ends_a_job_that_waits_for_its_turn_at_once() {
    let mut harness = harness();
    let (job, child) = with_a_running_turn(&mut harness);
    let waiting = harness.start(&["stop", "--after-turn", &job]);
    harness.session(&child).until_look("it is asked to end", |view| view.state == Phase::Stopping);
    harness.run(&["stop", &job]).exits(0);
    waiting.finish().exits(0);
    assert_eq!(harness.session(&child).show().outcome().kind, "stopped");
    harness.nothing_is_left();
}

#[test]
fn a_list_shows_the_running_child_below_its_job_and_ended_ones_only_with_all() {
    let mut harness = harness();
    let (job, child) = with_a_running_turn(&mut harness);
    let rows = |arguments: &[&str]| -> Vec<String> {
        harness.run(arguments).exits(0).stdout.lines().skip(1).map(str::to_owned).collect()
    };
    let listed = rows(&["ls"]);
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert!(listed[0].contains(&job) && listed[0].contains("loop") && !listed[0].contains('└'), "{listed:?}");
    assert!(listed[1].contains(&child) && listed[1].contains("└ say more"), "{listed:?}");
    harness.run(&["stop", &job]).exits(0);
    assert_eq!(rows(&["ls"]).len(), 1);
    assert_eq!(rows(&["ls", "-a"]).len(), 2);
    // What is not shown does not count.
    harness.detach(&["--name", "later", "--", "true"]);
    let two = rows(&["ls", "-n", "2", "--sort", "created"]);
    assert!(two.len() == 2 && two[0].contains("later") && two[1].contains(&job), "{two:?}");
    let family = harness.run(&["show", &job, "--json"]).exits(0).json();
    assert_eq!((family["job"].as_str(), family["children"][0].as_str()), (Some("loop"), Some(child.as_str())));
}

#[test]
fn children_are_ended_also_when_the_driver_cannot_do_it() {
    let mut harness = harness();
    let (job, child) = with_a_running_turn(&mut harness);
    harness.run(&["stop", "--kill", &job]).exits(0);
    assert!(harness.session(&child).show().ended);
    harness.nothing_is_left();
}

#[test]
fn a_driver_that_another_process_ends_is_started_again_and_ends_no_child() {
    let mut harness = harness();
    let (job, child) = with_a_running_turn(&mut harness);
    let session = harness.session(&job);
    let before = session.signal(ProcessKind::Agent, rustix::process::Signal::TERM);
    session.replaced(ProcessKind::Agent, &before);
    assert!(!harness.session(&child).look().ended);
    assert_eq!(children(&harness, &job, "turn").len(), 1);
    harness.run(&["stop", &job]).exits(0);
    assert!(harness.session(&child).show().ended);
}

#[test]
fn stopping_a_child_stops_only_that_child_and_its_turn_counts_as_failed() {
    let mut harness = harness();
    let log = file(&harness, "checks");
    harness.set("OSTLER_DEMO_PACE", "100000");
    let job = start(&harness, &["demo", "say more", "--until", &passes_at(&log, 1)]);
    let folder = harness.home().join("sessions");
    let child = patience::until("the first turn runs", &[&folder, &folder.join(&job)], || {
        let child = children(&harness, &job, "turn").first().cloned()?;
        harness.session(&child).path().exists().then_some(child)
    });
    harness.run(&["stop", &child]).exits(0);
    harness.run(&["wait", &job]).exits(0);
    let said = lines(&harness, &job);
    assert!(said[0].starts_with("turn 1 of 20, failed: stopped by"), "{said:?}");
    assert_eq!(count(&log), 1, "the check runs after each turn");
}

#[test]
fn a_message_for_a_loop_is_refused_and_the_session_that_takes_it_is_named() {
    let mut harness = harness();
    harness.set("OSTLER_DEMO_PACE", "100000");
    let job = start(&harness, &["demo", "say more"]);
    let folder = harness.home().join("sessions");
    let child = patience::until("the first turn runs", &[&folder, &folder.join(&job)], || {
        let child = children(&harness, &job, "turn").first().cloned()?;
        harness.session(&child).path().exists().then_some(child)
    });
    // The driver prints this after it has started the turn.
    let says = |view: &View| view.last.as_deref().is_some_and(|last| last.contains("turn 1 of at most 20"));
    harness.session(&job).until_look("it says which turn", says);
    let shown = harness.run(&["ls"]).exits(0).stdout;
    assert!(shown.contains("turn 1 of at most 20"), "{shown}");
    let refused = harness.run(&["send", &job, "say this"]).exits(1);
    let words =
        format!("is a job and takes no messages; send it to the session that runs for it: ostler send {child} MESSAGE");
    assert!(refused.complaint().contains(&words), "{refused:?}");
    harness.run(&["stop", &job]).exits(0);
    let refused = harness.run(&["send", &job, "say this"]).exits(1);
    assert!(refused.complaint().contains(&format!("no session runs for it now; see how far it is: ostler show {job}")));
}

#[test]
fn stopping_the_conversation_of_a_loop_once_fails_one_turn() {
    let mut harness = harness();
    harness.set("OSTLER_DEMO_PACE", "100000");
    let job = start(&harness, &["--same", "demo", "say more", "--max", "2"]);
    let folder = harness.home().join("sessions");
    let child = patience::until("the first turn runs", &[&folder, &folder.join(&job)], || {
        let child = children(&harness, &job, "conversation").first().cloned()?;
        let session = harness.session(&child);
        let journal = std::fs::read_to_string(session.path().join("journal.jsonl")).unwrap_or_default();
        (journal.contains("\"delivered\"") && session.look().status == "working").then_some(child)
    });
    harness.run(&["stop", &child]).exits(0);
    let session = harness.session(&child);
    session.until_look("the second turn runs", |view| view.run == 2 && view.state == Phase::Working);
    let said = lines(&harness, &job);
    let counted: Vec<&String> = said.iter().filter(|line| line.contains(", failed")).collect();
    assert!(counted.len() == 1 && counted[0].starts_with("turn 1 of 2, failed"), "{said:?}");
    harness.run(&["stop", &job]).exits(0);
}

/// Stops a loop in its first turn, continues it with the command `go_on`, and checks the lines that it prints.
fn stopped_in_a_turn(same: &[&str], stop: impl Fn(&Harness, &str, &str), go_on: &[&str]) {
    let mut harness = harness();
    let log = file(&harness, "checks");
    harness.set("OSTLER_DEMO_PACE", "100000");
    let job = start(&harness, &[&["demo", "say more", "--until", &passes_at(&log, 1)], same].concat());
    let folder = harness.home().join("sessions");
    let key = if same.is_empty() { "turn" } else { "conversation" };
    let child = patience::until("the first turn runs", &[&folder, &folder.join(&job)], || {
        let child = children(&harness, &job, key).first().cloned()?;
        let session = harness.session(&child);
        let journal = std::fs::read_to_string(session.path().join("journal.jsonl")).unwrap_or_default();
        (journal.contains("\"delivered\"") && session.look().status == "working").then_some(child)
    });
    stop(&harness, &job, &child);
    harness.set("OSTLER_DEMO_PACE", "0");
    let named: &[&str] = if go_on == ["recover"] { &[] } else { &[&job] };
    harness.run(&[go_on, named].concat()).exits(0);
    harness.run(&["wait", &job]).exits(0);
    let said = lines(&harness, &job);
    assert_eq!(said[0], "turn 1 was interrupted and is not counted", "{said:?}");
    assert!(said[1].starts_with("turn 1 of 20, check passed"), "{said:?}");
    assert_eq!(count(&log), 1);
}

#[test]
fn a_turn_that_was_stopped_with_its_loop_is_taken_again() {
    stopped_in_a_turn(&[], |harness, job, _| drop(harness.run(&["stop", job]).exits(0)), &["resume", "-d"]);
}

#[test]
fn a_turn_in_the_one_conversation_that_was_stopped_with_its_loop_is_taken_again() {
    stopped_in_a_turn(&["--same"], |harness, job, _| drop(harness.run(&["stop", job]).exits(0)), &["resume", "-d"]);
}

#[test]
fn a_turn_that_was_killed_with_its_loop_is_taken_again() {
    stopped_in_a_turn(&[], |harness, job, _| drop(harness.run(&["stop", "--kill", job]).exits(0)), &["resume", "-d"]);
}

#[test]
fn a_turn_that_a_shutdown_has_ended_is_taken_again() {
    let shut_down = |harness: &Harness, job: &str, child: &str| {
        // The job first, so that it starts no other turn. Its driver may have ended the child before the child's keeper
        // gets the signal.
        let keepers = [job, child].map(|id| harness.session(id).living(ProcessKind::Keeper));
        for keeper in keepers {
            if let Some(pidfd) = Pidfd::open(&keeper).unwrap() {
                pidfd.signal(Signal::TERM).unwrap();
            }
        }
        harness.run(&["wait", job]).exits(6);
        harness.run(&["wait", child]).exits(6);
    };
    stopped_in_a_turn(&[], shut_down, &["recover"]);
}

#[test]
fn a_check_that_was_stopped_with_its_loop_is_run_again_and_no_turn_is_added() {
    let harness = harness();
    let (began, go) = (file(&harness, "began"), file(&harness, "go"));
    let check = format!("echo ran >> {}; test -e {} || sleep 100000", began.display(), go.display());
    let job = start(&harness, &["demo", "say more", "--until", &check]);
    let folder = file(&harness, "");
    patience::until("the check runs", &[&folder], || (count(&began) == 1).then_some(()));
    harness.run(&["stop", &job]).exits(0);
    std::fs::write(&go, "").unwrap();
    harness.run(&["resume", "-d", &job]).exits(0);
    harness.run(&["wait", &job]).exits(0);
    assert_eq!(count(&began), 2);
    assert_eq!((children(&harness, &job, "turn").len(), children(&harness, &job, "check").len()), (1, 2));
    assert!(lines(&harness, &job).last().unwrap().starts_with("the check passes after 1 turn"));
}

#[test]
fn the_end_of_a_followed_job_offers_commands_that_a_job_accepts() {
    let harness = harness();
    let go = file(&harness, "go");
    let check = format!("test -e {} || sleep 100000", go.display());
    let job = start(&harness, &["demo", "say more", "--until", &check]);
    let folder = harness.home().join("sessions").join(&job);
    patience::until("the check runs", &[&folder], || children(&harness, &job, "check").pop());
    harness.run(&["stop", &job]).exits(0);
    std::fs::write(&go, "").unwrap();
    let ended = harness.run(&["resume", &job]).exits(0);
    assert!(ended.stderr.contains(&format!("ostler resume {job} · ")), "{ended:?}");
}

#[test]
fn interrupting_a_job_is_refused_and_the_running_session_is_named() {
    let mut harness = harness();
    let (job, child) = with_a_running_turn(&mut harness);
    let refused = harness.run(&["interrupt", &job]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(refused.stderr.contains(&format!("ostler interrupt {child}")), "{refused:?}");
    assert!(!harness.session(&child).look().ended);
    harness.run(&["stop", &job]).exits(0);
}

#[test]
fn a_job_is_not_continued_with_a_message() {
    let mut harness = harness();
    let (job, _) = with_a_running_turn(&mut harness);
    harness.run(&["stop", &job]).exits(0);
    let refused = harness.run(&["resume", "-d", &job, "and this"]).exits(2);
    assert!(refused.stderr.contains("is a job and takes no message"), "{refused:?}");
    assert!(harness.session(&job).show().ended);
}
