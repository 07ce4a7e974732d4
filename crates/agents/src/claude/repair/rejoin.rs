//! Joins a transcript of claude with an earlier copy of itself.
//!
//! When the file of a running claude is deleted, cut or replaced, claude continues in a new file. Its first message has
//! a parent that is only in the copy: resumed from that file, the model knows nothing of what was said before. The
//! messages of the copy come first, then those that only the transcript has. A transcript without parents outside
//! itself is not changed: a person may have gone back to an earlier state of it on purpose.

use ostler_transcript::fields::{Name, number};
use ostler_transcript::lines::Lines;
use ostler_transcript::record_lines::{self, Records};
use ostler_transcript::{Edits, Rejoined};
use serde::Deserialize;
use std::collections::HashSet;
use std::io::{self, Read, Seek, SeekFrom};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Link {
    #[serde(default)]
    uuid: Name,
    #[serde(default)]
    parent_uuid: Name,
}

#[derive(Default)]
struct Links {
    own: HashSet<Name>,
    parents: HashSet<Name>,
}

impl Records for Links {
    const OPENINGS: &'static [&'static str] = &[r#"{"parentUuid":"#, r#"{"type":"#, r#"{"uuid":"#];

    fn take(&mut self, _start: u64, bytes: &[u8]) -> bool {
        let Ok(Link { uuid, parent_uuid }) = serde_json::from_slice(bytes) else {
            return false;
        };
        self.own.extend(Some(uuid).filter(|name| name.is_some()));
        self.parents.extend(Some(parent_uuid).filter(|name| name.is_some()));
        true
    }
}

/// How to join a transcript with a copy, when it has parents that only the copy has.
///
/// # Errors
/// When one of the two cannot be read.
pub fn rejoin<R: Read + Seek>(mut transcript: R, copy: impl Read) -> io::Result<Option<Rejoined>> {
    transcript.seek(SeekFrom::Start(0))?;
    let mut links = Links::default();
    record_lines::read(&mut transcript, &mut links)?;
    let (mut old, mut notes, mut whole) = (HashSet::new(), HashSet::new(), 0);
    let mut lines = Lines::new(copy);
    while let Some(line) = lines.next()?.filter(|line| line.ended) {
        whole = line.end;
        let Some(bytes) = line.bytes else { continue };
        match uuid(bytes) {
            Some(name) => _ = old.insert(name),
            None => _ = notes.insert(number(bytes)),
        }
    }
    if !links.parents.iter().any(|parent| !links.own.contains(parent) && old.contains(parent)) {
        return Ok(None);
    }
    let messages = old.iter().filter(|name| !links.own.contains(name)).count();
    let mut edits = Edits::default();
    transcript.seek(SeekFrom::Start(0))?;
    let mut lines = Lines::new(&mut transcript);
    while let Some(line) = lines.next()? {
        let Some(bytes) = line.bytes else { continue };
        let stands_in_copy = match uuid(bytes) {
            Some(name) => old.contains(&name),
            None => notes.contains(&number(bytes)),
        };
        if stands_in_copy {
            edits.cut(line.start, line.end);
        }
    }
    Ok(Some(Rejoined { messages, whole, edits }))
}

fn uuid(line: &[u8]) -> Option<Name> {
    serde_json::from_slice::<Link>(line).ok().map(|link| link.uuid).filter(|name| name.is_some())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn line(uuid: &str, parent: &str) -> String {
        format!("{{\"parentUuid\":\"{parent}\",\"type\":\"user\",\"uuid\":\"{uuid}\"}}\n")
    }

    fn joined(transcript: &str, copy: &str) -> Option<(usize, String)> {
        let found = rejoin(Cursor::new(transcript), copy.as_bytes()).unwrap()?;
        let mut out = Vec::new();
        found.write(Cursor::new(transcript), copy.as_bytes(), &mut out).unwrap();
        Some((found.messages, String::from_utf8(out).unwrap()))
    }

    #[test]
    fn messages_with_a_parent_in_the_copy_follow_it_without_duplicates() {
        let note = "{\"type\":\"mode\"}\n";
        let copy = [&line("a", ""), note, &line("b", "a"), "{\"torn"].concat();
        let replaced = [&line("c", "b"), note].concat();
        assert_eq!(
            joined(&replaced, &copy),
            Some((2, [&line("a", ""), note, &line("b", "a"), &line("c", "b")].concat()))
        );
        let cut_and_gone_on = [line("a", ""), line("c", "b")].concat();
        let whole = [&line("a", ""), note, &line("b", "a"), &line("c", "b")].concat();
        assert_eq!(joined(&cut_and_gone_on, &copy), Some((1, whole)));
    }

    #[test]
    fn what_hangs_on_nothing_outside_itself_is_left_alone() {
        let copy = [line("a", ""), line("b", "a")].concat();
        assert_eq!(joined(&line("a", ""), &copy), None, "an earlier state");
        assert_eq!(joined(&line("x", "y"), &copy), None, "another conversation");
        assert_eq!(joined(&copy, &copy), None);
    }

    #[test]
    fn a_message_behind_a_torn_one_hangs_too() {
        let copy = [line("a", ""), line("b", "a")].concat();
        let transcript = format!("{{\"parentUuid\":\"a\",\"ty{}", line("c", "b"));
        assert_eq!(joined(&transcript, &copy).unwrap(), (2, format!("{copy}{transcript}")));
    }
}
