//! Completions for a shell: sessions, agents and labels, with descriptions, read from files.

use crate::harness;
use ostler_testkit::{Harness, Started};

/// The completions that `shell` is offered for the last of these words.
#[track_caller]
fn offered(harness: &Harness, shell: &str, listing: bool, words: &[&str]) -> Vec<String> {
    let mut command = harness.command(harness.program());
    command.arg("--").arg("ostler").args(words).env("OSTLER_COMPLETE", shell).env("_CLAP_IFS", "\n");
    command.env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    command.env("_CLAP_COMPLETE_COMP_TYPE", if listing { "63" } else { "9" });
    let output = Started::new(command, None).finish().exits(0);
    assert_eq!(output.stderr, "");
    output.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn sessions_agents_labels_and_topics_are_offered() {
    let harness = harness();
    harness.configure("[agents.mine]\ncommand = ['true']\n");
    let session = harness.detach(&["--name", "tests", "--label", "task=42", "--", "true"]);
    harness.run(&["wait", session.id()]).exits(0);
    let id = session.id();

    let fish = offered(&harness, "fish", false, &["show", ""]);
    assert!(fish.iter().any(|line| line.starts_with("tests\t") && line.contains(id)), "{fish:?}");
    assert!(fish.iter().any(|line| line.starts_with(&format!("{id}\t")) && line.contains("command")), "{fish:?}");
    assert!(fish.iter().any(|line| line.starts_with("@last\t")), "{fish:?}");
    let zsh = offered(&harness, "zsh", false, &["wait", "--any", &id[..3]]);
    assert!(zsh.len() == 1 && zsh[0].starts_with(&format!("{id}:")), "{zsh:?}");

    assert_eq!(offered(&harness, "bash", false, &["stop", "te"]), ["tests"]);
    let listed = offered(&harness, "bash", true, &["stop", ""]);
    assert!(listed.iter().any(|line| line.starts_with("tests  (")), "{listed:?}");
    assert_eq!(offered(&harness, "bash", false, &["run", "cl"]), ["claude"]);
    assert_eq!(offered(&harness, "bash", false, &["run", "-d", "mi"]), ["mine"]);
    assert_eq!(offered(&harness, "bash", false, &["ls", "--label", "ta"]), ["task=42"]);
    assert_eq!(offered(&harness, "bash", false, &["help", "exit"]), ["exit-codes"]);
    assert_eq!(offered(&harness, "bash", false, &["checkpoints", "restore", "te"]), ["tests"]);
    assert_eq!(offered(&harness, "bash", false, &["attac"]), ["attach"]);
    assert!(offered(&harness, "bash", false, &["show", "--js"]).contains(&"--json".to_owned()));

    assert_eq!(offered(&harness, "bash", false, &["restore", "te"]), [""; 0]);
    harness.run(&["archive", id]).exits(0);
    assert_eq!(offered(&harness, "bash", false, &["restore", "te"]), ["tests"]);
}

/// When nothing is typed, only the newest sessions are offered. A session whose id begins with the typed text is
/// offered however old it is.
#[test]
fn an_old_session_is_offered_by_the_beginning_of_its_id() {
    let harness = harness();
    let old = harness.detach(&["--name", "old one", "--", "true"]);
    harness.run(&["wait", old.id()]).exits(0);
    let record = std::fs::read_to_string(old.path().join("session.json")).unwrap();
    for number in 0..320 {
        let id = format!("9{number:07}");
        let folder = harness.home().join("sessions").join(&id);
        std::fs::create_dir(&folder).unwrap();
        let copy = record.replace(old.id(), &id).replace("old one", &format!("job {number}"));
        std::fs::write(folder.join("session.json"), copy).unwrap();
    }
    let all = offered(&harness, "bash", false, &["show", ""]);
    assert!(all.len() > 300 && !all.contains(&old.id().to_owned()), "{}", all.len());
    assert_eq!(offered(&harness, "bash", false, &["show", &old.id()[..5]]), [old.id()]);
}

#[test]
fn without_a_home_and_with_a_broken_config_nothing_fails_and_nothing_is_made() {
    let harness = harness();
    harness.configure("[broken\n");
    let words = offered(&harness, "bash", false, &["show", ""]);
    assert!(words.iter().all(|word| word.starts_with("--")), "only flags: {words:?}");
    assert!(!harness.home().exists());
}

#[test]
fn the_script_that_completions_prints_works_in_bash() {
    let harness = harness();
    harness.run(&["run", "--name", "tests", "--label", "task=42", "demo", "say hello"]).exits(0);
    // The words as bash divides them, the number of the word at the cursor, the typed part of that word, and the
    // completion.
    for (words, at, typed, offered) in [
        ("logs te", 2, "te", "<tests>"),
        ("ls --label ta", 3, "ta", "<task=42>"),
        ("ls --label task = 4", 5, "4", "<42>"),
        ("ls --label task =", 4, "", "<42>"),
        ("ls --label = task = 4", 6, "4", "<42>"),
        ("ls --sort = co", 4, "co", "<cost>"),
    ] {
        let script = format!(
            "PATH=$1:$PATH; source <(ostler completions bash)
            COMP_WORDS=(ostler {words}) COMP_CWORD={at} COMP_TYPE=9
            _clap_complete_ostler ostler '{typed}' x; printf '<%s>' \"${{COMPREPLY[@]}}\""
        );
        let mut bash = harness.command("bash");
        bash.args(["-c", &script, "bash"]).arg(harness.program().parent().unwrap());
        let output = Started::new(bash, None).finish().exits(0);
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), (offered, ""), "{words}");
    }
    for shell in ["zsh", "fish"] {
        let script = harness.run(&["completions", shell]).exits(0).stdout;
        assert!(script.contains("OSTLER_COMPLETE"), "{script}");
    }
}
