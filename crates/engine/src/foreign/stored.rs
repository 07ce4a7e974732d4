//! Conversations that the agents keep, whether or not anything runs: claude, codex and gemini a file for each, opencode all
//! of them in one database. Looked for only where the agents keep them with our environment: below the home, or where
//! the agent's own variable says.

use super::{Variable, conversation_in};
use crate::error::{Error, Result};
use ostler_store::database;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub agent: &'static str,
    pub native_id: String,
    /// Its file, or the database that it is in.
    pub file: PathBuf,
    pub updated: SystemTime,
    /// Where it works, as far as that is known without reading it.
    pub cwd: Option<String>,
}

/// The agents whose conversations can be taken over.
pub const AGENTS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

/// Every conversation, the newest first.
pub fn all(variable: Variable<'_>) -> Result<Vec<Stored>> {
    let mut found = in_files(variable);
    if let Some(database) = place("opencode", variable) {
        let rows = database::conversations(&database)
            .map_err(|error| Error::Unreadable { path: database.clone(), error: error.to_string() })?;
        found.extend(rows.into_iter().map(|row| Stored {
            agent: "opencode",
            native_id: row.native_id,
            file: database.clone(),
            updated: SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(row.updated_ms).unwrap_or(0)),
            cwd: Some(row.cwd),
        }));
    }
    found.sort_by_key(|one| std::cmp::Reverse(one.updated));
    // A copy of a conversation may have two files of its name: it goes on in the newer one.
    let mut seen = std::collections::HashSet::new();
    found.retain(|one| seen.insert((one.agent, one.native_id.clone())));
    Ok(found)
}

/// Those that have a file of their own.
pub fn in_files(variable: Variable<'_>) -> Vec<Stored> {
    let mut found = Vec::new();
    for agent in ["claude", "codex", "gemini"] {
        let Some(place) = place(agent, variable) else { continue };
        let deep = if agent == "codex" { 3 } else { 1 };
        for file in files_below(&place, deep, if agent == "gemini" { Some("chats") } else { None }) {
            let Some(native_id) = id_in(agent, &file) else { continue };
            let Ok(updated) = file.metadata().and_then(|file| file.modified()) else { continue };
            let cwd = if agent == "gemini" { root_of_project(&file) } else { None };
            found.push(Stored { agent, native_id, file, updated, cwd });
        }
    }
    found
}

/// Where an agent keeps its conversations.
pub fn place(agent: &str, variable: Variable<'_>) -> Option<PathBuf> {
    let known = ostler_agents::find(agent)?;
    let folder = || known.conversations_folder(variable).map(PathBuf::from);
    match agent {
        "claude" => Some(folder()?.join("projects")),
        "codex" => Some(folder()?.join("sessions")),
        "gemini" => Some(folder()?.join("tmp")),
        "opencode" => known.database(variable).map(PathBuf::from),
        _ => None,
    }
}

/// The files so many folders below a folder, or in the folder of this name in each of those.
fn files_below(folder: &Path, deep: usize, inner: Option<&str>) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    for _ in 0..deep {
        folders = folders.iter().flat_map(|folder| entries(folder)).filter(|path| path.is_dir()).collect();
    }
    let folders = folders.into_iter().map(|folder| inner.map_or(folder.clone(), |inner| folder.join(inner)));
    let is_record = |path: &PathBuf| path.extension().is_some_and(|end| end == "jsonl");
    folders.flat_map(|folder| entries(&folder)).filter(is_record).collect()
}

/// A folder that is not there has nothing in it, and one that we may not read tells nothing.
fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn id_in(agent: &str, file: &Path) -> Option<String> {
    match agent {
        "claude" => {
            let stem = file.file_stem()?.to_str()?;
            uuid::Uuid::try_parse(stem).is_ok().then(|| stem.to_owned())
        }
        _ => conversation_in(agent, file),
    }
}

/// Gemini notes beside the chats of a project where that is.
fn root_of_project(file: &Path) -> Option<String> {
    let root = std::fs::read_to_string(file.parent()?.parent()?.join(".project_root")).ok()?;
    Some(root.trim_end().to_owned()).filter(|root| !root.is_empty())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const ID: &str = "01a1ddbd-408d-7262-88d9-97e7e2d532f0";

    #[test]
    fn conversations_are_found_where_each_agent_keeps_them_and_nothing_else_is() {
        let home = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(&format!(".claude/projects/-w/{ID}.jsonl"), "{}\n");
        write(".claude/projects/-w/agent-77.jsonl", "{}\n");
        write(&format!(".claude/projects/-w/{ID}/subagents/x.jsonl"), "{}\n");
        write(&format!(".codex/sessions/2026/11/16/rollout-2026-11-16T05-56-34-{ID}.jsonl"), "{}\n");
        write(".gemini/tmp/w/chats/session-2026-11-16T06-04-e2020616.jsonl", "{\"sessionId\":\"e2020616-1\"}\n");
        write(".gemini/tmp/w/.project_root", "/w\n");
        let path = home.path().to_string_lossy().into_owned();
        let mut found = all(&|name| (name == "HOME").then(|| path.clone())).unwrap();
        found.sort_by_key(|one| one.agent);
        let found: Vec<_> = found.iter().map(|one| (one.agent, one.native_id.as_str(), one.cwd.as_deref())).collect();
        assert_eq!(found, [("claude", ID, None), ("codex", ID, None), ("gemini", "e2020616-1", Some("/w"))]);
    }
}
