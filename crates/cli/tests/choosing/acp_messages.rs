//! A message that an ACP agent had when it was killed is neither given twice nor forgotten. The conversation that the
//! agent repeats when it is loaded decides; where nothing shows it, a person is told and decides.

use crate::harness;
use ostler_testkit::{Harness, ProcessKind, Session};
use std::path::PathBuf;

/// Stores its conversation in a file and repeats it on `session/load`. A message can make it block, before or after it
/// has stored the message.
const SCRIPT: &str = r#"
chunk() { echo '{"method":"session/update","params":{"update":{"sessionUpdate":"'$1'","content":{"text":"'"$2"'"}}}}'; }
hold() { : > "$HERE/holds"; read -r nothing < "$HERE/gate"; }
while read -r line; do
    id=${line#*'"id":"'}; id=${id%%'"'*}
    text=${line#*'"text":"'}; text=${text%%'"'*}
    case $line in
    *'"method":"initialize"'*) echo '{"id":"'$id'","result":{"protocolVersion":1}}' ;;
    *'"method":"session/new"'*) echo '{"id":"'$id'","result":{"sessionId":"native"}}' ;;
    *'"method":"session/load"'*)
        while read -r said; do chunk user_message_chunk "$said"; chunk agent_message_chunk ok; done < "$HERE/kept"
        echo '{"id":"'$id'","result":null}' ;;
    *'"method":"_ostler/ready"'*) echo '{"id":"'$id'","error":{"code":-32601,"message":"Method not found"}}' ;;
    *'"method":"session/prompt"'*)
        echo "$text" >> "$HERE/given"
        [ -e "$HERE/free" ] || case $text in *'before it is kept'*) hold ;; esac
        echo "$text" >> "$HERE/kept"
        [ -e "$HERE/free" ] || case $text in *'after it is kept'*) hold ;; esac
        chunk agent_message_chunk ok
        echo '{"id":"'$id'","result":{"stopReason":"end_turn"}}' ;;
    esac
done
"#;

struct Fixture {
    harness: Harness,
    folder: PathBuf,
}

impl Fixture {
    fn new() -> Fixture {
        let mut harness = harness();
        let folder = harness.root().join("agent");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("script"), SCRIPT).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, folder.join("gate"), rustix::fs::Mode::RWXU).unwrap();
        harness.set("HERE", &folder);
        Fixture { harness, folder }
    }

    fn start(&self, message: &str) -> Session<'_> {
        let script = self.folder.join("script");
        self.harness.detach(&["--keep", "acp", message, "--", "sh", script.to_str().unwrap()])
    }

    /// Kills the agent while it blocks with its message.
    fn kill_with_its_message(&self, session: &Session<'_>) {
        session.until("it blocks", || self.folder.join("holds").exists().then_some(()));
        session.kill(ProcessKind::Agent);
        self.harness.run(&["wait", session.id()]).exits(1);
        std::fs::write(self.folder.join("free"), "").unwrap();
    }

    fn given(&self) -> Vec<String> {
        std::fs::read_to_string(self.folder.join("given")).unwrap().lines().map(str::to_owned).collect()
    }
}

#[test]
fn where_nothing_shows_whether_a_message_was_delivered_a_person_decides() {
    let fixture = Fixture::new();
    let session = fixture.start("wait before it is kept");
    fixture.kill_with_its_message(&session);
    let harness = &fixture.harness;
    let shown = harness.run(&["show", "--json", session.id()]).exits(0).json();
    assert_eq!((&shown["queued"], &shown["maybe_delivered"]), (&0.into(), &serde_json::json!([1])));
    for words in [["show", session.id()], ["ls", "-a"]] {
        let output = harness.run(&words).exits(0);
        assert!(output.stdout.contains("message 1 may have been delivered"), "{output:?}");
    }
    let listed = harness.run(&["send", session.id(), "--list"]).exits(0);
    assert!(listed.stdout.contains("may have been delivered") && listed.stdout.contains("wait before"), "{listed:?}");
    let refused = harness.run(&["resume", session.id()]).exits(2);
    assert!(refused.complaint().contains("--again 1") && refused.complaint().contains("--withdraw 1"), "{refused:?}");

    harness.run(&["send", session.id(), "--again", "2"]).exits(1).complaint();
    harness.run(&["send", session.id(), "--again", "1"]).exits(0);
    let shown = harness.run(&["show", "--json", session.id()]).exits(0).json();
    assert_eq!((&shown["queued"], &shown["maybe_delivered"]), (&1.into(), &serde_json::Value::Null));
    harness.run(&["resume", session.id()]).exits(0);
    assert_eq!(fixture.given(), ["wait before it is kept", "wait before it is kept"]);
    assert_eq!(session.show().queued, 0);
}

#[test]
fn a_message_that_is_withdrawn_is_forgotten() {
    let fixture = Fixture::new();
    let session = fixture.start("wait before it is kept");
    fixture.kill_with_its_message(&session);
    fixture.harness.run(&["send", session.id(), "--withdraw", "1"]).exits(0);
    let listed = fixture.harness.run(&["send", session.id(), "--list"]).exits(0);
    assert_eq!(listed.stdout, "");
    fixture.harness.run(&["resume", session.id(), "go on"]).exits(0);
    assert_eq!(fixture.given(), ["wait before it is kept", "go on"]);
}

/// Also when the same message was sent before.
#[test]
fn a_loaded_conversation_shows_whether_it_has_the_message() {
    for (message, given_again) in [("wait after it is kept", 0), ("wait before it is kept", 1)] {
        for earlier in ["say one", message] {
            let fixture = Fixture::new();
            std::fs::write(fixture.folder.join("free"), "").unwrap();
            let session = fixture.start(earlier);
            fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
            std::fs::remove_file(fixture.folder.join("free")).unwrap();
            fixture.harness.run(&["send", session.id(), message]).exits(0);
            fixture.kill_with_its_message(&session);
            assert_eq!(session.show().outcome().kind, "failed");
            fixture.harness.run(&["resume", session.id(), "go on"]).exits(0);
            let mut expected = vec![earlier, message];
            expected.extend(vec![message; given_again]);
            expected.push("go on");
            assert_eq!(fixture.given(), expected, "{message:?} after {earlier:?}");
            let shown = fixture.harness.run(&["show", "--json", session.id()]).exits(0).json();
            assert_eq!(shown["maybe_delivered"], serde_json::Value::Null);
        }
    }
}

/// A message that is still in the pipe has not been read, whatever kind of agent it is.
#[test]
fn a_message_that_was_never_read_waits_again() {
    let fixture = Fixture::new();
    let session = fixture.start("say one");
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    session.signal(ProcessKind::Agent, rustix::process::Signal::STOP);
    fixture.harness.run(&["send", session.id(), "say two"]).exits(0);
    session.until_look("it is in the pipe", |view| view.queued == 0);
    session.kill(ProcessKind::Agent);
    fixture.harness.run(&["wait", session.id()]).exits(1);
    assert_eq!(session.show().queued, 1);
    fixture.harness.run(&["resume", session.id()]).exits(0);
    assert_eq!(fixture.given(), ["say one", "say two"]);
}
