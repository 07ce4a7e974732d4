//! `cargo xtask link-order`: writes crates/cli/link_order.txt, the functions that the most frequent commands call.
//!
//! The linker puts them next to each other. A command that runs for less than a millisecond spends much of it on loading
//! its own code, 64 KiB at a time, and without this order its functions are spread over the whole program.
//!
//! The names contain a hash of compiler and dependencies. After a change of these the linker ignores the names that it
//! does not find, and the program is only slower to start, until this is run again.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::test::{clean_environment, empty_home};
use crate::{apt, workspace};

pub fn run(arguments: &[String]) -> Result<()> {
    if let Some(unknown) = arguments.first() {
        bail!("`link-order` takes no arguments, not even {unknown}");
    }
    if let Err(missing) = apt::install_missing(&["valgrind"]) {
        bail!("{missing}");
    }
    workspace::run_visibly(workspace::cargo().args(["build", "--release", "--package", "ostler"]))?;
    let program = workspace::target().join("release/ostler").canonicalize().context("no program was built")?;
    let home = empty_home()?;
    let ended = started(&program, &home, &["run", "-d", "--", "true"])?;
    let kept = started(&program, &home, &["run", "-d", "--keep", "demo", "say hello"])?;
    // The shortest first: what they share with the others is then next to what only they call.
    let commands: [&[&str]; 10] = [
        &["wait", &ended],
        &["ls"],
        &["show", &ended],
        // Valgrind cannot start the helpers of a session. What comes before that is most of what a launch does.
        &["run", "-d", "--", "true"],
        &["run", "-d", "demo", "say hello"],
        &["wait", "--until", "turn", &kept],
        &["send", &kept, "say more"],
        &["show", &kept],
        &["logs", &kept],
        &["stop", &kept],
    ];
    let mut seen = HashSet::new();
    let mut order = String::new();
    for (number, command) in commands.iter().enumerate() {
        for name in called(&program, &home, command, &home.join(format!("calls.{number}")))? {
            if seen.insert(name.clone()) {
                order.push_str(&name);
                order.push('\n');
            }
        }
    }
    ensure!(seen.len() > 100, "valgrind saw only {} functions", seen.len());
    std::fs::write(workspace::root().join("crates/cli/link_order.txt"), order).context("cannot write the order")?;
    eprintln!("{} functions are in crates/cli/link_order.txt", seen.len());
    Ok(())
}

/// Starts a session and returns its id.
fn started(program: &Path, home: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    let output = in_home(command.args(arguments), home).output().context("cannot start the program")?;
    ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The functions that a command calls, in the order of their first calls as far as callgrind keeps it.
fn called(program: &Path, home: &Path, arguments: &[&str], calls: &PathBuf) -> Result<Vec<String>> {
    let mut traced = Command::new("valgrind");
    traced.args(["-q", "--tool=callgrind", "--demangle=no"]);
    traced.arg(format!("--callgrind-out-file={}", calls.display())).arg(program).args(arguments);
    in_home(&mut traced, home).output().context("cannot start valgrind")?;
    let text = std::fs::read_to_string(calls).with_context(|| format!("valgrind did not trace {arguments:?}"))?;
    Ok(text.lines().filter_map(function).map(str::to_owned).collect())
}

fn in_home<'a>(command: &'a mut Command, home: &Path) -> &'a mut Command {
    clean_environment(command, home);
    command.env("OSTLER_HOME", home.join("ostler")).current_dir(home)
}

/// The name in a line like `fn=(12) name` or `cfn=(12) name'2`. A line without a name repeats a function.
fn function(line: &str) -> Option<&str> {
    let (_, name) = line.strip_prefix('c').unwrap_or(line).strip_prefix("fn=(")?.split_once(") ")?;
    let name = name.split_once('\'').map_or(name, |(name, _)| name);
    (!name.starts_with("0x")).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_addresses_and_recursion_are_left_out() {
        let lines = ["fn=(1) main", "cfn=(2) walk'2", "fn=(1)", "fn=(3) 0x0000001", "calls=1 2", "fl=(1) ???"];
        assert_eq!(lines.into_iter().filter_map(function).collect::<Vec<_>>(), ["main", "walk"]);
    }
}
