//! Two processes never write to one conversation, whichever sessions and homes they belong to. The second one is
//! refused with the name of the first, and can start once the first has ended, or was ended by `--takeover`.

use crate::harness;
use ostler_sys::process::{Identity, Pidfd, command_line};
use ostler_testkit::{Harness, Output, ProcessKind, Session, Started, patience};
use rustix::process::Signal;
use std::path::PathBuf;

/// `ostler` in another home of the same user.
fn elsewhere(harness: &Harness, home: &str, words: &[&str]) -> Output {
    let mut command = harness.command(harness.program());
    command.args(words).env("OSTLER_HOME", harness.root().join(home));
    Started::new(command, None).finish()
}

/// Copies the whole home, once no process changes it any more.
fn copied_home(harness: &Harness, name: &str) {
    harness.nothing_is_left();
    harness.copy(&harness.home(), &harness.root().join(name));
}

fn locks(harness: &Harness) -> Vec<PathBuf> {
    let found = std::fs::read_dir(harness.root().join("state/ostler/writers")).unwrap();
    found.map(|entry| entry.unwrap().path()).collect()
}

/// The complaint names the process, since when it runs, and its session.
#[track_caller]
fn is_refused_by_name(output: Output, holder: &Session<'_>) {
    let output = output.exits(7);
    let words = output.complaint();
    let process = format!("process {} (", holder.living(ProcessKind::Agent).pid());
    assert!(words.contains(&process) && words.contains("since "), "{words}");
    assert!(words.contains(&format!("session {} in ", holder.id())), "{words}");
}

#[test]
fn another_session_of_the_same_conversation_is_refused_in_this_home_and_in_another() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "say one"]);
    harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let native_id = session.show().native_id.unwrap();
    // An agent that is killed before it has written a first line leaves no conversation to resume.
    session.until("its transcript has begun", || {
        std::fs::metadata(session.show().transcript?).is_ok_and(|file| file.len() > 0).then_some(())
    });
    let again = ["run", "demo", "say two", "--", "--resume", &native_id];
    is_refused_by_name(harness.run(&again), &session);
    is_refused_by_name(elsewhere(&harness, "another", &again), &session);
    assert_eq!(harness.ls().len(), 1, "a refused session leaves nothing");
    let who = elsewhere(&harness, "another", &["who", &native_id]).exits(0);
    assert!(who.stdout.contains(&format!("session {}, another home", session.id())), "{who:?}");
    assert_eq!(locks(&harness).len(), 1);
    session.stop();
    assert_eq!(locks(&harness), [] as [PathBuf; 0], "and neither does a finished one");
    assert_eq!(elsewhere(&harness, "another", &again).exits(0).stdout, "two\n");
}

#[test]
fn a_copied_home_cannot_resume_what_the_original_runs() {
    let harness = harness();
    harness.run(&["run", "demo", "say one"]).exits(0);
    copied_home(&harness, "copy");
    let session = harness.session(&harness.ls()[0].id);
    harness.run(&["resume", "-d", "--keep", session.id()]).exits(0);
    let run = session.path().join("runs/2/run.json");
    let agent = session.until("it runs again", || {
        let record: serde_json::Value = serde_json::from_slice(&std::fs::read(&run).ok()?).ok()?;
        record["agent"]["pid"].as_i64()
    });
    let refused = elsewhere(&harness, "copy", &["resume", session.id(), "say two"]).exits(7);
    let words = refused.complaint();
    assert!(words.contains(&format!("process {agent} (")), "{words}");
    assert!(words.contains(session.path().to_str().unwrap()), "{words}");
    session.stop();
    elsewhere(&harness, "copy", &["resume", session.id(), "say two"]).exits(0);
}

#[test]
fn an_agent_that_has_lost_its_helpers_still_owns_its_conversation() {
    let harness = harness();
    // The agent's tool inherits the lock, and outlives the agent.
    let session = harness.detach(&["demo", "sleep"]);
    let tool = tool(&harness);
    let shown = session.show();
    let transcript = PathBuf::from(shown.transcript.unwrap());
    session.until("there is a conversation to resume", || transcript.exists().then_some(()));
    let native_id = shown.native_id.unwrap();
    let again = ["run", "demo", "say two", "--", "--resume", &native_id];
    let keeper = session.kill(ProcessKind::Keeper);
    session.replaced(ProcessKind::Keeper, &keeper);
    let holder = session.kill(ProcessKind::Holder);
    session.replaced(ProcessKind::Holder, &holder);
    is_refused_by_name(harness.run(&again), &session);
    session.orphan();
    is_refused_by_name(harness.run(&again), &session);
    session.kill(ProcessKind::Agent);
    assert!(tool.may_live());
    harness.run(&again).exits(0);
    Pidfd::open(&tool).unwrap().unwrap().signal(Signal::KILL).unwrap();
}

/// The process of the demo agent's endless tool.
fn tool(harness: &Harness) -> Identity {
    patience::until("the tool runs", &[&harness.root().join("home")], || {
        harness.alive().into_iter().find(|process| command_line(process.pid()) == ["sleep", "1000"])
    })
}

#[test]
fn of_fifty_simultaneous_resumes_one_runs_and_the_others_name_its_process() {
    let _alone = ostler_testkit::alone();
    let harness = harness();
    harness.run(&["run", "demo", "say one"]).exits(0);
    copied_home(&harness, "copy");
    let session = harness.session(&harness.ls()[0].id);
    // Half of them from a copy of the home, which has no records of the original's runs.
    let started: Vec<Started> = (0..50)
        .map(|number| {
            let mut command = harness.command(harness.program());
            command.args(["resume", "-d", "--keep", session.id(), "sleep"]);
            if number % 2 == 0 {
                command.env("OSTLER_HOME", harness.root().join("copy"));
            }
            Started::new(command, None)
        })
        .collect();
    let outputs: Vec<Output> = started.into_iter().map(Started::finish).collect();
    let ran = outputs.iter().filter(|output| output.code == Some(0)).count();
    let refused: Vec<&Output> = outputs.iter().filter(|output| output.code == Some(7)).collect();
    assert_eq!((ran, refused.len()), (1, 49), "{outputs:#?}");
    for output in refused {
        let words = output.complaint();
        let named = words.split_once("process ").map_or("", |(_, named)| named);
        assert!(named.starts_with(|first: char| first.is_ascii_digit()) && words.contains("since "), "{words}");
    }
    elsewhere(&harness, "copy", &["stop", session.id()]).exits(0);
}

#[test]
fn takeover_ends_a_session_of_any_home_with_its_turn_saved_and_continues() {
    let harness = harness();
    harness.run(&["run", "demo", "say one"]).exits(0);
    copied_home(&harness, "copy");
    let id = harness.ls()[0].id.clone();
    elsewhere(&harness, "copy", &["resume", "-d", "--keep", &id, "say two"]).exits(0);
    elsewhere(&harness, "copy", &["wait", &id, "--until", "turn"]).exits(0);
    harness.run(&["resume", &id, "say three"]).exits(7);
    assert_eq!(harness.run(&["resume", "--takeover", &id, "say three"]).exits(0).stdout, "three\n");
    let ended = elsewhere(&harness, "copy", &["show", "--json", &id]).exits(0).json();
    assert_eq!(ended["outcome"]["saved"], "verified", "{ended}");
    let transcript = std::fs::read_to_string(harness.session(&id).show().transcript.unwrap()).unwrap();
    for said in ["say one", "say two", "say three"] {
        assert_eq!(transcript.matches(&format!("{said}\"")).count(), 1, "{said} in {transcript}");
    }
}

#[test]
fn takeover_of_a_running_session_stops_it_and_begins_its_next_run() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "say one"]);
    harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let before = session.living(ProcessKind::Agent);
    let refused = harness.run(&["resume", session.id(), "say two"]).exits(7);
    assert!(refused.complaint().contains(&format!("process {} (", before.pid())), "{refused:?}");
    harness.run(&["resume", "--takeover", session.id(), "say two"]).exits(0);
    assert!(!before.may_live());
    assert_eq!((session.show().run, session.show().turns), (2, 2));
}
