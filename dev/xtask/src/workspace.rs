//! Where the workspace is, and how cargo is called from inside a chore that cargo itself started.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

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
    // What `cargo run` tells the program it runs is about xtask; the next cargo must not take it for its own.
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
/// collect those that end meanwhile, as init would: until somebody has, nobody can learn how they ended.
pub fn run_visibly(command: &mut Command) -> Result<()> {
    let (child, shown) = spawn_visibly(command)?;
    loop {
        let (pid, status) = wait_for_any()?;
        if pid == child {
            return judge(&shown, status);
        }
    }
}

/// The same for several rows of commands at a time, each row in its order and to its end, whatever fails. What the first row
/// prints is visible at once, that of the others when the command has ended: read in one piece, and not line by line between
/// each other. Returns what failed.
pub fn run_rows(rows: Vec<Vec<Command>>) -> Result<Vec<String>> {
    let mut failed = Vec::new();
    let mut rows: Vec<_> = rows.into_iter().map(Vec::into_iter).collect();
    let mut running = Vec::new();
    for (number, row) in rows.iter_mut().enumerate() {
        running.extend(next_of_row(number, row)?);
    }
    while !running.is_empty() {
        let (pid, status) = wait_for_any()?;
        let Some(place) = running.iter().position(|one: &Running| one.child == pid) else { continue };
        let ended = running.swap_remove(place);
        if let Some(output) = &ended.output {
            eprintln!("\n── {}", ended.shown);
            let printed = std::fs::read(output).with_context(|| format!("cannot read what {} printed", ended.shown))?;
            std::io::stdout().write_all(&printed).context("cannot print")?;
        }
        failed.extend(judge(&ended.shown, status).err().map(|error| format!("{error:#}")));
        running.extend(next_of_row(ended.row, &mut rows[ended.row])?);
    }
    Ok(failed)
}

struct Running {
    row: usize,
    child: Pid,
    shown: String,
    /// Has what it prints, if that is not visible.
    output: Option<PathBuf>,
}

fn next_of_row(row: usize, commands: &mut impl Iterator<Item = Command>) -> Result<Option<Running>> {
    let Some(mut command) = commands.next() else { return Ok(None) };
    if row == 0 {
        let (child, shown) = spawn_visibly(&mut command)?;
        return Ok(Some(Running { row, child, shown, output: None }));
    }
    let output = target().join(format!("printed-{row}"));
    let file = File::create(&output).with_context(|| format!("cannot make {}", output.display()))?;
    command.stdout(file.try_clone()?).stderr(file);
    let (child, shown) = spawn(&mut command)?;
    Ok(Some(Running { row, child, shown, output: Some(output) }))
}

fn spawn_visibly(command: &mut Command) -> Result<(Pid, String)> {
    eprintln!("\n── {}", shown(command));
    spawn(command)
}

fn spawn(command: &mut Command) -> Result<(Pid, String)> {
    let shown = shown(command);
    let child = command.spawn().with_context(|| format!("cannot start {shown}"))?;
    Ok((Pid::from_child(&child), shown))
}

fn wait_for_any() -> Result<(Pid, WaitStatus)> {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some(ended)) => return Ok(ended),
            Ok(None) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait for what was started"),
        }
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
