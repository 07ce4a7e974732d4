//! A review reads and judges, and cannot write. Its answer is parsed strictly, and its verdict is shown with the
//! reviewed session.

use crate::repo::{Repo, write};
use crate::{shown, told};
use ostler_testkit::patience;

fn worked(repo: &Repo, name: &str, command: &str) {
    repo.ostler(&["run", "-w", "--name", name, "demo", &format!("run-command {command}")]).exits(0);
}

#[test]
fn the_verdict_decides_the_exit_code_and_is_shown_with_the_session() {
    let repo = Repo::new();
    worked(&repo, "good", "echo two >> a.txt; echo new > new.txt");
    worked(&repo, "bad", "printf 'two\\nFIXME later\\n' >> a.txt");

    let passed = repo.ostler(&["review", "good", "--json"]).exits(0).json();
    assert_eq!((passed["verdict"].as_str(), passed["findings"].as_array().unwrap().len()), (Some("pass"), 0));
    let failed = repo.ostler(&["review", "bad", "--by", "demo"]).exits(1).stdout;
    assert_eq!(failed, "fail: I looked for FIXME.\na.txt:3: unfinished\n");

    let good = shown(&repo, "good");
    assert_eq!(good["reviews"][0], passed);
    let reviewer = shown(&repo, passed["id"].as_str().unwrap());
    assert_eq!((&reviewer["parent"], reviewer["origin"].as_str()), (&good["id"], Some("review")));
    let prompt = &told(&repo, passed["id"].as_str().unwrap())[0];
    assert!(prompt.contains("<task>\n[person]\nrun-command echo two"), "{prompt}");
    assert!(prompt.contains("+two") && prompt.contains("+++ b/new.txt"), "{prompt}");
    let bad = shown(&repo, "bad");
    assert_eq!(bad["reviews"][0]["findings"][0]["line"], 3);
    let words = repo.ostler(&["show", "bad"]).exits(0).stdout;
    assert!(words.contains("fail: I looked for FIXME.") && words.contains("a.txt:3: unfinished"), "{words}");
}

#[test]
fn a_session_that_changed_nothing_is_not_reviewed() {
    let repo = Repo::new();
    worked(&repo, "idle", "true");
    let sessions = repo.harness.ls().len();
    let refused = repo.ostler(&["review", "idle"]).exits(1);
    assert!(refused.complaint().contains("has changed nothing"), "{}", refused.complaint());
    assert_eq!(repo.harness.ls().len(), sessions, "no agent was started");
}

#[test]
fn an_answer_without_a_valid_verdict_counts_as_unsure() {
    let repo = Repo::new();
    worked(&repo, "work", "echo two >> a.txt");
    let prompt = repo.harness.root().join("prompt.md");
    let review = |text: &str, code: i32| {
        write(&prompt, text);
        repo.ostler(&["review", "work", "--json", "--prompt", prompt.to_str().unwrap()]).exits(code).json()
    };
    for (said, why) in [
        ("say-line it passes", "does not end with a verdict"),
        (r#"say-line {"verdict":"pass"}"#, "missing field `findings`"),
        (r#"say-line {"verdict":"good","findings":[]}"#, "unknown variant `good`"),
        (r#"say-line {"verdict":"pass","findings":[]} and more"#, "does not end with a verdict"),
        (r#"say-line {"verdict":"fail","findings":[{"file":"a.txt","text":"x"}]}"#, "missing field `line`"),
        ("fail overloaded", "the review failed"),
        ("crash", "the review failed"),
    ] {
        let review = review(said, 1);
        assert_eq!(review["verdict"], "unsure", "{said}");
        assert!(review["reason"].as_str().unwrap().contains(why), "{said}: {review}");
    }
    let passed = review(r#"say-line {"verdict":"pass","findings":[]}"#, 0);
    assert_eq!((passed["verdict"].as_str(), &passed["reason"]), (Some("pass"), &serde_json::Value::Null));
    assert_eq!(shown(&repo, "work")["reviews"].as_array().unwrap().len(), 8);
}

#[test]
fn a_review_cannot_write_and_a_tree_that_changes_meanwhile_is_named() {
    let repo = Repo::new();
    worked(&repo, "work", "echo two >> a.txt");
    let prompt = repo.harness.root().join("prompt.md");
    let prompt = prompt.to_str().unwrap();
    write(prompt.as_ref(), "run-line echo evil > evil.txt\n{\"verdict\":\"pass\",\"findings\":[]}\n");
    repo.ostler(&["review", "work", "--prompt", prompt]).exits(0);
    assert!(!repo.tree("work").join("evil.txt").exists());

    // The review asks a question, so there is time for another process to change the tree.
    write(prompt.as_ref(), "ask for it");
    let refused = repo.ostler(&["review", "work", "--prompt", prompt]).exits(4);
    let words = &refused.stderr;
    assert!(words.contains("ostler answer"), "{words}");
    let children = shown(&repo, "work")["children"].as_array().unwrap().clone();
    let reviewer = children.last().unwrap().as_str().unwrap();
    write(&repo.tree("work").join("other.txt"), "other\n");
    repo.ostler(&["answer", reviewer, "--deny"]).exits(0);
    let review = repo.ostler(&["review", "work", "--json"]).exits(1).json();
    assert_eq!((review["id"].as_str(), review["verdict"].as_str()), (Some(reviewer), Some("unsure")));
    assert_eq!(review["reason"], "the tree was changed during the review: other.txt");
}

#[test]
fn a_review_whose_command_was_killed_is_not_paid_for_twice() {
    let repo = Repo::new();
    worked(&repo, "work", "echo two >> a.txt");
    let prompt = repo.harness.root().join("prompt.md");
    let prompt = prompt.to_str().unwrap();
    write(prompt.as_ref(), "ask for it");
    let killed = repo.start_in(&repo.folder, &["review", "work", "--prompt", prompt]);
    let reviewer = patience::until("the review runs", &[repo.harness.root()], || {
        let shown = shown(&repo, "work");
        Some(shown["children"].as_array()?.first()?.as_str()?.to_owned())
    });
    killed.kill();
    repo.ostler(&["wait", "--until", "asking", &reviewer]).exits(4);
    repo.ostler(&["answer", &reviewer, "--allow"]).exits(0);
    let review = repo.ostler(&["review", "work", "--json"]).exits(1).json();
    assert_eq!(review["id"].as_str(), Some(reviewer.as_str()), "the same review is finished");
    assert_eq!(review["verdict"], "unsure");
    assert_eq!(shown(&repo, "work")["children"].as_array().unwrap().len(), 1);
}

#[test]
fn what_cannot_be_reviewed_is_refused_and_nothing_is_started() {
    let repo = Repo::new();
    worked(&repo, "work", "echo two >> a.txt");
    repo.ostler(&["run", "--name", "plain", "demo", "say one"]).exits(0);
    let count = || repo.ostler(&["ls", "-a", "--json"]).exits(0).json().as_array().unwrap().len();
    let before = count();
    let refused = repo.ostler(&["review", "plain"]).exits(2);
    let words = refused.complaint();
    assert!(words.contains("no worktree of its own"), "{words}");
    let refused = repo.ostler(&["review", "work", "--by", "acp"]).exits(2);
    let words = refused.complaint();
    assert!(words.contains("can only read"), "{words}");
    repo.ostler(&["review", "work", "--prompt", "no-such-file.md"]).exits(2).complaint();
    assert_eq!(count(), before);
}
