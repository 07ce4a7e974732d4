//! Agents' own locks: the process that writes a conversation holds flock on a file that is named after it.
//!
//! The file stays when the writer has exited; only the kernel's list of locks shows which process holds it. That list
//! identifies files by device and inode, so the file is looked up first and then found in the list.

use crate::processes::describe;
use crate::{ConversationOwner, Evidence, Variable};
use ostler_agents::Agent;
use ostler_sys::file_locks;
use ostler_sys::process_table::descends_from;
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// Every conversation of this agent that a process of this user writes to, or only the writers of one of them.
pub fn locked(
    agent: &dyn Agent,
    variable: Variable<'_>,
    conversation: Option<&str>,
) -> io::Result<Vec<ConversationOwner>> {
    let Some(folder) = agent.locks(variable) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files: Vec<_> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let id = name.strip_suffix(agent.lock_suffix())?;
            let wanted = conversation.is_none_or(|conversation| conversation == id);
            if wanted { Some((id.to_owned(), entry.metadata().ok()?)) } else { None }
        })
        .collect();
    if files.is_empty() {
        return Ok(found);
    }
    let locks = file_locks::now()?;
    for (native_id, file) in files {
        for who in file_locks::on(&file, &locks)? {
            let owner =
                |process| ConversationOwner::new(agent.name(), Some(native_id.clone()), Evidence::Lock, process);
            found.extend(describe(&who).map(owner));
        }
    }
    Ok(found)
}

/// The conversation that this process is using. It keeps the locks of conversations that it no longer uses, and takes
/// more for its subagents. So among several the lock taken last counts whose conversation a person began, or that is
/// `known`.
pub fn conversation_of(
    agent: &dyn Agent,
    pid: i32,
    known: Option<&str>,
    variable: Variable<'_>,
) -> io::Result<Option<String>> {
    let is_its = |owner: &ConversationOwner| owner.pid == pid || descends_from(owner.pid, pid);
    let mut held: Vec<(Option<SystemTime>, String)> = locked(agent, variable, None)?
        .into_iter()
        .filter(is_its)
        .filter_map(|owner| owner.native_id)
        .map(|id| (taken_at(agent, &id, variable), id))
        .collect();
    held.sort();
    if held.len() == 1 {
        return Ok(held.pop().map(|(_, id)| id));
    }
    let is_at = |id: &str| Some(id) == known || is_a_persons(agent, id, variable);
    Ok(held.into_iter().rev().map(|(_, id)| id).find(|id| is_at(id)))
}

fn taken_at(agent: &dyn Agent, conversation: &str, variable: Variable<'_>) -> Option<SystemTime> {
    let file = Path::new(&agent.locks(variable)?).join(format!("{conversation}{}", agent.lock_suffix()));
    std::fs::metadata(file).ok()?.modified().ok()
}

/// Decided by its transcript, which exists from the first prompt on.
fn is_a_persons(agent: &dyn Agent, conversation: &str, variable: Variable<'_>) -> bool {
    let file = ostler_view::proof::find_transcript_with(agent, conversation, "", variable);
    let first = file.and_then(|file| crate::open_files::first_line(Path::new(&file)));
    first.is_some_and(|first| agent.is_begun_by_a_person(&first))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn codex() -> &'static dyn Agent {
        ostler_agents::find("codex").unwrap()
    }

    #[test]
    fn a_lock_file_names_its_thread_only_while_a_process_holds_it() {
        let home = tempfile::tempdir().unwrap();
        let locks = home.path().join(".codex/thread-writer-locks");
        std::fs::create_dir_all(&locks).unwrap();
        let file = std::fs::File::create(locks.join("thread-1.lock")).unwrap();
        std::fs::write(locks.join("thread-2.lock"), "").unwrap();
        let path = home.path().to_string_lossy().into_owned();
        let variable = |name: &str| (name == "HOME").then(|| path.clone());
        assert_eq!(locked(codex(), &variable, None).unwrap(), []);
        file.lock().unwrap();
        let found = locked(codex(), &variable, None).unwrap();
        let me = i32::try_from(std::process::id()).unwrap();
        assert_eq!(found.iter().map(|h| (h.native_id.as_deref(), h.pid)).collect::<Vec<_>>(), [(Some("thread-1"), me)]);
        file.unlock().unwrap();
        assert_eq!(locked(codex(), &variable, None).unwrap(), []);
    }

    #[test]
    fn of_several_threads_a_process_is_at_the_last_that_a_person_has_begun() {
        let home = tempfile::tempdir().unwrap();
        let (locks, sessions) = (home.path().join(".codex/thread-writer-locks"), home.path().join(".codex/sessions"));
        std::fs::create_dir_all(&locks).unwrap();
        std::fs::create_dir_all(&sessions).unwrap();
        let path = home.path().to_string_lossy().into_owned();
        let variable = |name: &str| (name == "HOME").then(|| path.clone());
        let me = i32::try_from(std::process::id()).unwrap();
        let at = |known: Option<&str>| conversation_of(codex(), me, known, &variable).unwrap();
        assert_eq!(at(None), None);
        let mut held = Vec::new();
        let mut takes = |id: &str, at_s: u64| {
            let file = std::fs::File::create(locks.join(format!("{id}.lock"))).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(at_s)).unwrap();
            file.lock().unwrap();
            held.push(file);
        };
        let writes = |id: &str, source: &str| {
            let line = format!("{{\"payload\":{{\"thread_source\":\"{source}\"}}}}\n");
            std::fs::write(sessions.join(format!("rollout-{id}.jsonl")), line).unwrap();
        };
        takes("one", 1);
        assert_eq!(at(None).as_deref(), Some("one"), "before anything was said in it");
        writes("one", "user");
        takes("below", 2);
        writes("below", "subagent");
        assert_eq!(at(Some("one")).as_deref(), Some("one"));
        takes("two", 3);
        assert_eq!(at(Some("one")).as_deref(), Some("one"), "nothing was said in the other yet");
        writes("two", "user");
        assert_eq!(at(Some("one")).as_deref(), Some("two"));
    }
}
