//! Conversations that the agents keep, whether or not anything runs: in a file for each, or all of them in one
//! database. They are searched only where the agents keep them in our environment: below the user's home folder, or
//! where the agent's own variable says.

use super::{Variable, conversation_in};
use crate::error::{Error, Result};
use ostler_agents::Agent;
use ostler_agents::stored::{OlderForm, Queries, Stores};
use ostler_view::database;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A stored conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The agent that has written it.
    pub agent: &'static str,
    /// The agent's own id of it.
    pub native_id: String,
    /// Its file, or the database that it is in.
    pub file: PathBuf,
    /// When it was written last.
    pub updated: SystemTime,
    /// Where it works, as far as that is known without reading it.
    pub cwd: Option<String>,
}

impl Stored {
    /// The agent that keeps it.
    pub fn kept_by(&self) -> Option<&'static dyn Agent> {
        ostler_agents::find(self.agent)
    }

    /// How it is read from the database that it is in; `None` for one with a file of its own.
    pub fn queries(&self) -> Option<&'static Queries> {
        self.kept_by().and_then(|agent| agent.queries())
    }

    /// Writes it in the form that [`ostler_agents::recorded`] reads.
    pub fn write_record(&self, mut to: impl Write) -> io::Result<()> {
        match self.queries() {
            Some(queries) => database::write_record(queries, &self.file, &self.native_id, &mut to),
            None => io::copy(&mut File::open(&self.file)?, &mut to).map(drop),
        }
    }
}

/// Every conversation, the newest first.
pub fn all(variable: Variable<'_>) -> Result<Vec<Stored>> {
    let mut found = in_files(variable);
    for agent in ostler_agents::all() {
        let (Some(Stores::Database(database)), Some(queries)) = (agent.stores(variable), agent.queries()) else {
            continue;
        };
        let rows = database::conversations(queries, &database)
            .map_err(|error| Error::Unreadable { path: database.clone(), error: error.to_string() })?;
        found.extend(rows.into_iter().map(|row| Stored {
            agent: agent.name(),
            native_id: row.native_id,
            file: database.clone(),
            updated: SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(row.updated_ms).unwrap_or(0)),
            cwd: Some(row.cwd),
        }));
    }
    found.sort_by_key(|one| std::cmp::Reverse(one.updated));
    // A copied conversation may have two files with its id: it continues in the newer one.
    let mut seen = std::collections::HashSet::new();
    found.retain(|one| seen.insert((one.agent, one.native_id.clone())));
    Ok(found)
}

/// The conversations that have a file of their own.
pub fn in_files(variable: Variable<'_>) -> Vec<Stored> {
    let mut found = Vec::new();
    for agent in ostler_agents::all() {
        let Some(Stores::Files { folder, deep, inner }) = agent.stores(variable) else { continue };
        for file in files_below(&folder, deep, inner, "jsonl") {
            // Opening a pipe would block.
            let Some(about) = file.metadata().ok().filter(std::fs::Metadata::is_file) else { continue };
            let Ok(updated) = about.modified() else { continue };
            let Some(native_id) = conversation_in(agent, &file) else { continue };
            let cwd = agent.file_with_cwd(&file).and_then(|file| only_line(&file));
            found.push(Stored { agent: agent.name(), native_id, file, updated, cwd });
        }
    }
    found
}

/// A conversation that its agent has to convert before anything else can read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Older {
    /// The agent that has written it.
    pub agent: &'static str,
    /// Its id, and how it is resumed.
    pub form: OlderForm,
    /// Where it is.
    pub file: PathBuf,
    /// Where it works.
    pub cwd: Option<String>,
}

/// The conversations that exist only in the format of an older version of their agent.
pub fn in_older_form(variable: Variable<'_>) -> Vec<Older> {
    let mut found = Vec::new();
    for agent in ostler_agents::all() {
        let Some(Stores::Files { folder, deep, inner }) = agent.stores(variable) else { continue };
        for file in files_below(&folder, deep, inner, "json") {
            if agent.conversation_file(&file).is_none() || file.with_extension("jsonl").exists() {
                continue;
            }
            let Some(form) = std::fs::read(&file).ok().and_then(|text| agent.older_form(&text)) else { continue };
            let cwd = agent.file_with_cwd(&file).and_then(|file| only_line(&file));
            found.push(Older { agent: agent.name(), form, file, cwd });
        }
    }
    found
}

/// Where the agents keep their conversations.
pub fn places(variable: Variable<'_>) -> Vec<PathBuf> {
    ostler_agents::all().filter_map(|agent| Some(agent.stores(variable)?.path().to_owned())).collect()
}

/// The files with this extension `deep` levels below a folder. With `inner`: in the folder of that name in each folder
/// of that level.
fn files_below(folder: &Path, deep: usize, inner: Option<&str>, extension: &str) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    for _ in 0..deep {
        folders = folders.iter().flat_map(|folder| entries(folder)).filter(|path| path.is_dir()).collect();
    }
    let folders = folders.into_iter().map(|folder| inner.map_or(folder.clone(), |inner| folder.join(inner)));
    let is_record = |path: &PathBuf| path.extension().is_some_and(|end| end == extension);
    folders.flat_map(|folder| entries(&folder)).filter(is_record).collect()
}

/// Empty for a folder that does not exist or cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn only_line(file: &Path) -> Option<String> {
    let line = std::fs::read_to_string(file).ok()?;
    Some(line.trim_end().to_owned()).filter(|line| !line.is_empty())
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
