//! The files in examples/ do what they say, with the demo agent.

use crate::repo;
use std::path::{Path, PathBuf};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn run(file: &str) -> crate::repo::Repo {
    let repo = repo();
    for name in [file, "nightly-prompt.md"] {
        std::fs::copy(examples().join(name), repo.folder.join(name)).unwrap();
    }
    repo.commit("the example");
    repo.ostler(&["up", "--dry-run", file]).exits(0);
    repo.ostler(&["up", file]).exits(0);
    repo
}

#[test]
fn what_was_fixed_and_reviewed_lands() {
    let repo = run("fix-review-land.toml");
    assert_eq!(std::fs::read_to_string(repo.folder.join("notes.txt")).unwrap(), "fixed\n");
    let fix = repo.ostler(&["show", "--json", "fix"]).exits(0).json();
    assert_eq!(fix["reviews"][0]["verdict"], "pass", "{fix}");
}

#[test]
fn both_sides_of_a_diamond_come_together() {
    let repo = run("diamond.toml");
    for side in ["left", "right"] {
        assert_eq!(std::fs::read_to_string(repo.folder.join(format!("{side}.txt"))).unwrap(), format!("{side}\n"));
    }
}

#[test]
fn the_nightly_chain_runs_to_its_end() {
    let repo = run("nightly.toml");
    assert!(std::fs::read_to_string(repo.folder.join("notes.txt")).unwrap().contains("the example"));
}

#[test]
fn there_are_no_other_examples() {
    let names = std::fs::read_dir(examples()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut files: Vec<_> = names.filter(|name| name.to_string_lossy().ends_with(".toml")).collect();
    files.sort();
    assert_eq!(files, ["diamond.toml", "fix-review-land.toml", "nightly.toml"]);
}
