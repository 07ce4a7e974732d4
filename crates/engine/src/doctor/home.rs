//! The home: does it exist, is it closed to other users, is there room, and does it survive a reboot?

use super::{Finding, Level, quoted};
use ostler_core::limits::default_min_free;
use ostler_core::limits::size;
use ostler_store::home::Home;
use ostler_sys::dir::{Dir, space};
use ostler_sys::mounts;
use rustix::fs::{Access, access};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Below this a session may soon have to wait for room.
const LOW: u64 = 64 << 20;

/// `min_free`: the configured minimum of free space, if there is one.
pub fn check(home: &Home, min_free: Option<u64>) -> Vec<Finding> {
    let root = home.root();
    let shown = root.display();
    let dir = match Dir::open(root) {
        Ok(dir) => dir,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return vec![Finding::fine(format!("{shown} does not exist yet; the first session creates it"))];
        }
        Err(error) => {
            return vec![Finding::problem(format!("{shown}: {error}"), format!("ls -ld {}", quoted(root)))];
        }
    };
    let mut findings = Vec::new();
    match access(root, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => {}
        Err(error) => findings.push(Finding::problem(
            format!("{shown} cannot be read and written: {}", std::io::Error::from(error)),
            format!("ls -ld {}", quoted(root)),
        )),
    }
    let real = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let disk = mounts::of(&real);
    let room = space(&dir);
    let free = room.as_ref().map(|room| room.free);
    let words = match (&disk, &free) {
        (Some(disk), Ok(free)) => {
            format!("{shown} is on {} ({}), {} free", disk.point.display(), disk.kind, size(*free))
        }
        (None, Ok(free)) => format!("{shown}: {} free", size(*free)),
        (_, Err(error)) => format!("{shown}: free space unknown: {error}"),
    };
    findings.push(match room {
        Ok(room) if room.free < min_free.unwrap_or_else(|| default_min_free(room.total)) => {
            let least = size(min_free.unwrap_or_else(|| default_min_free(room.total)));
            Finding::problem(
                format!("{words}, less than min_free_space ({least}): sessions write no output until there is more"),
                "free some space (ostler purge --archived deletes old sessions), or set min_free_space in config.toml",
            )
        }
        Ok(room) if room.free < LOW => {
            Finding::problem(format!("{words}: too little for sessions"), format!("df -h {}", quoted(root)))
        }
        Ok(_) | Err(_) => Finding::fine(words),
    });
    if disk.is_some_and(|disk| matches!(disk.kind.as_str(), "tmpfs" | "ramfs")) {
        findings.push(Finding::problem(
            format!("{shown} is in memory: a reboot deletes every session"),
            "set OSTLER_HOME to a folder on a disk",
        ));
    }
    findings.extend(open_folders(home));
    findings
}

/// Folders that other users may enter, or that belong to another user.
fn open_folders(home: &Home) -> Vec<Finding> {
    let mut folders = vec![home.sessions(), home.archive()];
    for parent in [home.sessions(), home.archive()] {
        let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
        folders.extend(
            entries.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b".")).map(|entry| entry.path()),
        );
    }
    let me = rustix::process::geteuid().as_raw();
    let mut findings: Vec<Finding> = folders.iter().filter_map(|folder| not_closed(folder, me)).collect();
    // A home that existed before may be open, as long as the folders in it are closed.
    if let Some(finding) = not_closed(&home.root().to_owned(), me) {
        findings.push(if findings.is_empty() { Finding { level: Level::Note, ..finding } } else { finding });
    }
    findings
}

fn not_closed(folder: &PathBuf, me: u32) -> Option<Finding> {
    let stat = std::fs::symlink_metadata(folder).ok().filter(std::fs::Metadata::is_dir)?;
    let (shown, mode) = (folder.display(), stat.mode() & 0o777);
    if stat.uid() != me {
        return Some(Finding::problem(
            format!("{shown} belongs to user {}", stat.uid()),
            format!("ls -ld {}", quoted(folder)),
        ));
    }
    (mode & 0o077 != 0).then(|| {
        Finding::problem(
            format!("{shown} is open to others (mode {mode:03o})"),
            format!("chmod 700 {}", quoted(folder)),
        )
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_folder_that_others_may_enter_is_named_with_the_command_that_closes_it() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().join("home").to_string_lossy().into_owned();
        let home = Home::find(&|name| (name == "OSTLER_HOME").then(|| root.clone())).unwrap();
        let session = home.sessions().join("abcdefgh");
        home.open_or_make(&session).unwrap();
        assert_eq!(open_folders(&home), []);
        std::fs::set_permissions(&session, std::fs::Permissions::from_mode(0o755)).unwrap();
        let found = open_folders(&home);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].level, Level::Problem);
        assert!(found[0].remedy.as_deref().unwrap().starts_with("chmod 700 /"), "{found:?}");
    }
}
