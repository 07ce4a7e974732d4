//! Claude in another terminal.

use crate::one_home::{Foreign, OneHome};
use ostler_mock_llm::agents::Agent;
use ostler_testkit::ProcessKind;
use serde_json::{Value, json};

const HEADLESS: [&str; 6] = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];

fn claude(home: &OneHome, prompt: &str) -> Foreign {
    let message = json!({"type": "user", "message": {"role": "user", "content": prompt}});
    home.start(&HEADLESS, &format!("{message}\n"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn a_foreign_claude_is_listed_with_its_process_and_directory_until_it_ends() {
    let Some(home) = OneHome::new(Agent::Claude) else { return };
    let mut foreign = claude(&home, "say good day");
    let shown = home.until_foreign(&foreign);
    assert_eq!(shown["agent"], "claude");
    assert_eq!(shown["cwd"], home.work().to_str().unwrap());
    assert_eq!(shown["ours"], false);
    assert_eq!(shown["known_by"], "registry");
    let native_id = text(&shown["native_id"]);
    assert_eq!(home.who(native_id), [(foreign.pid(), false)]);
    let words = home.harness.run(&["ls", "--foreign"]).exits(0).stdout;
    assert!(words.contains(native_id) && words.contains(&foreign.pid().to_string()), "{words}");
    let words = home.harness.run(&["who", native_id]).exits(0).stdout;
    assert!(words.contains("not started by ostler") && words.contains(&foreign.pid().to_string()), "{words}");
    let doctor = home.harness.run(&["doctor", "--json"]).json();
    let is_foreign = |finding: &Value| finding["check"] == "foreign" && finding["do"] == "ostler ls --foreign";
    assert!(doctor.as_array().unwrap().iter().any(is_foreign), "{doctor}");
    foreign.leave();
    assert_eq!(home.foreign(&foreign), None);
    assert_eq!(home.who(native_id), []);
    ostler_testkit::proves("claude", "foreign: named with its process, gone when it is");
}

#[test]
fn a_killed_foreign_claude_is_not_listed_and_the_doctor_names_the_file_it_left() {
    let Some(home) = OneHome::new(Agent::Claude) else { return };
    let mut foreign = claude(&home, "hang");
    let shown = home.until_foreign(&foreign);
    home.asked();
    foreign.kill();
    let record = home.harness.root().join(format!("home/.claude/sessions/{}.json", foreign.pid()));
    assert!(record.exists(), "a killed claude does not remove its record");
    assert_eq!(home.foreign(&foreign), None);
    assert_eq!(home.who(text(&shown["native_id"])), []);
    let doctor = home.harness.run(&["doctor", "--json"]).json();
    let names_it = |finding: &Value| {
        finding["check"] == "foreign"
            && finding["do"].as_str().is_some_and(|what| what.contains(record.to_str().unwrap()))
    };
    assert!(doctor.as_array().unwrap().iter().any(names_it), "{doctor}");
}

#[test]
fn a_kept_claude_is_not_foreign_and_who_names_both_processes_of_a_shared_conversation() {
    let Some(home) = OneHome::new(Agent::Claude) else { return };
    let work = home.work();
    let session = home.harness.detach(&["--keep", "--cwd", work.to_str().unwrap(), "claude", "say one"]);
    home.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let ours = i64::from(session.living(ProcessKind::Agent).pid());
    assert_eq!(home.harness.run(&["ls", "--foreign", "--json"]).exits(0).json(), json!([]));
    assert_eq!(home.who(session.id()), [(ours, true)]);

    let native_id = session.show().native_id.unwrap();
    let message = json!({"type": "user", "message": {"role": "user", "content": "hang"}});
    let arguments: Vec<&str> = HEADLESS.into_iter().chain(["--resume", &native_id]).collect();
    let mut foreign = home.start(&arguments, &format!("{message}\n"));
    assert_eq!(home.until_at(&foreign, &native_id)["kept_by"], session.id());
    for word in [session.id(), native_id.as_str()] {
        let mut both = home.who(word);
        both.sort_by_key(|(_, ours)| *ours);
        assert_eq!(both, [(foreign.pid(), false), (ours, true)]);
    }
    // The conversation has a session already, so there is nothing to adopt.
    let advice = |what_to_do: &str| {
        let told = home.harness.run(&["ls", "--foreign"]).exits(0).stderr;
        let (pid, id) = (foreign.pid(), session.id());
        let line = format!("process {pid} is using the conversation of session {id}; {what_to_do} {id}\n");
        assert_eq!(told, line);
    };
    advice("it runs in both; see ostler who");
    session.stop();
    advice("take it over: ostler resume --takeover");
    foreign.kill();
    assert_eq!(home.who(session.id()), []);
}

#[test]
fn a_restart_waits_for_a_foreign_claude_that_has_the_conversation() {
    let Some(home) = OneHome::new(Agent::Claude) else { return };
    let work = home.work();
    let rule = ["--keep", "--restart", "on-failure", "--cwd", work.to_str().unwrap(), "claude", "say one"];
    let session = home.harness.detach(&rule);
    home.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let native_id = session.show().native_id.unwrap();
    let message = json!({"type": "user", "message": {"role": "user", "content": "hang"}});
    let arguments: Vec<&str> = HEADLESS.into_iter().chain(["--resume", &native_id]).collect();
    let mut foreign = home.start(&arguments, &format!("{message}\n"));
    home.until_at(&foreign, &native_id);
    session.kill(ProcessKind::Agent);
    let waits = |view: &ostler_core::view::View| {
        let named = format!("process {}", foreign.pid());
        view.alarm.as_deref().is_some_and(|alarm| alarm.contains(&named) && alarm.contains("when it has ended"))
    };
    let view = session.until_look("it waits for the other process", waits);
    assert_eq!((view.run, view.ended), (1, false), "{view:?}");
    // A keeper that is killed meanwhile is replaced by one that waits as well.
    let before = session.kill(ProcessKind::Keeper);
    session.replaced(ProcessKind::Keeper, &before);
    assert_eq!(session.look().run, 1);
    foreign.kill();
    session.until_look("it continues", |view| view.run == 2 && view.alive);
    session.stop();
}

#[test]
fn a_claude_in_a_terminal_is_named_with_its_terminal_and_what_it_does() {
    let Some(home) = OneHome::new(Agent::Claude) else { return };
    Agent::Claude.trust(&home.harness.root().join("home"), &home.work()).unwrap();
    // A keeper of another home gives it a terminal of its own.
    let elsewhere = |words: &[&str]| {
        let mut command = home.harness.command(home.harness.program());
        command.args(words).env("OSTLER_HOME", home.harness.root().join("another")).current_dir(home.work());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let id = elsewhere(&["run", "-d", "-t", "claude"]);
    let shown = home.until_listed(|listed| listed["status"] == "idle");
    assert!(text(&shown["terminal"]).starts_with("pts/"), "{shown}");
    assert_eq!(shown["ours"], false, "another home's session is foreign here");
    elsewhere(&["stop", id.trim()]);
    assert_eq!(home.harness.run(&["ls", "--foreign", "--json"]).exits(0).json(), json!([]));
}
