//! What commands reply, and how they refuse: one table of messages, as users see them. Each reply begins with the name
//! of the session, or with its id when it has no name.

use crate::harness;
use ostler_testkit::Harness;

/// Commands and their output; what differs from run to run is replaced.
struct Table<'a> {
    harness: &'a Harness,
    ids: Vec<(String, &'static str)>,
    text: String,
}

impl Table<'_> {
    fn command(&mut self, words: &[&str]) {
        let output = self.harness.run(words);
        let shown = words.join(" ");
        self.text.push_str(&format!("$ ostler {shown}\n{}{}", output.stdout, output.stderr));
        self.text.push_str(&format!("[{}]\n", output.code.unwrap_or(-1)));
    }

    fn steady(mut self) -> String {
        for (id, name) in &self.ids {
            self.text = self.text.replace(id, name);
        }
        let root = self.harness.root().to_string_lossy().into_owned();
        without_pids(&self.text.replace(&root, "ROOT"))
    }
}

/// `(pid 4711)` → `(pid N)`.
fn without_pids(text: &str) -> String {
    let mut parts = text.split("(pid ");
    let mut steady = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        steady.push_str("(pid N");
        steady.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    steady
}

#[test]
fn replies_and_refusals_are_short_sentences_that_say_what_to_do() {
    let harness = harness();
    let helper = harness.detach(&["--keep", "--name", "helper", "demo", "say ready"]);
    harness.run(&["wait", "--until", "turn", "helper"]).exits(0);
    let job = harness.detach(&["--", "sleep", "600"]);
    let ids = vec![(helper.id().to_owned(), "ID-OF-HELPER"), (job.id().to_owned(), "ID-OF-JOB")];
    let mut table = Table { harness: &harness, ids, text: String::new() };
    for words in [
        &["interrupt", "helper"][..],
        &["answer", "helper", "--allow"],
        &["send", "helper", "--withdraw", "7"],
        &["send", "helper", "--again", "7"],
        &["restore", "helper"],
        &["purge", "helper"],
        &["rename", "helper", "friend"],
        &["fork", "friend"],
        &["send", job.id(), "hello"],
        &["fork", job.id(), "hello"],
        &["resume", job.id()],
        &["wait", "--until", "turn", job.id()],
        &["checkpoints", job.id()],
        &["stop", "friend", job.id()],
        &["stop", "friend"],
        &["interrupt", "friend"],
        &["answer", "friend", "--allow"],
        &["send", "friend", "say more"],
        &["send", "friend", "--wait", "say more"],
        &["send", "friend", "--withdraw", "1"],
        &["send", "friend", "--withdraw", "2"],
        &["resume", "friend"],
        &["archive", "friend", job.id()],
        &["archive", "friend"],
        &["send", "friend", "say more"],
        &["resume", "friend", "say more"],
        &["rename", "friend", "other"],
        &["restore", "friend"],
        &["upgrade", "friend"],
        &["purge", "friend", "--dry-run"],
        &["purge", "friend"],
        &["show", "friend"],
        &["stop", "--all"],
        &["run"],
        &["run", "demo"],
        &["run", "acp", "x"],
        &["run", "demo", "x", "--name", "a/b"],
        &["run", "demo", "x", "--memory", "much"],
        &["run", "demo", "x", "--cwd", "/dev/null"],
        &["run", "-t", "demo"],
        &["run", "--keep", "--", "true"],
        &["wait", "nothing", "--timeout", "soon"],
        &["ls", "--state", "tired"],
        &["attach"],
        &["logs"],
        &["answer"],
        &["resume"],
        &["checkpoints"],
        &["repair", "nothing"],
        &["who", "nothing"],
    ] {
        table.command(words);
    }
    insta::assert_snapshot!(table.steady());
}

#[test]
fn a_stop_says_that_messages_still_wait() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "sleep"]);
    session.until_look("the tool runs", |view| view.last.as_deref().is_some_and(|last| last.contains("sleep 1000")));
    harness.run(&["send", session.id(), "say later"]).exits(0);
    for words in ["stopped; ", "had already been stopped; "] {
        let said = harness.run(&["stop", session.id()]).exits(0).stdout;
        let waits = format!("; 1 message waits for the next resume: ostler send {} --list\n", session.id());
        assert!(said.starts_with(&format!("{}: {words}", session.id())) && said.ends_with(&waits), "{said}");
    }
}

#[test]
fn show_names_the_turns_that_it_leaves_out() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "say 1"]);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    for turn in 2..=7 {
        harness.run(&["send", "--wait", session.id(), &format!("say {turn}")]).exits(0);
    }
    let shown = harness.run(&["show", session.id()]).exits(0).stdout;
    let turns: Vec<&str> = shown.lines().filter(|line| line.starts_with("  turn")).collect();
    assert!(turns[0].starts_with("  turns 1–2"), "{shown}");
    assert!(turns[0].ends_with(&format!("not shown here; see ostler show --json {}", session.id())), "{shown}");
    assert!(turns.len() == 6 && turns[1].starts_with("  turn 3") && turns[5].starts_with("  turn 7"), "{shown}");
    session.stop();
}
