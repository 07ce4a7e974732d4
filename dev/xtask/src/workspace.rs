//! Where the workspace is, and how cargo is called from a command that cargo itself started.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus};

/// The folder with the workspace's Cargo.toml.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}

/// Where cargo builds.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// The cargo that started us, in the workspace.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    // A build machine builds once: notes for the next build would only take time and space.
    if std::env::var_os("CI").is_some_and(|ci| ci == "true") && std::env::var_os("CARGO_INCREMENTAL").is_none() {
        cargo.env("CARGO_INCREMENTAL", "0");
    }
    // Some variables of `cargo run` are about xtask; the next cargo must not use them.
    for (name, _) in std::env::vars_os() {
        let told_to_xtask = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "CARGO_BIN_NAME"
        });
        if told_to_xtask {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// The same cargo with Clippy as the compiler of our own packages, where a lint is an error. A build with it takes 3 s
/// longer (of 105, nothing built before); `cargo clippy` reads all packages once more for itself, and takes 60 s.
pub fn linting_cargo() -> Command {
    let mut cargo = cargo();
    // What `cargo clippy` sets. The compiler is where this cargo is.
    let clippy = Path::new(cargo.get_program()).with_file_name("clippy-driver");
    cargo.env("RUSTC_WORKSPACE_WRAPPER", clippy).env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings");
    cargo
}

/// Runs a command with its output visible; an error names the command.
pub fn run_visibly(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    eprintln!("\n── {shown}");
    let child = command.spawn().with_context(|| format!("cannot start {shown}"))?;
    let child = Pid::from_child(&child);
    loop {
        if let Some((pid, status)) = next_exit()?
            && pid == child
        {
            return judge(&shown, status);
        }
    }
}

/// Runs commands, a few at a time and in this order, and returns their results in this order. The output of each is shown
/// when it has ended, and stays in a file below `outputs`.
pub fn run_together(commands: Vec<Command>, at_a_time: usize, outputs: &Path) -> Result<Vec<Result<()>>> {
    std::fs::create_dir_all(outputs).context("cannot make the folder for outputs")?;
    let mut results = BTreeMap::new();
    let mut running: Vec<(Pid, usize, String, PathBuf)> = Vec::new();
    let mut waiting = commands.into_iter().enumerate();
    loop {
        while running.len() < at_a_time
            && let Some((number, mut command)) = waiting.next()
        {
            let shown = shown(&command);
            let path = outputs.join(format!("{number}.log"));
            let output = File::create(&path).context("cannot make a file for outputs")?;
            command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
            let child = command.spawn().with_context(|| format!("cannot start {shown}"))?;
            running.push((Pid::from_child(&child), number, shown, path));
        }
        if running.is_empty() {
            return Ok(results.into_values().collect());
        }
        let Some((pid, status)) = next_exit()? else { continue };
        if let Some(position) = running.iter().position(|(child, ..)| *child == pid) {
            let (_, number, shown, path) = running.remove(position);
            eprintln!("\n── {shown}");
            std::io::copy(&mut File::open(&path)?, &mut std::io::stderr())?;
            results.insert(number, judge(&shown, status));
        }
    }
}

/// The next child that ends. As the parent of every orphan below us we also collect the exits of those that end
/// meanwhile, as init would: until then, no other process can learn how they ended.
fn next_exit() -> Result<Option<(Pid, WaitStatus)>> {
    match rustix::process::wait(WaitOptions::empty()) {
        Ok(exit) => Ok(exit),
        Err(Errno::INTR) => Ok(None),
        Err(error) => Err(error).context("cannot wait for a child"),
    }
}

fn judge(shown: &str, status: WaitStatus) -> Result<()> {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(0), _) => Ok(()),
        (Some(code), _) => bail!("{shown}: exit code {code}"),
        (None, signal) => bail!("{shown}: ended by signal {}", signal.unwrap_or(0)),
    }
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
