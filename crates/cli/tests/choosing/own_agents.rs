//! A person's own agents, from config.toml: kept like a command, and ended in the way that is configured.

use crate::harness;
use ostler_testkit::{Harness, ProcessKind};

/// Prints each line of its input, and how the input ended.
const POLITE: &str = "echo ready \"$@\"; while read -r line; do echo got \"$line\"; \
                      if [ \"$line\" = /quit ]; then exit 0; fi; done; echo got end";

fn configure(harness: &Harness, settings: &str) {
    harness.configure(&format!(
        "[agents.mine]\ncommand = [\"sh\", \"-c\", {POLITE:?}, \"mine\", \"first\"]\n{settings}\n"
    ));
}

#[test]
fn it_is_shown_by_its_name_gets_its_arguments_and_is_ended_by_its_end_text() {
    let harness = harness();
    configure(&harness, "end_text = \"/quit\"");
    let session = harness.detach(&["mine", "--", "second"]);
    session.until_printed("ready first second");
    assert_eq!((session.show().agent.as_str(), session.show().mode.as_str()), ("mine", "headless"));
    harness.run(&["stop", session.id()]).exits(0);
    assert!(harness.run(&["logs", session.id()]).exits(0).stdout.contains("got /quit"));
    assert_eq!(session.show().outcome().exit_code, Some(0));
}

#[test]
fn the_end_of_its_input_ends_it() {
    let harness = harness();
    configure(&harness, "end = \"stdin\"");
    let session = harness.detach(&["mine"]);
    session.until_printed("ready first");
    assert!(session.show().alive, "its input is open until then");
    harness.run(&["stop", session.id()]).exits(0);
    assert!(harness.run(&["logs", session.id()]).exits(0).stdout.contains("got end"));
}

#[test]
fn a_new_keeper_types_the_end_text_in_a_terminal_without_the_configuration() {
    let harness = harness();
    configure(&harness, "mode = \"terminal\"\nend_text = \"/quit\"");
    let session = harness.detach(&["mine"]);
    session.until_printed("ready first");
    assert_eq!(session.show().mode, "terminal");
    // A keeper that starts from now on does not find the agent in the configuration.
    harness.configure("");
    let before = session.kill(ProcessKind::Keeper);
    session.replaced(ProcessKind::Keeper, &before);
    harness.run(&["stop", session.id()]).exits(0);
    assert!(harness.run(&["logs", session.id()]).exits(0).stdout.contains("got /quit"));
    assert_eq!(session.show().agent, "mine");
}

#[test]
fn the_configured_signal_is_sent() {
    let harness = harness();
    for (word, said) in [("SIGINT", "got INT"), ("SIGHUP", "got HUP"), ("SIGTERM", "got TERM")] {
        let script = "trap 'echo got INT; exit 0' INT; trap 'echo got HUP; exit 0' HUP; \
                      trap 'echo got TERM; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
        harness.configure(&format!("[agents.mine]\ncommand = [\"sh\", \"-c\", \"{script}\"]\nend = \"{word}\"\n"));
        let session = harness.detach(&["mine"]);
        session.until_printed("ready");
        harness.run(&["stop", session.id()]).exits(0);
        let log = harness.run(&["logs", session.id()]).exits(0).stdout;
        assert!(log.contains(said), "{word}: {log}");
    }
}

#[test]
fn what_it_cannot_do_and_misspelt_settings_are_reported_in_one_line() {
    let harness = harness();
    configure(&harness, "");
    for words in [vec!["run", "mine", "a prompt"], vec!["run", "--keep", "mine"], vec!["run", "--model", "m", "mine"]] {
        let output = harness.run(&words).exits(2);
        assert!(output.complaint().contains("takes no prompt"), "{}", output.complaint());
    }
    harness.configure("linger = '1s'\n\n[agents.mine]\ncommand = ['cat']\nmod = 'terminal'\n");
    let output = harness.run(&["run", "mine"]).exits(2);
    assert!(output.complaint().contains("line 5") && output.complaint().contains("mod"), "{}", output.complaint());
    harness.configure("[agents.claude]\ncommand = ['cat']\n");
    let output = harness.run(&["ls"]).exits(0);
    assert!(output.complaint().contains("[agents.claude] is the name of a built-in agent"), "{}", output.complaint());
}
