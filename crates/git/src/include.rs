//! Ignored files that a new tree needs too, such as settings with keys: the files that `.worktreeinclude` in the main
//! working tree names, by the rules of `.gitignore`.
//!
//! The commit from which a tree is made may not ignore these files: its `.gitignore` is older, or the line is not
//! committed. So a list beside the tree's index says what was copied. As long as such a file is unchanged since it was
//! copied, it does not count as work: it is not shown, saved or committed.

use crate::git::{Git, done, fields};
use crate::index_copy::own_folder;
use crate::repository::FOLDER;
use crate::{GitError, Result};
use std::ffi::{OsStr, OsString};
use std::fs::FileType;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const LIST: &str = ".worktreeinclude";
/// In git's folder of the tree: what was copied. Each entry is the object name of the contents, a blank, the path and a
/// zero byte.
const COPIED: &str = "ostler.copied";

/// Copies these files from one tree into another. Returns how many.
pub fn copy(git: &Git, from: &Path, to: &Path) -> Result<usize> {
    if !from.join(LIST).is_file() {
        return Ok(0);
    }
    let list = ["ls-files", "-z", "--others", "--ignored", "--exclude-from", LIST];
    let named = git.run(from, list)?;
    // A file that is named there and not ignored is not copied: a person has to decide whether to commit it.
    let mut copied = ignored(git, from, &named)?;
    copied.retain(|path| !path.starts_with(FOLDER));
    for path in &copied {
        copy_one(&from.join(path), &to.join(path)).map_err(GitError::io(path))?;
    }
    let mut note = Vec::new();
    for (path, object) in copied.iter().zip(objects_of(git, to, &copied)?) {
        if let Some(object) = object {
            note.extend_from_slice(&[object.as_bytes(), b" ", path.as_os_str().as_bytes(), b"\0"].concat());
        }
    }
    let file = own_folder(git, to)?.join(COPIED);
    std::fs::write(&file, note).map_err(GitError::io(file))?;
    Ok(copied.len())
}

/// The files in a tree that are unchanged since they were copied into it.
pub(crate) fn unchanged(git: &Git, tree: &Path) -> Result<Vec<PathBuf>> {
    let file = own_folder(git, tree)?.join(COPIED);
    let list = match std::fs::read(&file) {
        Ok(list) => list,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(GitError::io(file)(error)),
    };
    let entries = fields(&list).filter_map(|entry| {
        let mut parts = entry.splitn(2, |&byte| byte == b' ');
        Some((parts.next()?.to_vec(), PathBuf::from(OsStr::from_bytes(parts.next()?))))
    });
    let (objects, paths): (Vec<Vec<u8>>, Vec<PathBuf>) = entries.unzip();
    let now = objects_of(git, tree, &paths)?;
    let same = paths.into_iter().zip(objects.into_iter().zip(now));
    Ok(same
        .filter(|(_, (then, now))| now.as_ref().is_some_and(|now| now.as_bytes() == then))
        .map(|(path, _)| path)
        .collect())
}

/// Which of these names, each followed by a zero byte, are ignored in a tree.
fn ignored(git: &Git, tree: &Path, names: &[u8]) -> Result<Vec<PathBuf>> {
    let check = ["check-ignore", "-z", "--stdin"];
    let output = git.feed(tree, check, names)?;
    let ignored = match output.status.code() {
        Some(1) => return Ok(Vec::new()),
        _ => done(&check.map(Into::into), output)?,
    };
    Ok(fields(&ignored).map(|name| PathBuf::from(OsStr::from_bytes(name))).collect())
}

/// Everything in a tree that is or may be work, without what was only copied into it: for a command of git that takes
/// paths. Copies that are ignored there are not named: git skips them anyway, and fails when such a path is named.
pub(crate) fn all_work(git: &Git, tree: &Path) -> Result<Vec<OsString>> {
    let copies = unchanged(git, tree)?;
    let names: Vec<u8> = copies.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat()).collect();
    let ignored = if copies.is_empty() { Vec::new() } else { ignored(git, tree, &names)? };
    let except = |path: &PathBuf| {
        let mut word = OsString::from(":(top,exclude,literal)");
        word.push(path);
        word
    };
    let copies = copies.iter().filter(|path| !ignored.contains(path)).map(except);
    Ok(["--", "."].into_iter().map(OsString::from).chain(copies).collect())
}

/// The object names of the contents of files and links; `None`: the path is neither, or does not exist.
fn objects_of(git: &Git, tree: &Path, paths: &[PathBuf]) -> Result<Vec<Option<String>>> {
    let hash = |words: &[&str], input: &[u8]| -> Result<Vec<String>> {
        let words = [&["hash-object", "--no-filters"], words].concat();
        let output = git.feed(tree, &words, input)?;
        let printed = done(&words.iter().map(OsString::from).collect::<Vec<_>>(), output)?;
        Ok(String::from_utf8_lossy(&printed).lines().map(str::to_owned).collect())
    };
    let mut found = vec![None; paths.len()];
    // One process for nearly all of them, because there may be thousands.
    let (mut asked, mut names) = (Vec::new(), Vec::new());
    for (place, path) in paths.iter().enumerate() {
        let full = tree.join(path);
        let Ok(stat) = full.symlink_metadata() else { continue };
        let name = path.as_os_str().as_bytes();
        if stat.is_file() && !name.contains(&b'\n') {
            asked.push(place);
            names.extend_from_slice(b"./");
            names.extend_from_slice(name);
            names.push(b'\n');
        } else if stat.is_file() || stat.is_symlink() {
            let bytes = match stat.is_file() {
                true => std::fs::read(&full),
                false => std::fs::read_link(&full).map(|target| target.as_os_str().as_bytes().to_vec()),
            };
            found[place] = hash(&["--stdin"], &bytes.map_err(GitError::io(full))?)?.into_iter().next();
        }
    }
    if !asked.is_empty() {
        for (place, object) in asked.into_iter().zip(hash(&["--stdin-paths"], &names)?) {
            found[place] = Some(object);
        }
    }
    Ok(found)
}

/// A copy shares its blocks with the original where the file system can do that.
fn copy_one(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let kind: FileType = from.symlink_metadata()?.file_type();
    if kind.is_symlink() {
        std::os::unix::fs::symlink(std::fs::read_link(from)?, to)
    } else if kind.is_file() {
        std::fs::copy(from, to).map(drop)
    } else {
        Ok(())
    }
}
