//! Where the workspace is, and how cargo is called from a command that cargo itself started.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions};

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

/// Runs a command with its output visible; an error names the command. As the parent of every orphan below us we also
/// collect the exits of those that end meanwhile, as init would: until then, no other process can learn how they ended.
pub fn run_visibly(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    eprintln!("\n── {shown}");
    let child = command.spawn().with_context(|| format!("cannot start {shown}"))?;
    let child = Pid::from_child(&child);
    let status = loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => break status,
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).with_context(|| format!("cannot wait for {shown}")),
        }
    };
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
