//! Compares a transcript with an earlier copy of itself: what is missing.
//!
//! Agents have been observed to replace transcripts with a stub when they resume. A transcript only grows, so a record
//! of the copy that is no longer in the transcript is lost.

use crate::fields::number;
use crate::lines::Lines;
use std::collections::HashSet;
use std::io::{self, Read};

/// How many records of the copy the transcript does not have. Records that the transcript has twice or in another order
/// are not missing; torn lines of the copy do not count.
///
/// # Errors
/// When one of the two cannot be read.
pub fn missing_from(transcript: impl Read, copy: impl Read) -> io::Result<usize> {
    let mut there = HashSet::new();
    let mut lines = Lines::new(transcript);
    while let Some(line) = lines.next()? {
        there.extend(line.bytes.map(number));
    }
    let mut missing = 0;
    let mut lines = Lines::new(copy);
    while let Some(line) = lines.next()? {
        let lost = |bytes: &[u8]| line.ended && !bytes.is_empty() && !there.contains(&number(bytes));
        missing += usize::from(line.bytes.is_some_and(lost));
    }
    Ok(missing)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_that_grew_misses_nothing_and_a_stub_misses_what_was_cut() {
        let copy: &[u8] = b"{\"a\":1}\n{\"b\":2}\n{\"c\":";
        assert_eq!(missing_from(&b"{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n"[..], copy).unwrap(), 0);
        assert_eq!(missing_from(&b"{\"b\":2}\n{\"a\":1}"[..], copy).unwrap(), 0);
        assert_eq!(missing_from(&b"{\"a\":1}\n"[..], copy).unwrap(), 1);
        assert_eq!(missing_from(&b""[..], copy).unwrap(), 2);
    }
}
