//! What a killed claude has left running. Its tools are sessions of their own, so nothing of claude's end reaches them;
//! but their output goes to a file whose path names the conversation, and their parent is nobody's any more.
//!
//! A process is named only when both hold: no living process has that conversation, and its parent is neither a claude nor
//! another process of that tool, so that whoever started it is gone. They are never signalled by us: the command that ends
//! them is for a person to type.

use super::Finding;
use crate::context::variable;
use crate::exit::Result;
use crate::foreign::{holders, processes};
use ostler_store::home::Home;
use ostler_sys::process::{Stat, command_line};
use std::path::{Path, PathBuf};

pub fn check(home: &Home) -> Result<Vec<Finding>> {
    let below = format!("/tmp/claude-{}", rustix::process::geteuid().as_raw());
    let tools: Vec<Tool> =
        processes::all_of_this_user()?.iter().filter_map(|who| Tool::look(who.pid(), Path::new(&below))).collect();
    if tools.is_empty() {
        return Ok(Vec::new());
    }
    let held: Vec<String> = holders(home, &variable)?.into_iter().filter_map(|holder| holder.native_id).collect();
    Ok(tools.iter().filter(|tool| !held.contains(&tool.conversation)).map(Tool::finding).collect())
}

/// A process whose output is that of a tool, and whose agent is gone.
#[derive(Debug, PartialEq, Eq)]
struct Tool {
    pid: i32,
    conversation: String,
    command: String,
}

impl Tool {
    fn look(pid: i32, below: &Path) -> Option<Tool> {
        let output = std::fs::read_link(format!("/proc/{pid}/fd/1")).ok()?;
        let conversation = conversation_of(&output, below)?;
        let parent = Stat::read(pid).ok()??.parent;
        is_foster_parent(parent, below).then(|| Tool { pid, conversation, command: command_line(pid).join(" ") })
    }

    fn finding(&self) -> Finding {
        let words: String = self.command.chars().take(60).collect();
        Finding::problem(
            format!(
                "process {} is a tool of claude conversation {}, which is gone: {words}",
                self.pid, self.conversation
            ),
            // It leads a group of its own, with all that it started.
            format!("kill -- -{0} || kill {0}", self.pid),
        )
    }
}

/// `…/<conversation>/tasks/<file>`, below claude's own folder.
fn conversation_of(output: &Path, below: &Path) -> Option<String> {
    let inside: PathBuf = output.strip_prefix(below).ok()?.to_owned();
    let tasks = inside.parent()?;
    let name = tasks.parent()?.file_name()?.to_str()?;
    (tasks.file_name()? == "tasks").then(|| name.to_owned())
}

/// Whether a process has only inherited its child. A tool's own processes are its children's parents, and claude is the
/// tool's, whatever it is called: where in doubt nothing is said.
fn is_foster_parent(pid: i32, below: &Path) -> bool {
    let of_a_tool =
        std::fs::read_link(format!("/proc/{pid}/fd/1")).is_ok_and(|output| conversation_of(&output, below).is_some());
    let claude = command_line(pid).iter().any(|word| word.contains("claude"));
    pid <= 1 || !of_a_tool && !claude
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_its_output_names_the_conversation() {
        let of = |path: &str| conversation_of(Path::new(path), Path::new("/tmp/claude-7"));
        assert_eq!(of("/tmp/claude-7/-home-a/0f-1/tasks/b.output").as_deref(), Some("0f-1"));
        assert_eq!(of("/tmp/claude-8/-home-a/0f-1/tasks/b.output"), None, "another user's");
        assert_eq!(of("/tmp/claude-7/-home-a/0f-1/notes/b.output"), None);
        assert_eq!(of("/tmp/claude-7/x"), None);
    }
}
