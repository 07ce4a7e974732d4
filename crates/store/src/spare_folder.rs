//! The folder of the next session, made in advance, when nothing waits for it.
//!
//! The cost this saves: a launch needs three folders and seven files before its program may run, and each takes 15 to
//! 60 microseconds, or 250 on a file system that skips every inode that was freed a moment ago. So the keeper of a
//! session that has just begun makes the same folders and files once more beside the sessions, empty, and the next
//! launch takes them by renaming the folder. One is enough: a launch that finds none makes its own.

use ostler_sys::dir::Dir;
use ostler_sys::{clock, lock};
use rustix::fs::OFlags;
use std::io;

/// Relative to the folder of the sessions.
const SPARE: &str = "../spare";
const READY: &str = "ready";
const UNDER_WAY: &str = "under-way";
const INNER_FOLDERS: [&str; 2] = ["runs", "runs/1"];
const FILES: [&str; 7] =
    ["session.json", "holder.json", "agent.lock", "runs/1/run.json", "runs/1/in", "runs/1/out", "runs/1/err"];

/// Takes the folder that is ready, under an unused name. `Ok(false)`: there is none, or it is not what was made.
pub fn take(sessions: &Dir, name: &str) -> io::Result<bool> {
    let ready = format!("{SPARE}/{READY}");
    // An error here must not prevent a launch from making its own folder. On some file systems a rename changes the
    // date of a folder, so its date is read before.
    let Ok(date) = sessions.date_if_folder(&ready, 0o700) else {
        return Ok(false);
    };
    if sessions.rename_new(&ready, sessions, name).is_err() {
        return Ok(false);
    }
    if sessions.open_dir(name).and_then(|folder| is_untouched(&folder, date)).unwrap_or(false) {
        return Ok(true);
    }
    sessions.remove_all(name)?;
    Ok(false)
}

/// Whether it contains exactly what was made, for its owner alone, with empty files: everything in a session's folder
/// is trusted. The folders have the same date, a whole second; making, removing or renaming anything in one of them
/// changes its date.
fn is_untouched(folder: &Dir, date: Option<(i64, u64)>) -> io::Result<bool> {
    let mut as_made = matches!(date, Some((_, 0)));
    for inner in INNER_FOLDERS {
        as_made &= date == folder.date_if_folder(inner, 0o700)?;
    }
    for file in FILES {
        as_made &= folder.is_empty_file(file, 0o600)?;
    }
    Ok(as_made)
}

/// Makes the next one, unless there is one or another process is making it.
pub fn make(sessions: &Dir) -> io::Result<()> {
    if sessions.stat(&format!("{SPARE}/{READY}"))?.is_some() {
        return Ok(());
    }
    match sessions.make_dir(SPARE) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let spare = sessions.open_dir(SPARE)?;
    let Some(_held) = lock::try_exclusive(spare.file("lock", OFlags::RDWR | OFlags::CREATE)?)? else {
        return Ok(());
    };
    // Left by a process that was killed in the middle of this.
    spare.remove_all(UNDER_WAY)?;
    spare.make_dir(UNDER_WAY)?;
    let folder = spare.open_dir(UNDER_WAY)?;
    for inner in INNER_FOLDERS {
        folder.make_dir(inner)?;
    }
    for file in FILES {
        folder.file(file, OFlags::WRONLY | OFlags::CREATE)?;
    }
    // A date that a change cannot give them, however coarse the clock of the file system is.
    let date = clock::now().as_second() - 60;
    for path in INNER_FOLDERS.into_iter().chain(["."]) {
        folder.open_dir(path)?.set_date(date)?;
    }
    match spare.rename_new(UNDER_WAY, &spare, READY) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => spare.remove_all(UNDER_WAY),
        other => other,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_spare_folder_is_taken_once_and_made_again_though_its_maker_was_killed() {
        let home = tempfile::tempdir().unwrap();
        let sessions = home.path().join("sessions");
        std::fs::create_dir(&sessions).unwrap();
        let dir = Dir::open(&sessions).unwrap();
        assert!(!take(&dir, "none").unwrap(), "none was made");
        for name in ["first", "second"] {
            // An unfinished folder, as a killed process leaves it.
            std::fs::create_dir_all(home.path().join("spare/under-way/runs")).unwrap();
            make(&dir).unwrap();
            make(&dir).unwrap();
            assert!(take(&dir, name).unwrap());
            assert!(!take(&dir, "another").unwrap(), "there is one at a time");
            for file in FILES {
                assert_eq!(std::fs::metadata(sessions.join(name).join(file)).unwrap().len(), 0);
            }
        }
        make(&dir).unwrap();
        assert!(!take(&dir, "first").unwrap(), "that name is taken");
        assert!(take(&dir, "third").unwrap(), "and it stayed where it was");
    }

    #[test]
    fn what_is_not_as_it_was_made_is_thrown_away() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let (sessions, ready) = (home.path().join("sessions"), home.path().join("spare/ready"));
        std::fs::create_dir(&sessions).unwrap();
        let dir = Dir::open(&sessions).unwrap();
        let touches: [&dyn Fn(); 8] = [
            &|| std::fs::write(ready.join("runs/1/out"), "old").unwrap(),
            &|| std::fs::write(ready.join("runs/1/outcome.json"), "").unwrap(),
            &|| std::fs::create_dir(ready.join("runs/2")).unwrap(),
            &|| std::fs::remove_file(ready.join("agent.lock")).unwrap(),
            &|| std::fs::set_permissions(&ready, PermissionsExt::from_mode(0o755)).unwrap(),
            &|| std::fs::set_permissions(ready.join("session.json"), PermissionsExt::from_mode(0o644)).unwrap(),
            &|| {
                std::fs::remove_file(ready.join("runs/1/out")).unwrap();
                std::os::unix::fs::symlink("/dev/null", ready.join("runs/1/out")).unwrap();
            },
            &|| {
                std::fs::remove_dir_all(&ready).unwrap();
                std::fs::write(&ready, "").unwrap();
            },
        ];
        for (number, touch) in touches.iter().enumerate() {
            make(&dir).unwrap();
            touch();
            assert!(!take(&dir, "taken").unwrap(), "{number}");
            assert!(!sessions.join("taken").exists(), "{number}");
        }
        std::fs::remove_dir_all(home.path().join("spare")).unwrap();
        std::fs::write(home.path().join("spare"), "").unwrap();
        assert!(!take(&dir, "taken").unwrap(), "no folder at all");
    }

    #[test]
    fn two_do_not_make_it_at_once() {
        let home = tempfile::tempdir().unwrap();
        let sessions = home.path().join("sessions");
        std::fs::create_dir_all(&sessions).unwrap();
        std::fs::create_dir(home.path().join("spare")).unwrap();
        let dir = Dir::open(&sessions).unwrap();
        let lock = dir.file("../spare/lock", OFlags::RDWR | OFlags::CREATE).unwrap();
        let held = lock::try_exclusive(lock).unwrap().unwrap();
        make(&dir).unwrap();
        assert!(!take(&dir, "early").unwrap());
        drop(held);
        make(&dir).unwrap();
        assert!(take(&dir, "late").unwrap());
    }
}
