//! Codex's own lock: whoever writes a thread holds flock on `thread-writer-locks/<id>.lock` below its home.
//!
//! The file stays when the writer has gone; only the kernel's list of locks tells who holds it. That list goes by device
//! and inode, so the file is looked up first and believed afterwards.

use crate::locks;
use crate::processes::{descends_from, describe};
use crate::{Evidence, Holder, Variable};
use serde_json::Value;
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::time::SystemTime;

/// A first line is read as far as this; it holds the agent's instructions.
const FIRST_LINE: u64 = 1 << 20;

/// Every thread that a process of this user writes to, or only who writes to one of them.
pub fn locked(variable: Variable<'_>, thread: Option<&str>) -> io::Result<Vec<Holder>> {
    let Some(home) = crate::holder::folder(variable, "CODEX_HOME", ".codex") else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    let entries = std::fs::read_dir(home.join("thread-writer-locks")).into_iter().flatten().flatten();
    let files: Vec<_> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let id = name.strip_suffix(".lock")?;
            let wanted = thread.is_none_or(|thread| thread == id);
            if wanted { Some((id.to_owned(), entry.metadata().ok()?)) } else { None }
        })
        .collect();
    if files.is_empty() {
        return Ok(found);
    }
    let locks = locks::now()?;
    for (native_id, file) in files {
        for who in locks::on(&file, &locks)? {
            let process = describe(&who);
            found.extend(process.map(|process| Holder::new("codex", Some(native_id.clone()), Evidence::Lock, process)));
        }
    }
    Ok(found)
}

/// The thread that this process is at. It keeps the locks of those that it has left, and takes more for its subagents: so of
/// several the one taken last counts that is a person's, and `known` until there is such a one.
pub fn conversation_of(pid: i32, known: Option<&str>, variable: Variable<'_>) -> io::Result<Option<String>> {
    let is_its = |holder: &Holder| holder.pid == pid || descends_from(holder.pid, pid);
    let mut threads: Vec<(Option<SystemTime>, String)> = locked(variable, None)?
        .into_iter()
        .filter(is_its)
        .filter_map(|holder| holder.native_id)
        .map(|id| (taken_at(&id, variable), id))
        .collect();
    threads.sort();
    if threads.len() == 1 {
        return Ok(threads.pop().map(|(_, id)| id));
    }
    let is_at = |id: &str| Some(id) == known || is_a_persons(id, variable);
    Ok(threads.into_iter().rev().map(|(_, id)| id).find(|id| is_at(id)))
}

fn taken_at(thread: &str, variable: Variable<'_>) -> Option<SystemTime> {
    let home = crate::holder::folder(variable, "CODEX_HOME", ".codex")?;
    std::fs::metadata(home.join(format!("thread-writer-locks/{thread}.lock"))).ok()?.modified().ok()
}

/// By its file, which is there from the first prompt on.
fn is_a_persons(thread: &str, variable: Variable<'_>) -> bool {
    let codex = ostler_agents::codex::Codex;
    let file = ostler_store::proof::find_transcript_with(&codex, thread, "", variable);
    file.and_then(|file| first_line(Path::new(&file))).is_some_and(|first| first["payload"]["thread_source"] == "user")
}

fn first_line(file: &Path) -> Option<Value> {
    let mut line = Vec::new();
    io::BufReader::new(std::fs::File::open(file).ok()?.take(FIRST_LINE)).read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_lock_file_names_its_thread_only_while_somebody_holds_it() {
        let home = tempfile::tempdir().unwrap();
        let locks = home.path().join(".codex/thread-writer-locks");
        std::fs::create_dir_all(&locks).unwrap();
        let file = std::fs::File::create(locks.join("thread-1.lock")).unwrap();
        std::fs::write(locks.join("thread-2.lock"), "").unwrap();
        let path = home.path().to_string_lossy().into_owned();
        let variable = |name: &str| (name == "HOME").then(|| path.clone());
        assert_eq!(locked(&variable, None).unwrap(), []);
        file.lock().unwrap();
        let found = locked(&variable, None).unwrap();
        let me = i32::try_from(std::process::id()).unwrap();
        assert_eq!(found.iter().map(|h| (h.native_id.as_deref(), h.pid)).collect::<Vec<_>>(), [(Some("thread-1"), me)]);
        file.unlock().unwrap();
        assert_eq!(locked(&variable, None).unwrap(), []);
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
        let at = |known: Option<&str>| conversation_of(me, known, &variable).unwrap();
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
