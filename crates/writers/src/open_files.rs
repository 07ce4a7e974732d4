//! Conversations by the files that hold them: whoever has one open for writing may write to it at any moment.
//!
//! Which conversation a file is, its name or its first line says; a database is all of them.

use crate::processes::{self, describe, writable_files};
use crate::{Evidence, Holder, Variable};
use serde_json::Value;
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

/// A first line is read as far as this.
const FIRST_LINE: u64 = 64 << 10;

/// One agent's files.
struct Files {
    agent: &'static str,
    below: PathBuf,
    /// The conversation in a file; `None` when the file is none.
    conversation: fn(&Path) -> Option<Conversation>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Conversation {
    One(String),
    /// The file holds many, and nobody can tell from outside which of them the process is at.
    SomeOf,
}

/// Every process of this user that holds such a file open for writing.
pub fn held(variable: Variable<'_>) -> io::Result<Vec<Holder>> {
    let agents: Vec<Files> = [
        ("codex", crate::holder::folder(variable, "CODEX_HOME", ".codex"), codex as fn(&Path) -> Option<Conversation>),
        ("gemini", crate::holder::folder(&|name| variable(name).filter(|_| name == "HOME"), "", ".gemini"), gemini),
        ("opencode", opencode_folder(variable), opencode),
    ]
    .into_iter()
    .filter_map(|(agent, below, conversation)| Some(Files { agent, below: below?, conversation }))
    .collect();
    let mut found = Vec::new();
    if agents.is_empty() {
        return Ok(found);
    }
    for who in processes::all_of_this_user()? {
        for Files { agent, below, conversation } in &agents {
            for file in writable_files(who.pid(), below) {
                let Some(conversation) = conversation(&file) else {
                    continue;
                };
                let native_id = match conversation {
                    Conversation::One(id) => Some(id),
                    Conversation::SomeOf => None,
                };
                let process = describe(&who);
                found.extend(process.map(|process| Holder::new(agent, native_id, Evidence::OpenFile, process)));
            }
        }
    }
    Ok(found)
}

fn opencode_folder(variable: Variable<'_>) -> Option<PathBuf> {
    let data = variable("XDG_DATA_HOME").filter(|value| !value.is_empty()).map(PathBuf::from);
    match data {
        Some(data) => std::fs::canonicalize(data.join("opencode")).ok(),
        None => crate::holder::folder(variable, "", ".local/share/opencode"),
    }
}

/// The conversation that a file of this agent is, by its name or its first line.
pub fn conversation_in(agent: &str, file: &Path) -> Option<String> {
    let found = match agent {
        "codex" => codex(file),
        "gemini" => gemini(file),
        _ => None,
    };
    found.and_then(|conversation| match conversation {
        Conversation::One(id) => Some(id),
        Conversation::SomeOf => None,
    })
}

/// `sessions/Y/M/D/rollout-<time>-<id>.jsonl`, where the id is a UUID.
fn codex(file: &Path) -> Option<Conversation> {
    let name = file.file_name()?.to_str()?.strip_prefix("rollout-")?.strip_suffix(".jsonl")?;
    let id = name.get(name.len().checked_sub(36)?..)?;
    uuid::Uuid::try_parse(id).ok()?;
    Some(Conversation::One(id.to_owned()))
}

/// `tmp/<project>/chats/session-<time>-<start of the id>.jsonl`; its first line has the whole id.
fn gemini(file: &Path) -> Option<Conversation> {
    let name = file.file_name()?.to_str()?;
    if !name.starts_with("session-") || file.parent()?.file_name()? != "chats" {
        return None;
    }
    let mut line = Vec::new();
    let opened = std::fs::File::open(file).ok()?;
    io::BufReader::new(opened.take(FIRST_LINE)).read_until(b'\n', &mut line).ok()?;
    let first: Value = serde_json::from_slice(&line).ok()?;
    Some(Conversation::One(first["sessionId"].as_str()?.to_owned()))
}

/// One database for all.
fn opencode(file: &Path) -> Option<Conversation> {
    (file.file_name()? == "opencode.db").then_some(Conversation::SomeOf)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_which_conversation_it_is_and_another_file_is_none() {
        let id = "01a1ddbd-408d-7262-88d9-97e7e2d532f0";
        let rollout = format!("/h/.codex/sessions/2026/11/15/rollout-2026-11-15T05-45-30-{id}.jsonl");
        assert_eq!(codex(Path::new(&rollout)), Some(Conversation::One(id.to_owned())));
        assert_eq!(codex(Path::new("/h/.codex/sessions/rollout-é.jsonl")), None);
        assert_eq!(codex(Path::new("/h/.codex/state_5.sqlite")), None);
        assert_eq!(opencode(Path::new("/d/opencode/opencode.db")), Some(Conversation::SomeOf));
        assert_eq!(opencode(Path::new("/d/opencode/log/opencode.log")), None);

        let home = tempfile::tempdir().unwrap();
        let chats = home.path().join("chats");
        std::fs::create_dir(&chats).unwrap();
        let file = chats.join("session-2026-11-15T05-45-04184da8.jsonl");
        std::fs::write(&file, "{\"sessionId\":\"04184da8-2696\"}\n{}\n").unwrap();
        assert_eq!(gemini(&file), Some(Conversation::One("04184da8-2696".to_owned())));
        std::fs::write(&file, "{\"sessio").unwrap();
        assert_eq!(gemini(&file), None);
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
        let found: Vec<_> = held(&variable).unwrap().into_iter().map(|holder| (holder.agent, holder.pid)).collect();
        assert_eq!(found, [("opencode".to_owned(), i32::try_from(child.id()).unwrap())]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(held(&variable).unwrap(), []);
    }
}
