//! Codex's own lock: whoever writes a thread holds flock on `thread-writer-locks/<id>.lock` below its home.
//!
//! The file stays when the writer has gone; only the kernel's list of locks tells who holds it. That list goes by device
//! and inode, so the file is looked up first and believed afterwards.

use crate::locks;
use crate::processes::describe;
use crate::{Evidence, Holder, Variable};
use std::io;

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
}
