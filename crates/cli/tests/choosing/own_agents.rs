//! Agents of a person's own, from config.toml: kept like a command, and ended as it likes to be.

use crate::harness;
use ostler_testkit::{Harness, Who};

/// Repeats what it is told, and says how its input ended.
const POLITE: &str = "echo ready \"$@\"; while read -r line; do echo got \"$line\"; \
                      if [ \"$line\" = /quit ]; then exit 0; fi; done; echo got end";

fn configure(harness: &Harness, settings: &str) {
    harness.configure(&format!(
        "[agents.mine]\ncommand = [\"sh\", \"-c\", {POLITE:?}, \"mine\", \"first\"]\n{settings}\n"
    ));
}

#[test]
fn it_goes_by_its_name_gets_its_arguments_and_is_ended_by_the_text_that_it_wants() {
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
fn in_a_terminal_its_text_is_typed_also_by_a_keeper_that_knows_only_the_records() {
    let harness = harness();
    configure(&harness, "mode = \"terminal\"\nend_text = \"/quit\"");
    let session = harness.detach(&["mine"]);
    session.until_printed("ready first");
    assert_eq!(session.show().mode, "terminal");
    // The keeper from now on cannot ask the configuration.
    harness.configure("");
    let before = session.kill(Who::Keeper);
    session.replaced(Who::Keeper, &before);
    harness.run(&["stop", session.id()]).exits(0);
    assert!(harness.run(&["logs", session.id()]).exits(0).stdout.contains("got /quit"));
    assert_eq!(session.show().agent, "mine");
}

#[test]
fn the_signal_that_it_wants_is_sent() {
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
fn what_it_cannot_do_and_what_is_misspelt_is_said_in_one_line() {
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
