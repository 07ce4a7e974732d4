//! The entries that were added to a journal since it was last read. An entry is passed on as it was written, with the
//! session's id in front, so that fields of a newer version are kept. An incomplete line is left for the next time.

use crate::notice::Notice;
use jiff::Timestamp;
use ostler_core::id::SessionId;
use ostler_sys::dir::Dir;
use rustix::fs::OFlags;
use serde::Deserialize;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

/// One event: an entry of a journal, or something about a session that is in no journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When it happened.
    pub at: Timestamp,
    /// A JSON object: the session's id, and the entry as it was written.
    pub text: String,
}

/// The one field of an entry that we look at.
#[derive(Deserialize)]
struct Head {
    at: Timestamp,
}

/// The entries of this session from `position` on; `position` is moved behind the last of them. A session without a
/// journal has none. Entries from before `since` are left out.
pub fn read(
    id: SessionId,
    folder: &Path,
    position: &mut u64,
    since: Option<Timestamp>,
    tell: &mut dyn FnMut(Notice),
) -> Vec<Line> {
    match bytes_from(folder, *position) {
        Ok(bytes) => {
            let mut lines = parse(id, &bytes, position, tell);
            lines.retain(|line| since.is_none_or(|since| line.at >= since));
            lines
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Vec::new(),
        Err(error) => {
            tell(Notice::JournalUnreadable { id, error: error.to_string() });
            Vec::new()
        }
    }
}

fn bytes_from(folder: &Path, position: u64) -> io::Result<Vec<u8>> {
    let mut file = File::from(Dir::open(folder)?.file("journal.jsonl", OFlags::RDONLY)?);
    file.seek(SeekFrom::Start(position))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn parse(id: SessionId, bytes: &[u8], position: &mut u64, tell: &mut dyn FnMut(Notice)) -> Vec<Line> {
    let mut lines = Vec::new();
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let Some(line) = line.strip_suffix(b"\n") else {
            break;
        };
        *position += line.len() as u64 + 1;
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match serde_json::from_slice::<Head>(line).ok().zip(std::str::from_utf8(line).ok()) {
            Some((head, text)) => lines.push(Line { at: head.at, text: with_session(id, text) }),
            // A line that was torn by a crash, and ended by the next writer.
            None => tell(Notice::LineUnreadable { id }),
        }
    }
    lines
}

/// The object with the session's id as its first field. The object is not empty: it has at least the time.
fn with_session(id: SessionId, object: &str) -> String {
    let fields = object.trim().strip_prefix('{').unwrap_or_default();
    let mut text = format!(r#"{{"session":"{id}","#);
    for character in fields.chars() {
        // JSON itself does not allow the control characters below U+0020 in strings; some terminals obey these as well.
        if ('\u{7f}'..='\u{9f}').contains(&character) {
            text.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            text.push(character);
        }
    }
    text
}

/// All lines in the order of time. The clock may have been set back while a session ran, so its own order is kept.
pub fn merge(sessions: Vec<Vec<Line>>) -> Vec<Line> {
    let mut all: Vec<(Timestamp, Line)> = Vec::new();
    for lines in sessions {
        let mut latest = Timestamp::MIN;
        for line in lines {
            latest = latest.max(line.at);
            all.push((latest, line));
        }
    }
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, line)| line).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn id() -> SessionId {
        SessionId::from_random(1)
    }

    fn entry(second: u32, what: &str) -> String {
        format!("{{\"at\":\"2026-01-01T00:00:{second:02}Z\",\"ms\":1,\"run\":1,\"what\":\"{what}\"}}\n")
    }

    #[test]
    fn a_torn_line_is_waited_for_and_never_printed_half() {
        let whole = entry(1, "empty") + &entry(2, "teleported");
        for cut in 0..whole.len() {
            let mut position = 0;
            let first = parse(id(), &whole.as_bytes()[..cut], &mut position, &mut |_| {});
            let rest = parse(id(), &whole.as_bytes()[usize::try_from(position).unwrap()..], &mut position, &mut |_| {});
            let texts: Vec<String> = first.into_iter().chain(rest).map(|line| line.text).collect();
            assert_eq!(texts.len(), 2, "cut at {cut}");
            assert!(texts[0].contains("\"empty\"") && texts[1].contains("\"teleported\""));
            assert_eq!(position, whole.len() as u64);
        }
    }

    #[test]
    fn what_a_newer_version_wrote_is_passed_on_whole() {
        let line = "{\"at\":\"2026-01-01T00:00:00Z\",\"what\":\"teleported\",\"to\":{\"x\":[1,2]}}\n";
        let found = parse(id(), line.as_bytes(), &mut 0, &mut |_| {});
        let value: serde_json::Value = serde_json::from_str(&found[0].text).unwrap();
        assert_eq!(value["session"], id().as_str());
        assert_eq!(value["to"]["x"][1], 2);
    }

    #[test]
    fn garbage_is_passed_over_and_no_control_character_gets_through() {
        let text = format!("garbage\n[1]\n{}", entry(1, "alarm\u{9b}2J\u{7f}"));
        let found = parse(id(), text.as_bytes(), &mut 0, &mut |_| {});
        assert_eq!(found.len(), 1);
        assert!(found[0].text.chars().all(|c| !c.is_control()), "{}", found[0].text);
        let value: serde_json::Value = serde_json::from_str(&found[0].text).unwrap();
        assert_eq!(value["what"], "alarm\u{9b}2J\u{7f}");
    }

    #[test]
    fn sessions_are_merged_by_time_and_each_keeps_its_own_order() {
        let parsed = |entries: &[(u32, &str)]| {
            let text: String = entries.iter().map(|(second, what)| entry(*second, what)).collect();
            parse(id(), text.as_bytes(), &mut 0, &mut |_| {})
        };
        let merged = merge(vec![parsed(&[(1, "a"), (5, "b"), (2, "c")]), parsed(&[(3, "d"), (9, "e")])]);
        let order: Vec<&str> = merged
            .iter()
            .map(|line| {
                ["a", "b", "c", "d", "e"].into_iter().find(|w| line.text.contains(&format!(":\"{w}\""))).unwrap()
            })
            .collect();
        assert_eq!(order, ["a", "d", "b", "c", "e"]);
    }
}
