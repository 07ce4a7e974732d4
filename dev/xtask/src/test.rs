//! `cargo xtask test`: everything that must hold before a change is merged, with one command.
//!
//! Besides a green run it promises three things: the tests have a clean environment (no settings of the person who runs
//! them, no home folder with real conversations in it); a missing optional check is reported; and nothing that the
//! tests started outlives them. A process that does is named, makes the run fail, and is then ended.
//!
//! What a green run has proven about the real agents is written to docs/agents.md ([`crate::proven`]).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::processes::{Baseline, become_subreaper, is_childless};
use crate::{agents, apt, pictures, proven, workspace};

/// Programs that tests use. A test that needs one reports when it is missing; here they are only installed.
const PROGRAMS: [&str; 4] = ["tmux", "strace", "sshd", "dbus-daemon"];

/// Settings of the person who runs the tests that would lead a test to that person's files or running session.
const FOREIGN_PREFIXES: [&str; 3] = ["OSTLER_", "XDG_", "CLAUDE_CODE_"];
const FOREIGN_NAMES: [&str; 7] =
    ["CLAUDECODE", "CLAUDE_CONFIG_DIR", "CLAUDE_ENV_FILE", "CLAUDE_PROJECT_DIR", "CODEX_HOME", "TMUX", "TMUX_PANE"];

/// A process that was asked to end needs a moment to exit. One that needs longer than this was not asked.
const MOMENT: Duration = Duration::from_secs(20);

/// How many of these tests of the program run at a time, for each core. Most of their time they wait: for pauses that the
/// program makes, for a screen, for an agent. A test that is not listed here keeps a core busy.
const PER_CORE: [(usize, &[&str]); 3] =
    [(4, &["attach", "jobs", "limits", "notify", "queue", "turns"]), (2, &["promises"]), (2, &["agents"])];

/// For a quick run: the promises that a change usually breaks first.
const CORE_PROMISES: [&str; 7] = [
    "any_one_process_may_be_killed",
    "derived_files_may_be_wrong",
    "messages_arrive_once",
    "nothing_is_left_behind",
    "one_conversation_has_one_writer",
    "stop_is_never_forgotten",
    "wait_says_how_it_ended",
];

/// One build for all that follows. Cargo chooses the features of a dependency by the packages that it is asked for, so that
/// every other choice of packages would build most of them again.
const EVERYTHING: [&str; 3] = ["build", "--workspace", "--all-targets"];

pub fn run(arguments: &[String]) -> Result<()> {
    let quick = match arguments {
        [] => false,
        [only] if only == "--quick" => true,
        _ => bail!("`test` takes `--quick` or nothing, not {}", arguments.join(" ")),
    };
    become_subreaper()?;
    if quick {
        return quickly();
    }
    if let Err(missing) = apt::install_missing(&PROGRAMS) {
        eprintln!("{missing}; tests that need it will say so");
    }

    // Every check runs, so that one run shows everything that has to be repaired. Only tests without a binary make no
    // sense.
    let mut failed = Vec::new();
    let mut check = |result: Result<()>| match result {
        Ok(()) => true,
        Err(error) => {
            failed.push(format!("{error:#}"));
            false
        }
    };
    check(cargo(["fmt", "--all", "--check"]));
    check(cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]));
    check(licences_and_advisories());
    check(real_agents());
    if check(cargo(EVERYTHING)) {
        // Checks only that they can be made: people look at what they show.
        check(pictures::draw(&workspace::target().join("pictures")));
        let before = Baseline::now()?;
        let proven = proven::begin()?;
        let passed = check(tests(&proven));
        check(nothing_outlives(&before));
        if passed {
            check(proven::conclude(&proven));
        }
    }

    if failed.is_empty() {
        eprintln!("\nall checks passed");
        return Ok(());
    }
    bail!("{} failed:\n  {}", if failed.len() == 1 { "a check" } else { "checks" }, failed.join("\n  "));
}

fn cargo<const N: usize>(arguments: [&str; N]) -> Result<()> {
    workspace::run_visibly(workspace::cargo().args(arguments))
}

/// The agents that tests start. Where they cannot be installed, the tests that need them report that they were left
/// out. On a build machine that would be a green run that proves nothing, so it is an error there.
fn real_agents() -> Result<()> {
    match agents::run(&[]) {
        Err(error) if std::env::var_os("CI").is_none_or(|ci| ci != "true") => {
            eprintln!("\nleft out: tests against the real agents ({error:#})");
            Ok(())
        }
        other => other,
    }
}

fn licences_and_advisories() -> Result<()> {
    let mut asked = workspace::cargo();
    asked.args(["deny", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    if asked.status().is_ok_and(|status| status.success()) {
        return cargo(["deny", "check"]);
    }
    eprintln!("\nleft out: cargo deny check (cargo install cargo-deny)");
    Ok(())
}

/// Unit tests, snapshots of what people read, and the core promises; no lints and no real agents.
fn quickly() -> Result<()> {
    let before = Baseline::now()?;
    let home = empty_home()?;
    // `cargo test` with named tests builds the examples as tests, under another name; the tests start the examples.
    cargo(["build", "--workspace", "--bins", "--examples"])?;
    let mut passed = vec![
        cargo_test(&home, &["--lib", "--bins"]),
        cargo_test(&home, &["--test", "attach", "--test", "choosing", "--", &threads(PER_CORE[0].0)]),
    ];
    let (at_a_time, _) = PER_CORE[1];
    let threads = threads(at_a_time);
    let mut promises = vec!["--test", "promises", "--", &threads];
    promises.extend(CORE_PROMISES);
    passed.push(cargo_test(&home, &promises));
    passed.push(nothing_outlives(&before));
    passed.into_iter().collect::<Result<()>>()?;
    eprintln!("\nthe quick checks passed; cargo xtask test runs all");
    Ok(())
}

/// All tests; those against real agents note in `proven` what they have proven.
fn tests(proven: &Path) -> Result<()> {
    let home = empty_home()?;
    let run =
        |selected: &[&str]| workspace::run_visibly(cargo_test_command(&home, selected).env(proven::VARIABLE, proven));
    let mut of_parts = vec!["--lib", "--bins"];
    let parts = tests_below(&["crates", "dev"], |folder| folder != PROGRAM)?;
    of_parts.extend(parts.iter().flat_map(|name| ["--test", name]));
    let mut passed = vec![run(&of_parts), run(&["--doc"])];
    let of_program = tests_of(&workspace::root().join(PROGRAM))?;
    let listed = |name: &String| PER_CORE.iter().any(|(_, names)| names.contains(&name.as_str()));
    let busy: Vec<&str> = of_program.iter().filter(|name| !listed(name)).map(String::as_str).collect();
    for (at_a_time, names) in std::iter::once((1, busy.as_slice())).chain(PER_CORE) {
        let threads = threads(at_a_time);
        let mut selected: Vec<&str> = names.iter().flat_map(|name| ["--test", name]).collect();
        selected.extend(["--", &threads]);
        passed.push(run(&selected));
    }
    // Each of them ran, so that one run shows all that fails.
    let failed: Vec<String> = passed.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join("\n  ")) }
}

fn threads(per_core: usize) -> String {
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    format!("--test-threads={}", per_core * cores)
}

/// The package whose tests drive the whole program.
const PROGRAM: &str = "crates/cli";

/// The names of the integration tests of all packages below these folders that are wanted.
fn tests_below(folders: &[&str], is_wanted: impl Fn(&str) -> bool) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for folder in folders {
        for package in std::fs::read_dir(workspace::root().join(folder)).context("cannot list the packages")? {
            let package = package?;
            if is_wanted(&format!("{folder}/{}", package.file_name().to_string_lossy())) {
                names.extend(tests_of(&package.path())?);
            }
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// The names of a package's integration tests: a file or a folder each.
fn tests_of(package: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let entries = match std::fs::read_dir(package.join("tests")) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(names),
        other => other.context("cannot list the tests of a package")?,
    };
    for entry in entries {
        let path = entry?.path();
        let is_test = path.join("main.rs").is_file() || path.extension().is_some_and(|extension| extension == "rs");
        names.extend(path.file_stem().filter(|_| is_test).map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

fn cargo_test(home: &Path, arguments: &[&str]) -> Result<()> {
    workspace::run_visibly(&mut cargo_test_command(home, arguments))
}

fn cargo_test_command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = workspace::cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]).args(arguments);
    clean_environment(&mut command, home);
    command
}

/// A home folder of this run's own, with nothing in it.
pub fn empty_home() -> Result<PathBuf> {
    let home = workspace::target().join("test-home");
    match std::fs::remove_dir_all(&home) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).context("cannot empty the tests' home folder");
        }
        Ok(()) | Err(_) => {}
    }
    std::fs::create_dir_all(&home).context("cannot make the tests' home folder")?;
    Ok(home)
}

pub fn clean_environment(command: &mut Command, home: &Path) {
    for (name, _) in std::env::vars_os() {
        let foreign = name.to_str().is_some_and(|name| {
            FOREIGN_NAMES.contains(&name) || FOREIGN_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        });
        if foreign {
            command.env_remove(name);
        }
    }
    // Cargo and rustup keep their files in the real home.
    if let Some(real) = std::env::home_dir() {
        for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            if std::env::var_os(name).is_none() {
                command.env(name, real.join(folder));
            }
        }
    }
    command.env("HOME", home);
}

/// Names everything that the tests left running, then ends it.
fn nothing_outlives(before: &Baseline) -> Result<()> {
    let left = before.settle(MOMENT)?;
    if left.is_empty() {
        eprintln!(
            "\nnothing that the tests started is alive{}",
            if is_childless() { " (no child is left)" } else { "" }
        );
        return Ok(());
    }
    let listed = left.iter().map(|process| format!("    {process}")).collect::<Vec<_>>().join("\n");
    before.end_newcomers().context("left running by the tests")?;
    bail!("{} left running by the tests (ended now):\n{listed}", left.len());
}
