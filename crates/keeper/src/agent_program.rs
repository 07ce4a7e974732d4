//! Finding an agent's real program.
//!
//! Some agents come from npm as a script that starts the real program. A keeper of the script would have the wrong
//! process: its identity, its lock and its signals are not the agent's, and it can be killed while the agent lives on.

use ostler_agents::Agent;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What to start for `name`: the real program if `name` is only a launcher for it, otherwise the name as it is.
#[must_use]
fn resolve(agent: &dyn Agent, name: &str) -> String {
    resolve_on(std::env::var("PATH").ok().as_deref(), agent, name)
}

/// The same, with these folders instead of the `PATH` of this process.
#[must_use]
pub fn resolve_on(path: Option<&str>, agent: &dyn Agent, name: &str) -> String {
    let beside = agent.beside_its_launcher();
    let real = || {
        let launcher = std::fs::canonicalize(find_on(path?, name)?).ok()?;
        // A package keeps its scripts in a folder of their own.
        let package = launcher.parent()?.parent()?;
        let real = beside.iter().map(|relative| package.join(relative)).find(|path| is_program(path))?;
        Some(std::fs::canonicalize(real).ok()?.to_string_lossy().into_owned())
    };
    if beside.is_empty() { name.to_owned() } else { real().unwrap_or_else(|| name.to_owned()) }
}

/// What to start for `name` when it was `before` in an earlier run: the same program as long as it exists. A program
/// that has moved, for example because an update was installed into another folder, is looked for again, as the shell
/// would.
#[must_use]
pub fn resolve_again(agent: &dyn Agent, name: &str, before: &str) -> String {
    let is_path = before.contains('/');
    if is_path && !is_program(Path::new(before)) { resolve(agent, name) } else { before.to_owned() }
}

/// The program in the first of these folders that has it.
#[must_use]
pub fn find_on(path: &str, name: &str) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|candidate| is_program(candidate))
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
