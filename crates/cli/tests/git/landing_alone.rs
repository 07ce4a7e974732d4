//! Landings and commands that make trees work one after the other, also when a landing is killed and its git process
//! still runs.

use crate::repo::Repo;
use ostler_sys::lock;
use ostler_testkit::{Started, patience};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Waits until a process waits for this lock. The kernel lists waiting processes with an arrow.
fn until_it_waits(started: &Started, file: &Path) {
    let inode = format!(":{} ", file.metadata().unwrap().ino());
    patience::until(&format!("{} is waited for", file.display()), &[], || {
        assert!(started.runs(), "it did not wait");
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        locks.lines().any(|line| line.contains("->") && line.contains(&inode)).then_some(())
    });
}

fn worked(repo: &Repo, name: &str) {
    let script = format!("echo {name} > {name}.txt");
    repo.ostler(&["run", "-w", "--name", name, "--", "sh", "-c", &script]).exits(0);
}

#[test]
fn a_landing_waits_for_the_git_process_of_a_killed_landing() {
    let repo = Repo::new();
    let began = repo.harness.root().join("began");
    let fifo = repo.harness.root().join("fifo");
    let mut make = repo.harness.command("mkfifo");
    make.arg(&fifo);
    Started::new(make, None).finish().exits(0);
    // In the person's own tree, git finishes this file only when something is written to the fifo.
    let script = repo.harness.root().join("slow.sh");
    let text = format!(
        "cat; [ \"$PWD\" = {} ] || exit 0; echo > {}; read word < {}\n",
        repo.folder.display(),
        began.display(),
        fifo.display()
    );
    std::fs::write(&script, text).unwrap();
    repo.git(&["config", "filter.slow.smudge", &format!("sh {}", script.display())]);
    repo.write(".gitattributes", "slow.txt filter=slow\n");
    repo.commit("attributes");
    worked(&repo, "slow");
    worked(&repo, "other");
    let killed = repo.start_in(&repo.folder, &["land", "slow"]);
    patience::until("git writes the files", &[repo.harness.root()], || began.exists().then_some(()));
    drop(killed);
    let next = repo.start_in(&repo.folder, &["land", "other"]);
    until_it_waits(&next, &repo.folder.join(".git/ostler.landing.lock"));
    std::fs::write(&fifo, "go\n").unwrap();
    next.finish().exits(0);
    assert_eq!(repo.git(&["log", "--format=%s", "-2"]), "other\nslow");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_tree_that_is_being_made_meanwhile_does_not_fail_a_landing() {
    let repo = Repo::new();
    worked(&repo, "fix");
    let (began, done) = (repo.harness.root().join("began"), repo.harness.root().join("done"));
    let check = format!("echo > {}; until [ -e {} ]; do sleep 0.05; done", began.display(), done.display());
    let landing = repo.start_in(&repo.folder, &["land", "fix", "--check", &check]);
    patience::until("the check has begun", &[repo.harness.root()], || began.exists().then_some(()));
    // The files that git has for a moment while it adds a tree.
    let file = repo.folder.join(".git/ostler.changing.lock");
    let making = lock::exclusive(std::fs::File::open(&file).unwrap().into()).unwrap();
    let half = repo.folder.join(".git/worktrees/half");
    std::fs::create_dir_all(&half).unwrap();
    std::fs::write(half.join("gitdir"), "/nowhere/.git\n").unwrap();
    std::fs::write(half.join("HEAD"), repo.git(&["rev-parse", "HEAD"])).unwrap();
    std::fs::write(half.join("commondir"), "").unwrap();
    std::fs::write(&done, "").unwrap();
    until_it_waits(&landing, &file);
    std::fs::remove_dir_all(&half).unwrap();
    drop(making);
    landing.finish().exits(0);
    assert_eq!(repo.git(&["log", "--format=%s", "-2"]), "fix\nfirst");
}
