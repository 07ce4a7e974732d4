//! What every transcript has in common: lines, each of them one record. Finds lines that are not records.

use crate::edits::Edits;
use crate::finding::Finding;
use crate::lines::Lines;
use crate::salvage;
use std::io::{self, Read};

/// Takes the records of a file, in order.
pub trait Records {
    /// How a record of this agent can begin.
    const OPENINGS: &'static [&'static str];

    /// Takes what may be a record that begins at this position; returns `false` if it is not a record.
    fn take(&mut self, start: u64, bytes: &[u8]) -> bool;

    /// Called with a line that is not a record.
    fn broken(&mut self, start: u64, bytes: &[u8]) {
        let _ = (start, bytes);
    }
}

/// What is wrong with the lines of a file.
#[derive(Debug, Default)]
pub struct Surface {
    pub findings: Vec<Finding>,
    /// Edits that must come after all others at the same position: they end lines.
    pub edits: Edits,
    /// A line was not parsed, or it had bytes that are not text.
    pub unseen: bool,
    pub length: u64,
}

impl Surface {
    /// Bytes that are not text are replaced as a reader would replace them. The connections between records are
    /// examined in a later round, in the file without such bytes.
    fn replace_bad_bytes(&mut self, start: u64, bytes: &[u8]) {
        let mut at = start;
        for chunk in bytes.utf8_chunks() {
            let from = at + chunk.valid().len() as u64;
            at = from + chunk.invalid().len() as u64;
            if !chunk.invalid().is_empty() {
                self.edits.replace(from, at, "\u{fffd}");
            }
        }
    }
}

/// Reads a file once.
///
/// # Errors
/// When it cannot be read.
pub fn read<T: Records>(source: impl Read, records: &mut T) -> io::Result<Surface> {
    let mut surface = Surface::default();
    let mut lines = Lines::new(source);
    let mut number = 0;
    let mut any = false;
    while let Some(line) = lines.next()? {
        number += 1;
        surface.length = line.end;
        let Some(bytes) = line.bytes else {
            surface.findings.push(Finding::TooLong { line: number });
            (surface.unseen, any) = (true, true);
            continue;
        };
        if bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        any = true;
        if records.take(line.start, bytes) {
            if std::str::from_utf8(bytes).is_err() {
                surface.findings.push(Finding::BadBytes { line: number });
                surface.replace_bad_bytes(line.start, bytes);
                surface.unseen = true;
            }
            if !line.ended {
                surface.findings.push(Finding::Unended);
                surface.edits.insert(line.end, "\n");
            }
            continue;
        }
        records.broken(line.start, bytes);
        let mut lost = bytes.trim_ascii().len();
        let mut kept_to = line.start;
        let mut count = 0;
        for range in salvage::records(bytes, T::OPENINGS) {
            let (start, end) = (line.start + range.start as u64, line.start + range.end as u64);
            if std::str::from_utf8(&bytes[range.clone()]).is_ok() && records.take(start, &bytes[range.clone()]) {
                let unsaved_on_exit = if count == 0 { "" } else { "\n" };
                surface.edits.replace(kept_to, start, unsaved_on_exit);
                kept_to = end;
                count += 1;
                lost = lost.saturating_sub(range.len());
            }
        }
        let lost = lost as u64;
        surface.findings.extend(match (lost, line.ended) {
            (0, _) => None,
            (bytes, true) => Some(Finding::Broken { line: number, bytes }),
            (bytes, false) => Some(Finding::TornTail { bytes }),
        });
        if count == 0 {
            surface.edits.cut(line.start, line.end);
        } else {
            surface.edits.replace(kept_to, line.end, "\n");
            surface.findings.push(match lost {
                0 => Finding::Fused { line: number, records: count },
                _ => Finding::Freed { line: number, records: count },
            });
        }
    }
    if !any {
        surface.findings.push(Finding::Empty);
    }
    Ok(surface)
}
