//! `ostler resume` works from any directory. Without an id it offers the newest conversation; on a pipe it only names
//! it.

use crate::harness;

#[test]
fn without_an_id_the_newest_is_named_on_a_pipe_and_nothing_is_resumed() {
    let harness = harness();
    let none = harness.run(&["resume"]).exits(3);
    assert!(none.complaint().contains("no ended conversation can be resumed"), "{none:?}");
    harness.run(&["run", "--name", "older", "demo", "say one"]).exits(0);
    harness.run(&["run", "--name", "newer", "demo", "say two"]).exits(0);
    // The newest is the one that worked last, not the one that was created last.
    harness.run(&["resume", "older", "say three"]).exits(0);
    let older = harness.ls().into_iter().find(|shown| shown.name.as_deref() == Some("older")).unwrap();
    let refused = harness.run(&["resume"]).exits(2);
    let words = refused.complaint();
    assert!(words.contains(&format!("the newest is {} (demo", older.id)), "{words}");
    assert_eq!(harness.session(&older.id).show().run, 2);
}

#[test]
fn a_session_is_resumed_from_any_directory_in_its_own() {
    let harness = harness();
    let work = harness.root().join("work");
    std::fs::create_dir(&work).unwrap();
    harness.run(&["run", "--cwd", work.to_str().unwrap(), "demo", "say one"]).exits(0);
    let mut resume = harness.command(harness.program());
    resume.args(["resume", "@last", "say two"]).current_dir("/");
    let output = resume.output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"two\n"[..]), "{output:?}");
    assert_eq!(harness.ls()[0].cwd, work.to_str().unwrap());
}

#[test]
fn a_resumed_and_a_forked_agent_get_the_arguments_of_the_first_run() {
    let harness = harness();
    harness.run(&["run", "demo", "say one", "--", "--ask"]).exits(0);
    let first = harness.session(&harness.ls()[0].id);
    harness.run(&["resume", "-d", first.id(), "say two"]).exits(0);
    harness.run(&["wait", first.id()]).exits(0);
    let fork = harness.run(&["fork", "-d", first.id(), "say three"]).exits(0);
    let fork = harness.session(fork.stdout.trim_end());
    harness.run(&["wait", fork.id()]).exits(0);
    for record in [first.path().join("runs/2/run.json"), fork.run_file("run.json")] {
        let record: serde_json::Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
        let words: Vec<&str> = record["argv"].as_array().unwrap().iter().filter_map(|word| word.as_str()).collect();
        assert!(words.contains(&"--ask"), "{words:?}");
    }
}
