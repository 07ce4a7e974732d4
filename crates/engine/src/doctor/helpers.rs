//! Helpers whose session is gone: its folder was deleted while they were running.
//!
//! A helper is recognised by its command line, its user and its working folder; never by its environment, which every
//! process that an agent starts inherits.

use super::Finding;
use crate::error::Result;
use ostler_keeper::{HOLDER, KEEPER};
use ostler_store::home::Home;
use ostler_sys::process::first_words;
use ostler_sys::process_table;
use ostler_sys::threads::parallel;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many processes a thread takes at a time.
const BATCH: usize = 64;

/// One living helper process of our user.
#[derive(Debug)]
pub struct Helper {
    pub pid: i32,
    word: &'static str,
    /// The folder it works in, or worked in before that was deleted.
    pub folder: PathBuf,
    deleted: bool,
}

impl Helper {
    /// A helper that is known from its session, whose folder exists.
    pub fn of(pid: i32, word: &'static str, folder: &Path) -> Helper {
        Helper { pid, word, folder: folder.to_owned(), deleted: false }
    }

    /// The session that it helps, by the name of its folder.
    pub fn session(&self) -> Option<String> {
        Some(self.folder.file_name()?.to_str()?.to_owned())
    }
}

pub fn check(home: &Home, helpers: &[Helper]) -> Vec<Finding> {
    let root = std::fs::canonicalize(home.root()).unwrap_or_else(|_| home.root().to_owned());
    helpers.iter().filter_map(|helper| lost(helper, &root)).collect()
}

fn lost(helper: &Helper, root: &Path) -> Option<Finding> {
    let ours = helper.folder.starts_with(root.join("sessions")) || helper.folder.starts_with(root.join("archive"));
    (ours && helper.deleted).then(|| {
        Finding::problem(
            format!(
                "process {} is the {} of a session whose folder is gone ({})",
                helper.pid,
                helper.word,
                helper.folder.display()
            ),
            // The helper exits when the processes that it holds are gone.
            format!("kill {} $(pgrep -P {})", helper.pid, helper.pid),
        )
    })
}

/// Every helper of our user, of any home. `known`: helpers that were already found.
pub fn all(known: Vec<Helper>) -> Result<Vec<Helper>> {
    let known_pids: HashSet<i32> = known.iter().map(|helper| helper.pid).collect();
    let pids: Vec<i32> = process_table::pids()?.into_iter().filter(|pid| !known_pids.contains(pid)).collect();
    let next = AtomicUsize::new(0);
    let look = || {
        let mut found = Vec::new();
        while let Some(handful) = pids.chunks(BATCH).nth(next.fetch_add(1, Ordering::Relaxed)) {
            found.extend(handful.iter().filter_map(|&pid| helper(pid)));
        }
        found
    };
    let mut found: Vec<Helper> = parallel(super::AT_ONCE, look).into_iter().flatten().chain(known).collect();
    found.sort_by_key(|helper| helper.pid);
    Ok(found)
}

/// `None` for a process that is not a helper, or that ends while we look.
fn helper(pid: i32) -> Option<Helper> {
    let word = match first_words(pid).get(1).map(String::as_str) {
        Some(HOLDER) => "holder",
        Some(KEEPER) => "keeper",
        Some(_) | None => return None,
    };
    let folder = process_table::cwd(pid).filter(|_| process_table::is_of_this_user(pid))?;
    let (folder, deleted) = process_table::undeleted(&folder);
    Some(Helper { pid, word, folder, deleted })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_helper_of_this_home_whose_folder_is_gone_is_lost() {
        let root = Path::new("/home/a/ostler");
        let helper = |link: &str| {
            let (folder, deleted) = process_table::undeleted(Path::new(link));
            lost(&Helper { pid: 7, word: "keeper", folder, deleted }, root).is_some()
        };
        assert!(helper("/home/a/ostler/sessions/abcdefgh (deleted)"));
        assert!(helper("/home/a/ostler/archive/2026-11/.gone-abcdefgh (deleted)"));
        assert!(!helper("/home/a/ostler/sessions/abcdefgh"), "its folder is there");
        assert!(!helper("/home/b/ostler/sessions/abcdefgh (deleted)"), "another home");
        assert!(!helper("/home/a/ostler-two/sessions/abcdefgh (deleted)"), "another home");
    }
}
