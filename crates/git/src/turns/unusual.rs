//! What git does not keep of a working tree: the permissions of files, except the executable bit, and folders without a
//! file. A key that only its owner may read must not be restored as readable for everybody.
//!
//! It is stored as the message of a snapshot's commit, one line each. Files with the most frequent permissions are not
//! listed, and when there are very many others, only private files are listed.

use super::compare::FileKind;
use super::known::Seen;
use super::store::TurnStore;
use crate::Result;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// At most this many files, and this many folders, are listed.
const LISTED: usize = 1000;

/// The permission bits of everybody but the owner.
const OF_OTHERS: u32 = 0o077;

/// What was seen, before it is known which permissions are usual.
#[derive(Debug, Default)]
pub(super) struct Noted {
    /// Places of files in what was seen, with their permissions.
    pub files: Vec<(usize, u32)>,
    pub empty_folders: Vec<Vec<u8>>,
}

impl Noted {
    /// The message of a commit.
    pub fn text(&self, seen: &[Seen]) -> String {
        let usual = [false, true]
            .map(|runs| most(self.files.iter().map(|(_, mode)| *mode).filter(|mode| is_run(*mode) == runs)));
        let mut text = String::new();
        for mode in usual.iter().flatten() {
            let _ = writeln!(text, "usual {mode:03o}");
        }
        let unusual = || self.files.iter().filter(|(_, mode)| usual[usize::from(is_run(*mode))] != Some(*mode));
        let many = unusual().nth(LISTED).is_some();
        for (place, mode) in unusual().filter(|(_, mode)| !many || mode & OF_OTHERS == 0).take(LISTED) {
            let path = seen.get(*place).map_or(&[][..], |seen| &seen.path);
            let _ = writeln!(text, "mode {mode:03o} {}", quoted(path));
        }
        for folder in self.empty_folders.iter().take(LISTED) {
            let _ = writeln!(text, "empty {}", quoted(folder));
        }
        text
    }
}

fn is_run(mode: u32) -> bool {
    mode & 0o100 != 0
}

/// The most frequent one.
fn most(modes: impl Iterator<Item = u32>) -> Option<u32> {
    let mut counts: HashMap<u32, usize> = HashMap::new();
    for mode in modes {
        *counts.entry(mode).or_default() += 1;
    }
    counts.into_iter().max_by_key(|&(mode, count)| (count, mode)).map(|(mode, _)| mode)
}

/// What the message of a snapshot says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Unusual {
    usual: Vec<u32>,
    modes: HashMap<Vec<u8>, u32>,
    pub empty_folders: HashSet<Vec<u8>>,
}

impl Unusual {
    /// A line that cannot be read is from another version, and is ignored.
    fn of(message: &str) -> Unusual {
        let mut found = Unusual::default();
        for line in message.lines() {
            match line.splitn(3, ' ').collect::<Vec<_>>()[..] {
                ["usual", mode] => found.usual.extend(number(mode)),
                ["mode", mode, path] => found.modes.extend(unquoted(path).zip(number(mode))),
                ["empty", ..] => found.empty_folders.extend(line.strip_prefix("empty ").and_then(unquoted)),
                _ => {}
            }
        }
        found
    }

    /// The permissions that a file had. `None`: the snapshot does not say.
    pub fn mode(&self, path: &[u8], kind: FileKind) -> Option<u32> {
        let runs = kind == FileKind::Program;
        let usual = || self.usual.iter().find(|mode| is_run(**mode) == runs);
        self.modes.get(path).or_else(usual).copied().filter(|mode| is_run(*mode) == runs)
    }
}

fn number(octal: &str) -> Option<u32> {
    u32::from_str_radix(octal, 8).ok().filter(|mode| *mode <= 0o777)
}

impl TurnStore {
    pub(super) fn unusual(&self, commit: &str) -> Result<Unusual> {
        let bytes = self.git.run(&self.folder, ["cat-file", "commit", commit])?;
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.split_once("\n\n").map(|(_, message)| Unusual::of(message)).unwrap_or_default())
    }
}

/// A path as fast-import reads it: one word of printable characters.
pub(super) fn quoted(path: &[u8]) -> String {
    let mut quoted = String::from('"');
    for &byte in path {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'~' => quoted.push(char::from(byte)),
            _ => {
                let _ = write!(quoted, "\\{byte:03o}");
            }
        }
    }
    quoted.push('"');
    quoted
}

fn unquoted(text: &str) -> Option<Vec<u8>> {
    let mut rest = text.strip_prefix('"')?.strip_suffix('"')?.bytes();
    let mut path = Vec::with_capacity(text.len());
    while let Some(byte) = rest.next() {
        path.push(match (byte, byte == b'\\') {
            (byte, false) => byte,
            (_, true) => match rest.next()? {
                plain @ (b'"' | b'\\') => plain,
                digit => {
                    let digits = [digit, rest.next()?, rest.next()?];
                    u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 8).ok()?
                }
            },
        });
    }
    Some(path)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::known::Tag;
    use super::*;

    fn noted(files: &[(&[u8], u32)], empty: &[&[u8]]) -> String {
        let seen: Vec<Seen> =
            files.iter().map(|(path, _)| Seen { path: path.to_vec(), tag: Tag::Tracked, mark: 0 }).collect();
        let files = files.iter().enumerate().map(|(place, (_, mode))| (place, *mode)).collect();
        Noted { files, empty_folders: empty.iter().map(|path| path.to_vec()).collect() }.text(&seen)
    }

    #[test]
    fn only_what_is_unusual_is_listed_and_read_as_it_was_written() {
        let odd = b"odd \"name\\\n\xff \xc3\xa9";
        let text = noted(
            &[(b"a", 0o644), (b"b", 0o644), (odd, 0o600), (b"run", 0o755), (b"private run", 0o700), (b"run2", 0o755)],
            &[b"empty folder", odd],
        );
        assert_eq!(text.lines().count(), 6, "{text}");
        assert!(text.is_ascii());
        let read = Unusual::of(&text);
        assert_eq!(read.mode(odd, FileKind::File), Some(0o600));
        assert_eq!(read.mode(b"a", FileKind::File), Some(0o644));
        assert_eq!(read.mode(b"private run", FileKind::Program), Some(0o700));
        assert_eq!(read.mode(b"another", FileKind::Program), Some(0o755));
        assert!(read.empty_folders.contains(&odd[..]) && read.empty_folders.contains(&b"empty folder"[..]));
        assert_eq!(Unusual::of("").mode(b"a", FileKind::File), None);
    }

    #[test]
    fn of_very_many_only_private_ones_are_listed() {
        let names: Vec<String> = (0..5000).map(|number| format!("file{number}")).collect();
        let mode = |number: usize| match number {
            7 => 0o600,
            number if number % 2 == 0 => 0o664,
            number if number % 5 == 1 => 0o640,
            _ => 0o644,
        };
        let files: Vec<(&[u8], u32)> =
            names.iter().enumerate().map(|(number, name)| (name.as_bytes(), mode(number))).collect();
        let text = noted(&files, &[]);
        assert_eq!(text, "usual 664\nmode 600 \"file7\"\n");
    }

    #[test]
    fn damaged_lines_say_nothing() {
        let text = "mode 999 \"a\"\nmode 600 a\nmode 600 \"a\\9\"\nempty \"\\\nusual\nnew 1 2\n";
        assert_eq!(Unusual::of(text), Unusual::default());
        assert_eq!(unquoted("\"a\\\\\\\"\\011\""), Some(b"a\\\"\t".to_vec()));
        assert_eq!(unquoted(&quoted(b"\x00\x7f")).unwrap(), b"\x00\x7f");
    }
}
