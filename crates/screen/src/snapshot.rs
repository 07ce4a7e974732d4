//! A screen as bytes in a file: one line that names the format, then JSON.
//!
//! The first line names the format, its version and a checksum of the rest. A file that was cut, changed, or written by
//! another version is recognised and not used: the reader falls back to the output itself, from which the screen can
//! always be made again.

use crate::parser::Parser;
use crate::terminal::Terminal;
use serde::{Deserialize, Serialize};

const NAME: &str = "ostler-screen";
/// Increased with every change after which older snapshots would be read wrongly.
const VERSION: u32 = 1;

/// Why bytes were refused as a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DamagedSnapshot {
    #[error("not a screen snapshot")]
    NotASnapshot,
    #[error("screen snapshot of version {0}, not {VERSION}")]
    OtherVersion(u32),
    #[error("screen snapshot is cut off or changed")]
    Changed,
}

#[derive(Serialize)]
struct Record<'a> {
    terminal: &'a Terminal,
    parser: &'a Parser,
}

#[derive(Deserialize)]
struct OwnedRecord {
    terminal: Terminal,
    parser: Parser,
}

pub(crate) fn write(terminal: &Terminal, parser: &Parser) -> Vec<u8> {
    // Every screen has a JSON form. If one had none, the empty body would be refused and the output replayed.
    let body = serde_json::to_vec(&Record { terminal, parser }).unwrap_or_default();
    seal(NAME, &body)
}

pub(crate) fn read(bytes: &[u8]) -> Result<(Terminal, Parser), DamagedSnapshot> {
    let body = unseal(NAME, bytes)?;
    let record: OwnedRecord = serde_json::from_slice(body).map_err(|_| DamagedSnapshot::Changed)?;
    if record.terminal.is_sound() { Ok((record.terminal, record.parser)) } else { Err(DamagedSnapshot::Changed) }
}

/// Puts a first line before `body` with its format, version and checksum.
pub(crate) fn seal(name: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{name} {VERSION} {}\n", checksum_of(body)).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// The body after such a line, if it is complete.
pub(crate) fn unseal<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a [u8], DamagedSnapshot> {
    let line_end = bytes.iter().take(100).position(|&byte| byte == b'\n').ok_or(DamagedSnapshot::NotASnapshot)?;
    let (line, body) = (&bytes[..line_end], &bytes[line_end + 1..]);
    let line = str::from_utf8(line).map_err(|_| DamagedSnapshot::NotASnapshot)?;
    let words: Vec<&str> = line.split(' ').collect();
    let [found, version, checksum] = words[..] else { return Err(DamagedSnapshot::NotASnapshot) };
    match version.parse() {
        _ if found != name => return Err(DamagedSnapshot::NotASnapshot),
        Ok(VERSION) => {}
        Ok(other) => return Err(DamagedSnapshot::OtherVersion(other)),
        Err(_) => return Err(DamagedSnapshot::NotASnapshot),
    }
    if checksum == checksum_of(body) { Ok(body) } else { Err(DamagedSnapshot::Changed) }
}

/// FNV-1a, against accidental damage. A forged snapshot gives a wrong screen, but no panic.
fn checksum_of(body: &[u8]) -> String {
    let sum = body
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{sum:016x}")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::size::Size;
    use proptest::prelude::*;
    use serde_json::Value;

    fn busy() -> (Terminal, Parser) {
        let mut terminal = Terminal::new(Size { rows: 4, columns: 12 });
        let mut parser = Parser::default();
        parser.feed(
            "\x1b]2;t\x07shell\x1b[?1049h\x1b[2;3r\x1b[44m表e\u{301}\x1b7\x1b[>5u\x1b[?1006h\x1b[38;5".as_bytes(),
            &mut terminal,
        );
        (terminal, parser)
    }

    #[test]
    fn a_snapshot_reads_back_as_what_it_was_taken_of() {
        let (terminal, parser) = busy();
        assert_eq!(read(&write(&terminal, &parser)), Ok((terminal, parser)));
    }

    #[test]
    fn foreign_processes_and_other_versions_are_told_apart() {
        assert_eq!(read(b""), Err(DamagedSnapshot::NotASnapshot));
        assert_eq!(read(b"{}"), Err(DamagedSnapshot::NotASnapshot));
        assert_eq!(read(b"\x7fELF\n"), Err(DamagedSnapshot::NotASnapshot));
        assert_eq!(read(b"ostler-screen 2 0\n{}"), Err(DamagedSnapshot::OtherVersion(2)));
        assert_eq!(read(&seal(NAME, b"")), Err(DamagedSnapshot::Changed));
    }

    #[test]
    fn any_cut_and_any_changed_byte_is_noticed() {
        let (terminal, parser) = busy();
        let whole = write(&terminal, &parser);
        for cut in 0..whole.len() {
            assert!(read(&whole[..cut]).is_err(), "cut at {cut}");
            let mut changed = whole.clone();
            changed[cut] ^= 4;
            assert!(read(&changed).is_err(), "changed at {cut}");
        }
    }

    /// Everything in a value that contains no other value, in order.
    fn leaves<'a>(value: &'a mut Value, found: &mut Vec<&'a mut Value>) {
        let is_leaf = !value.is_object() && value.as_array().is_none_or(Vec::is_empty);
        match value {
            leaf if is_leaf => found.push(leaf),
            Value::Array(items) => items.iter_mut().for_each(|item| leaves(item, found)),
            Value::Object(fields) => fields.values_mut().for_each(|field| leaves(field, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    proptest! {
        #[test]
        fn a_forged_snapshot_is_refused_or_harmless(
            which in any::<prop::sample::Index>(),
            forged in prop::sample::select(vec!["0", "1", "2", "11", "12", "255", "65535", "4294967296", "-1", "null", "[]", "\"\\u001b[2J\"", "true"]),
            further in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let (terminal, parser) = busy();
            let mut body = serde_json::to_value(Record { terminal: &terminal, parser: &parser }).unwrap();
            let mut places = Vec::new();
            leaves(&mut body, &mut places);
            let place = which.index(places.len());
            *places[place] = serde_json::from_str(forged).unwrap();
            if let Ok((mut terminal, mut parser)) = read(&seal(NAME, &serde_json::to_vec(&body).unwrap())) {
                parser.feed(&further, &mut terminal);
                parser.feed(b"\x1b[?1049l\x1b8\x1b[T\x1b[2Lx\ty\x1b[99b", &mut terminal);
                terminal.resize(Size { rows: 3, columns: 5 });
                prop_assert!(terminal.is_sound());
                prop_assert!(!terminal.redraw().is_empty());
            }
        }
    }
}
