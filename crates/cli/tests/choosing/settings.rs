//! A mistake in config.toml stops what needs the setting, and nothing else.

use crate::harness;

#[test]
fn what_does_not_need_the_broken_setting_works_with_a_warning() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    // The second text cannot be parsed at all.
    for (text, line) in [("\ngrace = 'soon'\n", "line 2"), ("[limits\n", "line 1"), ("detach_key = 5\n", "line 1")] {
        harness.configure(text);
        for words in [&["ls"][..], &["show", session.id()], &["logs", session.id()], &["send", "--list", session.id()]]
        {
            let output = harness.run(words).exits(0);
            let warning = output.complaint();
            assert!(warning.contains("config.toml") && warning.contains(line), "{words:?}: {warning}");
        }
    }
    harness.configure("grace = 'soon'\nlinger = 'later'\n");
    let output = harness.run(&["stop", session.id()]).exits(0);
    assert!(output.complaint().contains("(1 more: ostler doctor)"), "{output:?}");
    harness.configure("archive_after = 'never'\ndefault_agent = 1\n");
    let output = harness.run(&["run", "demo", "say hello"]).exits(0);
    assert_eq!(output.stdout, "hello\n");
    assert!(output.stderr.starts_with("ostler: ") && output.stderr.contains("archive_after"), "{output:?}");
    let output = harness.run(&["run", "say hello"]).exits(2);
    assert!(output.complaint().contains("line 2: "), "{output:?}");
}

#[test]
fn a_session_is_not_started_with_a_broken_setting_that_it_needs() {
    let harness = harness();
    for (text, words) in [
        ("[limits]\nmemory = 'much'\n", "line 2"),
        ("[limts]\nmemory = '2G'\n", "did you mean limits?"),
        ("linger = 'later'\n", "linger: \"later\""),
        ("default_agent = \n", "line 1"),
    ] {
        harness.configure(text);
        let output = harness.run(&["run", "-d", "demo", "say x"]).exits(2);
        assert!(output.complaint().contains(words), "{output:?}");
        assert!(output.complaint().ends_with("; correct or remove it"), "{output:?}");
    }
    harness.configure("[agents.mine]\ncommand = ['true']\ncolour = 'red'\n\n[agents.yours]\ncommand = ['true']\n");
    let output = harness.run(&["run", "mine"]).exits(2);
    assert!(output.complaint().contains("line 3: "), "{output:?}");
    harness.run(&["run", "yours"]).exits(0);
    assert_eq!(harness.ls().len(), 1);
}

#[test]
fn doctor_names_every_mistake_with_file_and_line() {
    let harness = harness();
    harness.configure("default_agent = 'claud'\ncolour = 'red'\n\ngrace = 'soon'\n[agents.mine]\nmode = 'terminal'\n");
    let output = harness.run(&["doctor"]).exits(1);
    assert_eq!(output.stderr, "", "{output:?}");
    for words in [
        "line 1: default_agent \"claud\" is not an agent; did you mean claude?",
        "line 2: there is no setting \"colour\"",
        "line 4: grace: ",
        "line 5: [agents.mine] has no program",
    ] {
        let found = output.stdout.lines().any(|line| line.contains("config.toml") && line.contains(words));
        assert!(found, "{words:?} is missing in {}", output.stdout);
    }
    // An agent that does not exist is a mistake for every command, not only for a prompt.
    harness.configure("\ndefault_agent = 'claud'\n");
    let output = harness.run(&["ls"]).exits(0);
    let warning = output.complaint();
    assert!(warning.contains("line 2: default_agent \"claud\" is not an agent; did you mean claude?"), "{warning}");
    harness.configure("grace = '3s'\n");
    let output = harness.run(&["doctor"]);
    assert!(output.stdout.contains("config.toml has no mistakes"), "{}", output.stdout);
}
