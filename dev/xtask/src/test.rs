//! `cargo xtask test`: everything that must hold before a change is merged, with one command.
//!
//! Besides a green run it promises three things: the tests have a clean environment (no settings of the person who runs
//! them, no home folder with real conversations in it); a missing optional check is reported; and nothing that the
//! tests started outlives them. A process that does is named, makes the run fail, and is then ended.
//!
//! What a green run has proven about the real agents is written to docs/agents.md ([`crate::proven`]).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use crate::processes::{Baseline, become_subreaper, is_childless};
use crate::{apt, pictures, proven, workspace};

/// Programs that tests use. A test that needs one reports when it is missing; here they are only installed.
const PROGRAMS: [&str; 4] = ["tmux", "strace", "sshd", "dbus-daemon"];

/// Settings of the person who runs the tests that would lead a test to that person's files or running session.
const FOREIGN_PREFIXES: [&str; 3] = ["OSTLER_", "XDG_", "CLAUDE_CODE_"];
const FOREIGN_NAMES: [&str; 7] =
    ["CLAUDECODE", "CLAUDE_CONFIG_DIR", "CLAUDE_ENV_FILE", "CLAUDE_PROJECT_DIR", "CODEX_HOME", "TMUX", "TMUX_PANE"];

/// A process that was asked to end needs a moment to exit. One that needs longer than this was not asked.
const MOMENT: Duration = Duration::from_secs(20);

/// The programs with the tests of ostler that take longest, longest first, and how many tests of each run at a time, for
/// each core. Some of them wait most of their time: for pauses that the program makes, for a screen. A program that is not
/// listed here runs after them, one test for each core.
const LONG: [(&str, usize); 14] = [
    ("promises", 2),
    ("git", 1),
    ("queue", 4),
    ("between", 2),
    ("limits", 4),
    ("repair", 1),
    ("turns", 4),
    ("jobs", 4),
    ("chaos", 1),
    ("up", 2),
    ("notify", 4),
    ("choosing", 2),
    ("attach", 4),
    ("upkeep", 2),
];

/// The tests with real agents run when all others have ended, and this many at a time, for each core. The agents need the
/// whole machine.
const AGENTS: (&str, usize) = ("agents", 3);

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

/// Cargo with the lints or without: each builds for itself.
type Cargo = fn() -> Command;

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
    check(workspace::run_visibly(workspace::cargo().args(["fmt", "--all", "--check"])));
    check(licences_and_advisories());
    let [built, agents] = build_and_install()?;
    check(agents);
    let cargo = if check(built) { Some(workspace::linting_cargo as Cargo) } else { build_without_lints() };
    if let Some(cargo) = cargo {
        // Checks only that they can be made: people look at what they show.
        check(pictures::draw(cargo, &workspace::target().join("pictures")));
        let before = Baseline::now()?;
        let proven = proven::begin()?;
        let passed = check(tests(cargo, &proven));
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

/// Builds everything, with the lints. Meanwhile the agents and the programs that tests start are installed: downloads need
/// no processor.
fn build_and_install() -> Result<[Result<()>; 2]> {
    let mut build = workspace::linting_cargo();
    // After a lint has failed, the other packages are still read.
    build.args(EVERYTHING).arg("--keep-going");
    let ourselves = |command: &str| -> Result<Command> {
        let mut xtask = Command::new(std::env::current_exe()?);
        xtask.arg(command);
        Ok(xtask)
    };
    let together = vec![build, ourselves("agents")?, ourselves("programs")?];
    let results = workspace::run_together(together, 3, &workspace::target().join("test-output"))?;
    let [built, agents, programs] =
        <[_; 3]>::try_from(results).map_err(|_| anyhow!("three commands have three results"))?;
    if programs.is_err() {
        eprintln!("\ntests that need a missing program will say so");
    }
    Ok([built, unless_optional(agents)])
}

/// Installs the programs of the system that tests use.
pub fn install_programs(arguments: &[String]) -> Result<()> {
    if let Some(unknown) = arguments.first() {
        bail!("`programs` takes no arguments, not even {unknown}");
    }
    apt::install_missing(&PROGRAMS).map_err(|missing| anyhow!(missing))
}

/// Where only a lint has failed, the tests can still run.
fn build_without_lints() -> Option<Cargo> {
    workspace::run_visibly(workspace::cargo().args(EVERYTHING)).is_ok().then_some(workspace::cargo)
}

/// Where the agents cannot be installed, the tests that need them report that they were left out. On a build machine that
/// would be a green run that proves nothing, so it is an error there.
fn unless_optional(agents: Result<()>) -> Result<()> {
    match agents {
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
        return workspace::run_visibly(workspace::cargo().args(["deny", "check"]));
    }
    eprintln!("\nleft out: cargo deny check (cargo install cargo-deny)");
    Ok(())
}

/// Unit tests, snapshots of what people read, and the core promises; no lints and no real agents.
fn quickly() -> Result<()> {
    let before = Baseline::now()?;
    let home = empty_home()?;
    // `cargo test` with named tests builds the examples as tests, under another name; the tests start the examples.
    workspace::run_visibly(workspace::cargo().args(["build", "--workspace", "--bins", "--examples"]))?;
    let mut promises = program_arguments("promises", 2);
    promises.extend(CORE_PROMISES.map(str::to_owned));
    let mut passed = together(vec![
        cargo_test(workspace::cargo, &home, &promises),
        cargo_test(workspace::cargo, &home, &["--lib", "--bins"]),
        cargo_test(workspace::cargo, &home, &program_arguments("attach", 4)),
        cargo_test(workspace::cargo, &home, &program_arguments("choosing", 2)),
    ])?;
    passed.push(nothing_outlives(&before));
    passed.into_iter().collect::<Result<()>>()?;
    eprintln!("\nthe quick checks passed; cargo xtask test runs all");
    Ok(())
}

/// All tests; those against real agents note in `proven` what they have proven.
fn tests(cargo: Cargo, proven: &Path) -> Result<()> {
    let home = empty_home()?;
    let noting = |mut command: Command| {
        command.env(proven::VARIABLE, proven);
        command
    };
    let mut of_parts = vec!["--lib".to_owned(), "--bins".to_owned()];
    let parts = tests_below(&["crates", "dev"], |folder| folder != PROGRAM)?;
    of_parts.extend(parts.into_iter().flat_map(|name| ["--test".to_owned(), name]));
    let mut of_program: Vec<(String, usize)> = LONG.map(|(name, per_core)| (name.to_owned(), per_core)).into();
    for name in tests_of(&workspace::root().join(PROGRAM))? {
        if name != AGENTS.0 && !LONG.iter().any(|(long, _)| *long == name) {
            of_program.push((name, 1));
        }
    }
    let mut commands: Vec<Command> = of_program
        .iter()
        .map(|(name, per_core)| cargo_test(cargo, &home, &program_arguments(name, *per_core)))
        .collect();
    commands.insert(1, cargo_test(cargo, &home, &of_parts));
    commands.push(cargo_test(cargo, &home, &["--doc"]));
    let mut passed = together(commands.into_iter().map(noting).collect())?;
    passed.push(workspace::run_visibly(&mut noting(cargo_test(cargo, &home, &program_arguments(AGENTS.0, AGENTS.1)))));
    // Each of them ran, so that one run shows all that fails.
    let failed: Vec<String> = passed.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join("\n  ")) }
}

/// One more at a time than there are cores: a program that has come to its last tests leaves cores free.
fn together(commands: Vec<Command>) -> Result<Vec<Result<()>>> {
    workspace::run_together(commands, cores() + 1, &workspace::target().join("test-output"))
}

fn program_arguments(name: &str, per_core: usize) -> Vec<String> {
    ["--test", name, "--", &format!("--test-threads={}", per_core * cores())].map(str::to_owned).into()
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get)
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

fn cargo_test(cargo: Cargo, home: &Path, arguments: &[impl AsRef<OsStr>]) -> Command {
    let mut command = cargo();
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
