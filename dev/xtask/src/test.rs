//! `cargo xtask test`: everything that must hold before a change goes in, by one command.
//!
//! It promises three things beside a green run: the tests see a clean environment (no settings of the person who runs them, no
//! home folder with real conversations in it); a missing optional check is said aloud; and nothing that the tests
//! started outlives them. Whatever does is named, makes the run fail, and is then ended.
//!
//! What a green run has proven about the real agents is written to docs/agents.md ([`crate::proven`]).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::processes::{Baseline, become_subreaper, is_childless};
use crate::{agents, apt, pictures, proven, workspace};

/// Programs that tests drive. A test that needs one says so itself; here they are only provided.
const PROGRAMS: [&str; 4] = ["tmux", "strace", "sshd", "dbus-daemon"];

/// Settings of the person at the keyboard that would lead a test to their files or their running session.
const FOREIGN_PREFIXES: [&str; 3] = ["OSTLER_", "XDG_", "CLAUDE_CODE_"];
const FOREIGN_NAMES: [&str; 7] =
    ["CLAUDECODE", "CLAUDE_CONFIG_DIR", "CLAUDE_ENV_FILE", "CLAUDE_PROJECT_DIR", "CODEX_HOME", "TMUX", "TMUX_PANE"];

/// A process that was told to end needs a moment to be gone; one that needs longer than this was not told.
const MOMENT: Duration = Duration::from_secs(20);

/// The tests against real agents: most of the time they wait for those, so that more of them run at a time.
const REAL_AGENTS: &str = "agents";
const AGENTS_PER_CORE: usize = 2;

/// For the inner loop: those promises that a change breaks first.
const CORE_PROMISES: [&str; 7] = [
    "any_one_process_may_be_killed",
    "derived_files_may_be_wrong",
    "messages_arrive_once",
    "nothing_is_left_behind",
    "one_conversation_has_one_writer",
    "stop_is_never_forgotten",
    "wait_says_how_it_ended",
];

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

    // Every check runs, so that one run shows all there is to repair; only tests without a binary are pointless.
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
    if check(cargo(["build", "--package", "ostler"])) {
        // Only that they can be made: what they show is looked at by people.
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

/// The agents that tests start. Where they cannot be had the tests that need them say that they were left out; on a build
/// machine that would be a green run that proves nothing.
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

/// Unit tests, snapshots of what people read, and the core promises; neither lints nor real agents.
fn quickly() -> Result<()> {
    let before = Baseline::now()?;
    let home = empty_home()?;
    programs()?;
    let mut passed = vec![
        cargo_test(&home, &["--workspace", "--lib", "--bins"]),
        cargo_test(&home, &["--package", "ostler", "--test", "attach", "--test", "choosing"]),
    ];
    let mut promises = vec!["--package", "ostler", "--test", "promises", "--"];
    promises.extend(CORE_PROMISES);
    passed.push(cargo_test(&home, &promises));
    passed.push(nothing_outlives(&before));
    passed.into_iter().collect::<Result<()>>()?;
    eprintln!("\nthe quick checks passed; cargo xtask test runs all");
    Ok(())
}

/// What the tests of the whole program start. `cargo test` with named tests would build the examples as tests, under
/// another name, and a clean checkout would have none of them.
fn programs() -> Result<()> {
    cargo(["build", "--package", "ostler", "--bins", "--examples"])
}

/// All of them; those against real agents note in `proven` what they have proven.
fn tests(proven: &Path) -> Result<()> {
    let home = empty_home()?;
    programs()?;
    let whole_program = whole_program_tests()?;
    let mut product = vec!["--package", "ostler", "--bins"];
    for name in whole_program.iter().filter(|name| *name != REAL_AGENTS) {
        product.extend(["--test", name]);
    }
    let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let threads = format!("--test-threads={}", AGENTS_PER_CORE * cores);
    let with_agents = ["--package", "ostler", "--test", REAL_AGENTS, "--", &threads];
    let proving =
        |arguments: &[&str]| workspace::run_visibly(cargo_test_command(&home, arguments).env(proven::VARIABLE, proven));
    // Each of them, so that one run shows all that fails.
    let passed = [cargo_test(&home, &["--workspace", "--exclude", "ostler"]), proving(&product), proving(&with_agents)];
    let failed: Vec<String> = passed.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join("\n  ")) }
}

/// The names of the tests that drive the whole program.
fn whole_program_tests() -> Result<Vec<String>> {
    let folder = workspace::root().join("crates/cli/tests");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).context("cannot list the tests of the program")? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn cargo_test(home: &Path, arguments: &[&str]) -> Result<()> {
    workspace::run_visibly(&mut cargo_test_command(home, arguments))
}

fn cargo_test_command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = workspace::cargo();
    command.args(["test", "--no-fail-fast"]).args(arguments);
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
    // Cargo and rustup keep their things in the real home.
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
