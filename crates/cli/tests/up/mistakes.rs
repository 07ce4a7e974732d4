//! An error in a file is reported with its line and column, and nothing is started.

use crate::{repo, sessions};

#[test]
fn an_error_is_one_line_with_its_place_and_nothing_is_started() {
    let repo = repo();
    let job = "[job.a]\nrun = \"true\"\n";
    for (text, said) in [
        ("[job.a]\nrum = \"true\"", "ostler.toml:2:1: there is no key \"rum\" here; did you mean run?"),
        (
            "[job.a]\nrun = \"true\"\nneeds = [\"b\"]\n[job.b]\nrun = \"true\"\nneeds = [\"a\"]",
            "ostler.toml:6:10: these jobs need each other: a → b → a",
        ),
        ("[job.a]\nrun = \"true\"\nneeds = [\"c\"]", "ostler.toml:3:10: there is no job \"c\""),
        ("[job.a]\nrun = \"no-such-program-here x\"", "ostler.toml:2:1: "),
        ("[job.a]\nrun = \"if\"", "ostler.toml:2:1: "),
        ("[job.a]\nprompt = \"x\"\nagent = \"unknown\"", "ostler.toml:3:1: "),
        ("[defaults]\nagent = \"gemini\"\n[job.a]\nprompt = \"x\"", "ostler.toml:2:1: gemini is not installed"),
        (
            "[job.a]\nprompt_file = \"gone.md\"\nagent = \"demo\"",
            "ostler.toml:2:1: gone.md cannot be read: No such file",
        ),
        (
            "[job.a]\nprompt = \"x\"\nagent = \"demo\"\nloop = { until = \"no-such-program-here\" }",
            "ostler.toml:4:10: ",
        ),
        (
            "[job.a]\nprompt = \"x\"\nagent = \"demo\"\nworktree = true\n[job.b]\nreview = { of = \"a\", by = \"acp\" }",
            "ostler.toml:6:22: acp has no mode in which it can only read",
        ),
        ("[job.a]\nrun = \"true\"\nqueue = \"x\"", "ostler.toml:3:1: "),
        ("[defaults]\nbudget_usd = 1.0\n[job.a]\nprompt = \"x\"\nagent = \"replay:x\"", "ostler.toml:5:1: "),
        ("[job.a", "ostler.toml:1:7: "),
    ] {
        repo.write("ostler.toml", text);
        for words in [&["up"][..], &["up", "--dry-run"], &["up", "-d"]] {
            let refused = repo.ostler(words).exits(2);
            assert!(refused.complaint().contains(said), "{text}: {}", refused.complaint());
        }
    }
    repo.write("ostler.toml", job);
    let refused = repo.ostler(&["up", "--only", "b"]).exits(2);
    assert!(refused.complaint().contains("there is no job \"b\""), "{refused:?}");
    let refused = repo.ostler(&["up", "other.toml"]).exits(2);
    assert!(refused.complaint().contains("other.toml cannot be read"), "{refused:?}");
    // A worktree needs a repository.
    let outside = repo.harness.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("ostler.toml"), "[job.a]\nprompt = \"x\"\nagent = \"demo\"\nworktree = true").unwrap();
    let refused = repo.ostler_in(&outside, &["up"]).exits(2);
    assert!(
        refused.complaint().contains("ostler.toml:4:1: ") && refused.complaint().contains("not in a git repository")
    );
    assert!(sessions(&repo).is_empty());
    repo.has_no_traces();
}

#[test]
fn a_job_whose_name_is_taken_gets_a_number() {
    let repo = repo();
    repo.ostler(&["run", "-d", "--name", "a", "--", "sleep", "1000"]).exits(0);
    repo.write("ostler.toml", "[job.a]\nrun = \"true\"\n");
    repo.ostler(&["up"]).exits(0);
    let names: Vec<_> =
        sessions(&repo).into_iter().filter(|one| one["job"].is_null()).map(|one| one["name"].clone()).collect();
    assert!(names.len() == 2 && names.contains(&"a".into()) && names.contains(&"a-2".into()), "{names:?}");
    repo.ostler(&["stop", "a"]).exits(0);
}
