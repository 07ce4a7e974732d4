//! `ostler notify test` says by which ways it arrived.

use crate::server::{Answer, Server};
use crate::{harness, notifying};

#[test]
fn notify_test_sends_one_by_each_way_and_says_which_arrived() {
    let harness = harness();
    let none = harness.run(&["notify", "test"]).exits(2);
    assert!(none.complaint().contains("[notify]"), "{none:?}");
    let server = Server::new();
    let file = harness.root().join("got");
    let ntfy = server.url("/topic");
    let write = |code: i32| {
        let command = format!("['sh', '-c', 'cat > {}; exit {code}']", file.display());
        harness.configure(&format!(
            "[notify]\nterminal = true\ncommand = {command}\n[notify.webhook]\nurl = '{}'\n\
             [notify.ntfy]\nurl = '{ntfy}'\ntoken_env = 'NTFY_TOKEN'\n",
            server.url("/hook")
        ));
    };
    write(0);
    let mut command = harness.command(harness.program());
    command.args(["notify", "test"]).env("NTFY_TOKEN", "tk_secret");
    let output = ostler_testkit::Started::new(command, None).finish().exits(1);
    for words in ["command: arrived (exit code 0)", "webhook: arrived (HTTP 204)", "ntfy: arrived (HTTP 204)"] {
        assert!(output.stdout.contains(words), "{words}: {output:?}");
    }
    // The test runs without a terminal.
    assert!(output.stdout.contains("terminal: did not arrive: this is not a terminal"), "{output:?}");
    let requests = server.requests();
    let [hook, topic] = requests.as_slice() else { panic!("{requests:?}") };
    assert_eq!((hook.path.as_str(), hook.header("x-hub-signature-256")), ("/hook", ""));
    assert_eq!((topic.path.as_str(), topic.header("title")), ("/topic", "ostler: a test"));
    assert_eq!(topic.header("authorization"), "Bearer tk_secret");
    let got: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(got["id"], hook.id());

    write(3);
    server.always(Some(Answer::Redirect));
    let output = harness.run(&["notify", "test"]).exits(1);
    let expected = [
        "command: did not arrive: sh: exit code 3",
        "webhook: did not arrive: HTTP 302: it is redirected to /elsewhere",
        "ntfy: did not arrive: NTFY_TOKEN is not set",
    ];
    for words in expected {
        assert!(output.stdout.contains(words), "{words}: {output:?}");
    }
}

#[test]
fn a_command_that_hangs_is_killed_with_everything_it_has_started() {
    let server = Server::new();
    let harness =
        notifying(&server, "timeout = '2s'\nmoments = ['ended']\ncommand = ['sh', '-c', 'sleep 1000 & sleep 1000']");
    let output = harness.run(&["notify", "test"]).exits(1);
    assert!(output.stdout.contains("takes longer than 2 s and was killed"), "{output:?}");
    harness.nothing_is_left();
}

/// A program need not read the message, and the ways after it are still tried.
#[test]
fn a_command_that_does_not_read_its_input_has_arrived_when_it_succeeds() {
    let server = Server::new();
    let harness = notifying(&server, "command = ['true']");
    // Whether the program still runs when the message is written depends on timing, so this is repeated.
    for _ in 0..20 {
        let output = harness.run(&["notify", "test"]).exits(0);
        for words in ["command: arrived (exit code 0)", "webhook: arrived (HTTP 204)"] {
            assert!(output.stdout.contains(words), "{words}: {output:?}");
        }
    }
}

#[test]
fn a_wrong_setting_of_notify_is_named_once_and_the_others_apply() {
    let server = Server::new();
    let harness = notifying(&server, "quiet = '18:00-18:00'");
    let output = harness.run(&["notify", "test"]).exits(0);
    assert!(output.stdout.contains("webhook: arrived (HTTP 204)"), "{output:?}");
    assert_eq!(output.stderr.matches("18:00-18:00").count(), 1, "{output:?}");
    assert!(output.stderr.contains("using the default of this one setting"), "{output:?}");
    // The end of a session is still sent.
    harness.detach(&["--", "true"]);
    server.until("its end is sent", |requests| requests.iter().any(|one| !one.id().starts_with("test-")));

    harness.configure("notify = true\n");
    let output = harness.run(&["notify", "test"]).exits(2);
    assert_eq!(output.stderr.matches("config.toml").count(), 1, "{output:?}");
    harness.configure("ui = 'bogus'\n");
    let output = harness.run(&["ls"]).exits(0);
    assert!(output.stderr.contains("is neither \"default\" nor \"off\"; using \"off\""), "{output:?}");
}

#[test]
fn a_server_that_does_not_answer_is_reported() {
    let server = Server::new();
    let harness = notifying(&server, "timeout = '2s'");
    server.always(Some(Answer::Stall));
    let output = harness.run(&["notify", "test"]).exits(1);
    assert!(output.stdout.contains("webhook: did not arrive: no answer within 2 s"), "{output:?}");
}
