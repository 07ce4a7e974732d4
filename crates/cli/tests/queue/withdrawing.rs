//! A queued session can be stopped, sent messages and waited for like any other.

use crate::{block, harness, queue_word, release, said, wait_for, with_queue};
use ostler_core::view::Phase;
use ostler_sys::pause_points::{Point, Role, VARIABLE, token};
use ostler_sys::process::Pidfd;
use ostler_testkit::{ProcessKind, patience};
use rustix::process::Signal;
use std::path::PathBuf;

#[test]
fn stop_withdraws_a_queued_session_and_nothing_of_it_runs() {
    let harness = with_queue(1);
    let _blocker = block(&harness);
    let sessions: Vec<_> = ["a", "b", "c"].iter().map(|word| queue_word(&harness, &[], word)).collect();
    let waiting = sessions[1].living(ProcessKind::Agent);
    harness.run(&["stop", sessions[1].id()]).exits(0);
    patience::ended(&waiting);
    let shown = sessions[1].show();
    let outcome = shown.outcome();
    assert_eq!((outcome.kind.as_str(), outcome.turns), ("stopped", 0), "{outcome:?}");
    assert!(outcome.cause.contains("it was queued, and nothing ran"), "{outcome:?}");
    let _gate = release(&harness);
    wait_for(&harness, &sessions);
    assert_eq!(said(&harness), ["a", "c"]);
}

#[test]
fn a_queued_session_has_nothing_to_continue_and_says_how_to_start_it_at_once() {
    let harness = with_queue(1);
    let _blocker = block(&harness);
    let command = queue_word(&harness, &[], "a");
    let refused = harness.run(&["resume", "--now", command.id()]).exits(2);
    let words =
        format!("{} is queued: it has not begun, so there is nothing to continue; it starts by itself", command.id());
    assert!(refused.complaint().contains(&words), "{refused:?}");
    assert!(refused.complaint().ends_with("then run it without a queue"), "{refused:?}");
    let agent = harness.detach(&["--queue", "q", "-p", "say hello", "demo"]);
    let refused = harness.run(&["resume", "--now", agent.id()]).exits(2);
    let words = format!("to start it at once: ostler stop {0}, then ostler resume {0}", agent.id());
    assert!(refused.complaint().ends_with(&words), "{refused:?}");
    harness.run(&["stop", agent.id()]).exits(0);
    assert!(harness.run(&["resume", agent.id()]).exits(0).stdout.contains("hello"));
}

#[test]
fn a_configuration_error_of_queues_that_refuses_a_session_is_reported_once() {
    let harness = with_queue(1);
    harness.run(&["run", "--name", "a", "demo", "say x"]).exits(0);
    harness.configure("[queues.q]\nslots = 1\nslotz = 2\n");
    for words in [
        &["run", "-d", "--queue", "q", "demo", "say x"][..],
        &["run", "-d", "--queue", "q", "--on", "demo", "-p", "say x"],
        &["loop", "-d", "--queue", "q", "demo", "say x"],
        &["resume", "-d", "--queue", "q", "a", "say x"],
    ] {
        let refused = harness.run(words).exits(2);
        assert!(refused.complaint().contains("there is no setting \"slotz\"; did you mean slots?"), "{refused:?}");
    }
    // A session that needs no queue is started, and the error is reported.
    assert!(harness.run(&["run", "demo", "say x"]).exits(0).stderr.contains("slotz"));
}

#[test]
fn one_ctrl_c_withdraws_a_queued_session_that_is_followed() {
    let harness = with_queue(1);
    let _blocker = block(&harness);
    for words in [
        &["run", "--name", "one", "--queue", "q", "demo", "say x"][..],
        &["run", "--name", "two", "--at", "+1h", "--", "true"],
    ] {
        let following = harness.start(words);
        let folder = harness.home().join("sessions");
        patience::until("it is queued", &[&folder], || {
            harness.ls().into_iter().find(|one| one.name.as_deref() == Some(words[2]) && one.state == "queued")
        });
        // From then on it gets signals through a descriptor.
        let fds = PathBuf::from(format!("/proc/{}/fd", following.process().pid()));
        patience::until("it has a signalfd", &[], || {
            let mut fds = std::fs::read_dir(&fds).ok()?.flatten().filter_map(|fd| std::fs::read_link(fd.path()).ok());
            fds.find(|fd| fd.to_string_lossy().contains("signalfd"))
        });
        Pidfd::open(following.process()).unwrap().unwrap().signal(Signal::INT).unwrap();
        let ended = following.finish().exits(6);
        assert!(ended.stderr.contains("stopping") && ended.stderr.contains("nothing ran"), "{ended:?}");
    }
}

#[test]
fn a_message_for_a_queued_agent_waits_and_is_delivered_after_its_prompt() {
    let harness = with_queue(1);
    let _blocker = block(&harness);
    let session = harness.detach(&["--queue", "q", "demo", "say first"]);
    harness.run(&["send", session.id(), "say second"]).exits(0);
    let shown = session.until_look("both wait", |view| view.queued == 2);
    assert_eq!((shown.state, shown.turns), (Phase::Queued, 0));
    harness.run(&["interrupt", session.id()]);
    assert_eq!(session.look().state, Phase::Queued, "there is no turn to interrupt");
    let _gate = release(&harness);
    harness.run(&["wait", session.id()]).exits(0);
    let logs = harness.run(&["logs", session.id()]).exits(0).stdout;
    let (first, second) = (logs.find("first").unwrap(), logs.rfind("second").unwrap());
    assert!(first < second, "{logs}");
    assert_eq!(session.show().turns, 2);
}

#[test]
fn a_resumed_session_waits_for_a_slot_too() {
    let harness = with_queue(1);
    harness.run(&["run", "demo", "say first"]).exits(0);
    let session = harness.session(&harness.ls()[0].id);
    let _blocker = block(&harness);
    harness.run(&["resume", "-d", "--queue", "nowhere", session.id(), "say second"]).exits(2);
    assert_eq!(session.show().run, 1);
    harness.run(&["resume", "-d", "--queue", "q", session.id(), "say second"]).exits(0);
    let shown = session.until_look("it is queued", |view| view.state == Phase::Queued && view.queued == 1);
    assert_eq!((shown.run, shown.turns), (2, 1));
    assert!(harness.run(&["ls"]).exits(0).stdout.contains("number 1 in queue q"));
    let _gate = release(&harness);
    harness.run(&["wait", session.id()]).exits(0);
    assert_eq!((session.show().turns, session.show().outcome().text.as_deref()), (2, Some("second")));
}

#[test]
fn a_queued_session_gets_its_terminal_or_its_piped_input() {
    let harness = with_queue(1);
    let _blocker = block(&harness);
    let terminal = harness.detach(&["-t", "--queue", "q", "--", "sh", "-c", "tty && stty size"]);
    let file = crate::log(&harness);
    let words = ["run", "-d", "--queue", "q", "--", "sh", "-c", "cat >> \"$1\"", "sh", file.to_str().unwrap()];
    let piped = harness.run_with_input(&words, b"from the pipe\n").exits(0);
    let piped = harness.session(piped.stdout.trim_end());
    assert_eq!((terminal.look().state, piped.look().state), (Phase::Queued, Phase::Queued));
    let _gate = release(&harness);
    wait_for(&harness, &[terminal, piped]);
    assert_eq!(said(&harness), ["from the pipe"]);
    let drawn = std::fs::read_to_string(terminal.run_file("out")).unwrap();
    assert!(drawn.contains("/dev/pts/") && drawn.contains("24 80"), "{drawn}");
}

#[test]
fn a_stop_during_the_start_withdraws_if_it_comes_first_and_is_a_usual_stop_otherwise() {
    for (point, ran) in [(Point::SlotTaken, false), (Point::ProgramClaimed, true)] {
        let mut harness = harness();
        let pauses = harness.root().join("pauses");
        std::fs::create_dir(&pauses).unwrap();
        harness.configure("[queues.q]\nslots = 1\n");
        harness.set(VARIABLE, pauses.clone());
        let file = pauses.join(format!("{}.stop", token(Role::Waiter, point)));
        std::fs::write(&file, "1").unwrap();
        let session = harness.detach(&["--queue", "q", "--", "sleep", "600"]);
        patience::until("the waiting process is stopped", &[&pauses], || (!file.exists()).then_some(()));
        harness.run(&["stop", session.id()]).exits(0);
        let shown = session.show();
        let outcome = shown.outcome();
        assert_eq!(outcome.kind, "stopped", "{outcome:?}");
        assert_eq!(outcome.cause.contains("nothing ran"), !ran, "{outcome:?}");
        // The slot is free, whichever the point.
        let next = queue_word(&harness, &[], "next");
        harness.run(&["wait", next.id()]).exits(0);
    }
}

#[test]
fn a_slot_is_free_when_the_session_has_ended_and_not_before() {
    let harness = with_queue(1);
    let kept = harness.detach(&["--queue", "q", "--keep", "demo", "say hello"]);
    harness.run(&["wait", "--until", "turn", kept.id()]).exits(0);
    let next = queue_word(&harness, &[], "next");
    // The slot stays taken when the keeper is replaced.
    let keeper = kept.kill(ProcessKind::Keeper);
    kept.replaced(ProcessKind::Keeper, &keeper);
    assert_eq!(next.show().state, "queued", "the session is idle, and has its slot");
    kept.stop();
    harness.run(&["wait", next.id()]).exits(0);
    assert_eq!(said(&harness), ["next"]);
}
