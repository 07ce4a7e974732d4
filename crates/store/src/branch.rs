//! What git has checked out in a folder, from git's own files. A list may ask for hundreds of folders, so no git
//! program is started, and a file that never ends or never answers cannot block it.

use ostler_sys::dir::Dir;
use rustix::fs::OFlags;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Longer than any reference or path in these files.
const LIMIT: u64 = 8192;
/// As many digits of a commit as git shows.
const COMMIT_DIGITS: usize = 8;

/// The branch, or the commit when no branch is checked out; `None` outside a repository.
#[must_use]
pub fn of(folder: &Path) -> Option<String> {
    folder.ancestors().find_map(head_in).and_then(|head| name_of(&head))
}

/// What `HEAD` says, if the repository's top is this folder.
fn head_in(folder: &Path) -> Option<String> {
    let here = Dir::open(folder).ok()?;
    if let Some(head) = read(&here, ".git/HEAD") {
        return Some(head);
    }
    // A worktree or a submodule: a file says where its part of the repository is.
    let elsewhere = read(&here, ".git")?;
    let path = PathBuf::from(elsewhere.strip_prefix("gitdir:")?.trim());
    read(&Dir::open(folder.join(path)).ok()?, "HEAD")
}

fn read(folder: &Dir, name: &str) -> Option<String> {
    let file = folder.file(name, OFlags::RDONLY).ok()?;
    let mut text = String::new();
    std::fs::File::from(file).take(LIMIT).read_to_string(&mut text).ok()?;
    Some(text)
}

fn name_of(head: &str) -> Option<String> {
    let head = head.trim();
    match head.strip_prefix("ref:") {
        Some(reference) => Some(reference.trim().trim_start_matches("refs/heads/").to_owned()),
        None => {
            head.get(..COMMIT_DIGITS).filter(|_| head.bytes().all(|byte| byte.is_ascii_hexdigit())).map(str::to_owned)
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_branch_is_found_from_below_in_a_worktree_and_without_a_branch() {
        let scratch = tempfile::tempdir().unwrap();
        let repository = scratch.path().join("repository");
        let worktree = scratch.path().join("tree");
        fs::create_dir_all(repository.join(".git/worktrees/tree")).unwrap();
        fs::create_dir_all(repository.join("src/deep")).unwrap();
        fs::create_dir(&worktree).unwrap();
        fs::write(repository.join(".git/HEAD"), "ref: refs/heads/feature/é\n").unwrap();
        fs::write(repository.join(".git/worktrees/tree/HEAD"), "0123456789abcdef0123456789abcdef01234567\n").unwrap();
        fs::write(worktree.join(".git"), "gitdir: ../repository/.git/worktrees/tree\n").unwrap();
        assert_eq!(of(&repository.join("src/deep")).as_deref(), Some("feature/é"));
        assert_eq!(of(&worktree).as_deref(), Some("01234567"));
        assert_eq!(of(scratch.path()), of(scratch.path().parent().unwrap()), "no repository of its own");
    }

    #[test]
    fn what_is_not_a_reference_is_no_branch() {
        for head in ["", "\n", "nonsense", "0123", "ref"] {
            assert_eq!(name_of(head), None, "{head:?}");
        }
    }
}
