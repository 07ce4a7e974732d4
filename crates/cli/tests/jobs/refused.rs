//! What cannot work is refused before anything is started: exit code 2, one line, nothing left behind.

use crate::{file, harness};

#[test]
fn bad_input_starts_nothing() {
    let harness = harness();
    let gone = file(&harness, "gone.md").display().to_string();
    let cases: &[(&[&str], &str)] = &[
        (&["loop", "nosuch", "x y"], "is not an agent"),
        (&["loop"], "a loop needs an agent and a prompt; try ostler loop"),
        (&["loop", "demo"], "a loop needs an agent and a prompt; try ostler loop"),
        (&["loop", "demo", "x", "--prompt-command", "true"], "there is a prompt and --prompt-command CMD"),
        (&["loop", "--", "make"], "needs an agent"),
        (&["loop", "demo", "x", "--until", "no-such-program --now"], "there is no program \"no-such-program\""),
        (&["loop", "demo", "x", "--until", "if then"], "cannot be started"),
        (&["loop", "demo", "x", "--until", ""], "it is empty"),
        (&["loop", "demo", "--prompt-command", "no-such-program"], "there is no program"),
        (&["loop", "demo", "-f", &gone], "cannot read the prompt"),
        (&["loop", "demo", "x", "--budget", "0"], "is not an amount of dollars"),
        (&["loop", "demo", "x", "--budget", "NaN"], "is not an amount of dollars"),
        (&["loop", "demo", "x", "--timeout", "soon"], "is not a duration"),
        (&["loop", "demo", "x", "--timeout", "0s"], "is a duration of zero"),
        (&["loop", "demo", "x", "--timeout", "0"], "\"0\" is"),
        (&["run", "demo", "x", "--restart", "on-failure:0"], "would never restart it"),
        (&["loop", "demo", "x", "--until-text", ""], "--until-text is empty"),
        (&["loop", "-w", "demo", "x"], "repository"),
        (&["run", "job", "x"], "a job is started by its own command"),
    ];
    for (arguments, words) in cases {
        let output = harness.run(arguments).exits(2);
        assert_eq!(output.stderr.lines().count(), 1, "{arguments:?}: {output:?}");
        assert!(output.stderr.contains(words), "{arguments:?}: {output:?}");
        assert!(harness.ls().is_empty(), "{arguments:?}");
    }
}

#[test]
fn an_agent_that_is_not_installed_is_refused() {
    let mut harness = harness();
    let folder = harness.root().join("bin");
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink("/bin/sh", folder.join("sh")).unwrap();
    harness.set("PATH", &folder);
    let output = harness.run(&["loop", "codex", "x y"]).exits(2);
    assert!(output.stderr.contains("npm install"), "{output:?}");
    // So is an agent whose budget could not be kept.
    std::os::unix::fs::symlink("/bin/true", folder.join("codex")).unwrap();
    let output = harness.run(&["loop", "codex", "x y", "--budget", "1"]).exits(2);
    assert!(output.stderr.contains("does not tell its cost"), "{output:?}");
    assert!(harness.ls().is_empty());
}
