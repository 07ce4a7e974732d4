//! Commits that land are the person's: with the person's name and signature. The person's hooks do not run.

use crate::repo::Repo;
use std::path::Path;

fn worked(repo: &Repo, name: &str, script: &str) {
    repo.ostler(&["run", "-w", "--name", name, "--", "sh", "-c", script]).exits(0);
}

/// A repository on a machine on which git has neither name nor email address of the person.
fn repo_without_identity() -> Repo {
    let repo = Repo::new();
    repo.git(&["config", "--global", "--unset", "user.name"]);
    repo.git(&["config", "--global", "--unset", "user.email"]);
    repo.git(&["config", "--global", "user.useConfigOnly", "true"]);
    repo
}

fn script(repo: &Repo, path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    repo.harness.write_program(path, text);
}

#[test]
fn without_a_name_nothing_lands_and_nothing_is_made() {
    let mut repo = repo_without_identity();
    worked(&repo, "fix", "echo new > new.txt");
    worked(&repo, "done", "true");
    let person = ["-c", "user.name=S", "-c", "user.email=s@s", "commit", "-qam", "inner"].join(" ");
    worked(&repo, "commits", &format!("echo two > a.txt; git {person}"));
    let objects = || repo.git(&["count-objects"]);
    let before = (repo.state(), repo.git(&["for-each-ref"]), repo.git(&["worktree", "list"]));
    for name in ["fix", "commits"] {
        for how in [&[][..], &["--merge"], &["--rebase"], &["--dry-run"], &["--check", "true"]] {
            let refused = repo.ostler(&[&["land", name], how].concat()).exits(2);
            let words = refused.complaint();
            assert!(words.contains("user.name") && words.contains("user.email"), "{words}");
            assert_eq!(words.lines().count(), 1, "{words}");
            assert_eq!(
                (repo.state(), repo.git(&["for-each-ref"]), repo.git(&["worktree", "list"])),
                before,
                "{name} {how:?}"
            );
        }
    }
    // Without work no commit is made, so no name is needed.
    let seen = objects();
    assert!(repo.ostler(&["land", "done"]).exits(0).stdout.contains("nothing to land"));
    assert_eq!(objects(), seen);
    // Work is saved also without a name.
    worked(&repo, "saved", "echo saved > saved.txt");
    repo.ostler(&["worktree", "rm", "--force", "saved"]).exits(0);
    assert_eq!(repo.git(&["show", "refs/ostler/saved/saved:saved.txt"]), "saved");

    // The name may be in variables.
    for (name, value) in [("NAME", "By Variable"), ("EMAIL", "variable@example.com")] {
        for who in ["AUTHOR", "COMMITTER"] {
            repo.harness.set(&format!("GIT_{who}_{name}"), value);
        }
    }
    repo.ostler(&["land", "fix"]).exits(0);
    assert_eq!(repo.git(&["log", "-1", "--format=%an %ce"]), "By Variable variable@example.com");
}

#[test]
fn a_worker_is_refused_before_it_works_when_nothing_could_land() {
    let repo = repo_without_identity();
    repo.write(".ostler/agents/demo.md", "---\nagent: demo\n---\nsay hello\n");
    let refused = repo.ostler(&["worker", "-d"]).exits(2);
    assert!(refused.complaint().contains("user.name"), "{refused:?}");
    assert_eq!(repo.harness.ls().len(), 0);
}

#[test]
fn what_lands_is_signed_where_the_persons_commits_are() {
    let repo = Repo::new();
    let program = repo.harness.root().join("sign");
    let signed = repo.harness.root().join("signed");
    let signs = format!(
        "#!/bin/sh\ncat > /dev/null\necho x >> '{}'\nprintf '\\n[GNUPG:] SIG_CREATED \\n' >&2\n\
         printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nthe signature\\n-----END PGP SIGNATURE-----\\n'\n",
        signed.display()
    );
    script(&repo, &program, &signs);
    let unsigned = "echo $0 > $0.txt; git add .; git -c commit.gpgSign=false commit -qm inner; echo more >> $0.txt";
    for (name, how) in [("squash", "--squash"), ("merge", "--merge"), ("rebase", "--rebase")] {
        repo.ostler(&["run", "-w", "--name", name, "--", "sh", "-c", unsigned, name]).exits(0);
        let before = repo.git(&["rev-parse", "main"]);
        repo.git(&["config", "commit.gpgSign", "true"]);
        repo.git(&["config", "gpg.program", program.to_str().unwrap()]);
        // A dry run signs nothing.
        repo.ostler(&["land", name, how, "--dry-run"]).exits(0);
        assert!(!signed.exists());
        repo.ostler(&["land", name, how]).exits(0);
        let landed = repo.git(&["rev-list", "--first-parent", &format!("{before}..main")]);
        for commit in landed.lines() {
            let text = repo.git(&["cat-file", "commit", commit]);
            assert!(text.contains("gpgsig") && text.contains("the signature"), "{how}: {text}");
        }
        if how == "--merge" {
            let text = repo.git(&["cat-file", "commit", "main^2"]);
            assert!(text.contains("gpgsig"), "the commit of the uncommitted work is signed as well: {text}");
        }
        // One signature for each new commit and no more: each may need a touch of a hardware key.
        let expected = match how {
            "--squash" => 1,
            _ => 2,
        };
        assert_eq!(std::fs::read_to_string(&signed).unwrap().lines().count(), expected, "{how}");
        std::fs::remove_file(&signed).unwrap();
        repo.git(&["config", "commit.gpgSign", "false"]);
    }

    // A commit that cannot be signed does not land.
    worked(&repo, "late", "echo late > late.txt");
    repo.git(&["config", "commit.gpgSign", "true"]);
    script(&repo, &program, "#!/bin/sh\necho 'no secret key' >&2\nexit 2\n");
    let before = repo.state();
    let refused = repo.ostler(&["land", "late"]).exits(1);
    let words = refused.complaint();
    assert!(words.contains("cannot be signed") && words.contains("no secret key"), "{words}");
    assert!(words.contains("commit.gpgSign false"), "{words}");
    assert_eq!(repo.state(), before);
    repo.git(&["config", "commit.gpgSign", "false"]);
    repo.ostler(&["land", "late"]).exits(0);
}

#[test]
fn no_hook_runs_while_work_lands() {
    let repo = Repo::new();
    worked(&repo, "squash", "echo 1 > 1.txt");
    worked(&repo, "merge", "echo 2 > 2.txt");
    worked(&repo, "rebase", "echo 3 > 3.txt; git add .; git commit -qm 3; echo 4 > 4.txt");
    repo.git(&["branch", "aside"]);
    worked(&repo, "elsewhere", "echo 5 > 5.txt");
    let ran = repo.harness.root().join("ran");
    for hook in [
        "pre-commit",
        "prepare-commit-msg",
        "commit-msg",
        "post-commit",
        "pre-merge-commit",
        "post-merge",
        "pre-rebase",
        "post-rewrite",
        "post-checkout",
        "post-index-change",
        "reference-transaction",
    ] {
        let text = format!("#!/bin/sh\necho {hook} >> '{}'\nexit 1\n", ran.display());
        script(&repo, &repo.folder.join(".git/hooks").join(hook), &text);
    }
    for (name, how) in [("squash", "--squash"), ("merge", "--merge"), ("rebase", "--rebase")] {
        repo.ostler(&["land", name, how, "--check", "true"]).exits(0);
    }
    repo.ostler(&["land", "elsewhere", "--into", "aside"]).exits(0);
    assert!(!ran.exists(), "{}", std::fs::read_to_string(&ran).unwrap());
}

#[test]
fn settings_for_rebasing_move_no_other_branch() {
    let repo = Repo::new();
    for (key, value) in [("rebase.updateRefs", "true"), ("merge.verifySignatures", "true"), ("merge.ff", "only")] {
        repo.git(&["config", key, value]);
    }
    worked(&repo, "steps", "echo 1 > 1.txt; git add .; git commit -qm 1; git branch mine; echo 2 > 2.txt");
    repo.write("meanwhile.txt", "m\n");
    repo.commit("meanwhile");
    let mine = repo.git(&["rev-parse", "mine"]);
    repo.ostler(&["land", "steps", "--rebase"]).exits(0);
    assert_eq!(repo.git(&["rev-parse", "mine"]), mine);
    worked(&repo, "other", "echo 3 > 3.txt");
    repo.ostler(&["land", "other", "--merge"]).exits(0);
}
