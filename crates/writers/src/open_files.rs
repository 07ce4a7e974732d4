//! Conversations by their files: a process that has such a file open for writing may write to it at any moment.
//!
//! The conversation of a file is known from its name or its first line; a database contains all conversations.

use crate::processes::describe;
use crate::{ConversationOwner, Evidence, Variable};
use ostler_agents::Agent;
use ostler_agents::stored::ConversationFile;
use ostler_sys::process_table;
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

/// How much of a first line is read; it may contain the agent's instructions.
const FIRST_LINE: u64 = 1 << 20;

/// Every process of this user that holds the file of a conversation open for writing.
pub fn held(variable: Variable<'_>) -> io::Result<Vec<ConversationOwner>> {
    // The folder as the kernel names it, because the kernel names open files that way.
    let below = |agent: &dyn Agent| std::fs::canonicalize(agent.open_files(variable)?).ok();
    let agents: Vec<(&dyn Agent, PathBuf)> =
        ostler_agents::all().filter_map(|agent| Some((agent, below(agent)?))).collect();
    let mut found = Vec::new();
    if agents.is_empty() {
        return Ok(found);
    }
    let folders: Vec<&Path> = agents.iter().map(|(_, below)| below.as_path()).collect();
    for pid in process_table::others()? {
        // Nearly all processes have none of these files open; only the others are examined further.
        if process_table::writable_files(pid, &folders).is_empty() {
            continue;
        }
        let Some(who) = process_table::of_this_user(pid)? else {
            continue;
        };
        for (agent, below) in &agents {
            for file in process_table::writable_files(pid, &[below]) {
                let native_id = match in_file(*agent, &file) {
                    Some(Conversation::One(id)) => Some(id),
                    Some(Conversation::SomeOf) => None,
                    None => continue,
                };
                let process = describe(&who);
                found.extend(
                    process.map(|process| ConversationOwner::new(agent.name(), native_id, Evidence::OpenFile, process)),
                );
            }
        }
    }
    Ok(found)
}

enum Conversation {
    One(String),
    /// The file contains many, and it cannot be seen from outside which of them a process is using.
    SomeOf,
}

fn in_file(agent: &dyn Agent, file: &Path) -> Option<Conversation> {
    match agent.conversation_file(file)? {
        ConversationFile::Named(id) => Some(Conversation::One(id)),
        ConversationFile::TellsInFirstLine => agent.id_in_first_line(&first_line(file)?).map(Conversation::One),
        ConversationFile::Many => Some(Conversation::SomeOf),
    }
}

/// The conversation of a file of this agent, by its name or its first line.
#[must_use]
pub fn conversation_in(agent: &dyn Agent, file: &Path) -> Option<String> {
    match in_file(agent, file)? {
        Conversation::One(id) => Some(id),
        Conversation::SomeOf => None,
    }
}

pub fn first_line(file: &Path) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let opened = std::fs::File::open(file).ok()?;
    io::BufReader::new(opened.take(FIRST_LINE)).read_until(b'\n', &mut line).ok()?;
    Some(line)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_tells_in_its_first_line_is_read_as_far_as_that() {
        let gemini = ostler_agents::find("gemini").unwrap();
        let home = tempfile::tempdir().unwrap();
        let chats = home.path().join("chats");
        std::fs::create_dir(&chats).unwrap();
        let file = chats.join("session-2026-11-15T05-45-04184da8.jsonl");
        std::fs::write(&file, "{\"sessionId\":\"04184da8-2696\"}\n{}\n").unwrap();
        assert_eq!(conversation_in(gemini, &file).as_deref(), Some("04184da8-2696"));
        std::fs::write(&file, "{\"sessio").unwrap();
        assert_eq!(conversation_in(gemini, &file), None);
    }

    #[test]
    fn a_process_that_keeps_a_conversation_open_is_found_until_it_ends() {
        let _alone = crate::alone();
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join(".local/share/opencode");
        std::fs::create_dir_all(&data).unwrap();
        let file = std::fs::File::create(data.join("opencode.db")).unwrap();
        let mut child = std::process::Command::new("sleep").arg("600").stdout(file).spawn().unwrap();
        let path = home.path().to_string_lossy().into_owned();
        let variable = |name: &str| (name == "HOME").then(|| path.clone());
        let found: Vec<_> = held(&variable).unwrap().into_iter().map(|owner| (owner.agent, owner.pid)).collect();
        assert_eq!(found, [("opencode".to_owned(), i32::try_from(child.id()).unwrap())]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(held(&variable).unwrap(), []);
    }
}
