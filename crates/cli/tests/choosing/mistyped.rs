//! What is mistyped is answered with what was probably meant, in one line.

use crate::{harness, harness_with};

#[test]
fn commands_and_flags() {
    let harness = harness();
    for (words, hint) in [
        (&["lss"][..], "did you mean ostler ls?"),
        (&["lo"], "did you mean ostler loop or ostler logs?"),
        (&["arch"], "did you mean ostler archive?"),
        (&["-x"], "ostler has no flag -x; see ostler --help"),
        (
            &["send", "@last", "-hello"],
            "send has no flag -hello; for text that begins with a dash: ostler send … -m TEXT",
        ),
        (&["stop"], "ostler stop ID, or stop every running session: --all, or those in this folder: --here"),
        (&["run", "demo", "x", "--name=-dash"], "it must not begin with a space, a dot or a dash"),
        (&["run", "demo", "x", "--name", "end "], "it must not end with a space"),
        (
            &["run", "demo", "x", "--name", &"n".repeat(65)],
            "nnn…\" is not a valid name; it has 65 bytes, use at most 64",
        ),
        (&["rm", "x"], "use ostler purge ID"),
        (&["claude", "fix it"], "start it with ostler run claude"),
        (&["frobnicate"], "see ostler --help"),
        (&["show", "--jsn", "x"], "did you mean --json?"),
        (&["run", "--outptu", "json", "demo", "x"], "did you mean --output?"),
        (&["run", "demo", "x", "--verbose"], "ostler run demo \"…\" -- --verbose"),
        (&["send", "x", "-v"], "ostler send … -m TEXT"),
        (&["wait"], "ID is missing; see ostler wait --help"),
        (&["checkpoints", "restore"], "are missing; see ostler checkpoints restore --help"),
        (&["worktree"], "a command is missing after worktree; use ls, rm or gc"),
        (&["worktree", "bogus"], "there is no command \"worktree bogus\"; use ls, rm or gc"),
        (&["worktree", "rm", "x", "--forc"], "worktree rm has no flag --forc; did you mean --force?"),
        (&["ls", "extra"], "\"extra\" is one word too many; see ostler ls --help"),
        (&["send", "x", "hello", "there"], "put text in quotes, or see ostler send --help"),
        (
            &["run", "--budget", "-1", "demo", "x"],
            "\"-1\" looks like a flag; as the value of --budget, write --budget=-1",
        ),
        (&["run", "demo", "--timeout", "-5s", "x"], "as the value of --timeout, write --timeout=-5s"),
        (&["answer", "x", "--text", "-é"], "as the value of --text, write --text=-é"),
        (&["rewind"], "ID is missing; see ostler rewind --help"),
        (&["rewind", "x"], "--turn is needed as well"),
        (&["run", "--output", "xml", "demo", "x"], "\"xml\" is not a value of --output; use text, json or stream-json"),
        (&["run", "--priority", "3", "demo", "x"], "--queue is needed as well"),
        (&["loop", "--max", "x", "demo", "x"], "\"x\" is not a value of --max: it must be a number"),
        (&["loop", "--max", "0", "demo", "x"], "\"0\" is not a value of --max: it must be at least 1"),
        (&["fork"], "ID is missing; see ostler fork --help"),
        (&["help", "bogus"], "topics: exit-codes, ids, files, agents, config, jobs, notify"),
        (&["help", "exit-code"], "did you mean exit-codes?"),
    ] {
        let output = harness.run(words).exits(2);
        assert!(output.complaint().contains(hint), "{words:?}: {}", output.complaint());
    }
    for words in [&["list", "--json"][..], &["ps", "--json"], &["help"], &["help", "topics"], &["help", "run"]] {
        let output = harness.run(words).exits(0);
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{words:?}: {output:?}");
    }
    for topic in ["exit-codes", "ids", "files", "agents", "config"] {
        harness.run(&["help", topic]).exits(0);
    }
    let output = harness.run(&["run", "--help"]).exits(0);
    assert!(output.stdout.contains("Examples:\n  ostler run claude"), "{}", output.stdout);
}

#[test]
fn agents_by_which_a_list_is_filtered() {
    let harness = harness();
    harness.run(&["run", "demo", "say hello"]).exits(0);
    let output = harness.run(&["ls", "--agent", "demox"]).exits(0);
    assert_eq!(output.stdout, "No session matches.\n");
    assert_eq!(output.complaint(), "ostler: \"demox\" is not an agent; did you mean demo?");
    let output = harness.run(&["ls", "--agent", "claude"]).exits(0);
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("No session matches.\n", ""));
}

#[test]
fn names_of_sessions() {
    let harness = harness();
    harness.run(&["run", "--name", "tests", "demo", "say hello"]).exits(0);
    let output = harness.run(&["show", "testts"]).exits(3);
    assert!(output.complaint().ends_with("did you mean tests?"), "{output:?}");
    harness.run(&["log", "tests"]).exits(0);
}

#[test]
fn a_misspelt_agent_is_not_a_prompt_for_the_default_agent() {
    let (harness, _) = harness_with(&[]);
    harness.configure("default_agent = 'demo'\n\n[agents.mine]\ncommand = ['true']\n");
    for (word, meant) in [("claud", "claude"), ("mien", "mine"), ("DEMO", "demo")] {
        let output = harness.run(&["run", word]).exits(2);
        assert!(output.complaint().contains(&format!("did you mean {meant}?")), "{output:?}");
        assert!(output.complaint().ends_with(&format!("ostler run -p {word}")), "{output:?}");
    }
    let output = harness.run(&["run", "claud", "fix it"]).exits(2);
    assert!(output.complaint().ends_with("did you mean claude?"), "{output:?}");
    assert!(harness.ls().is_empty());
    // The same when there is no default agent.
    harness.configure("");
    assert!(harness.run(&["run", "claud"]).exits(2).complaint().ends_with("did you mean claude?"));
    harness.configure("default_agent = 'demo'\n");
    // With -p it is a prompt, and a word that resembles no agent is a prompt without it.
    harness.run(&["run", "-p", "claud"]).exits(0);
    harness.run(&["run", "explain"]).exits(0);
}
