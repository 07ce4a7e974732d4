//! Complete records inside a broken line.
//!
//! When an agent is killed in the middle of a line, the line has no newline, and some agents append their next record
//! to it. Then a torn record and a complete one are on one line, which the agent cannot read. The complete record is
//! found here.

use memchr::memmem;
use serde::de::IgnoredAny;
use std::ops::Range;

/// How many positions of a line are tried. Real lines have a handful; the limit bounds the cost of a malicious line.
const TRIES: usize = 4096;

/// The ranges of the line that are records: objects that begin with one of these openings.
#[must_use]
pub fn records(line: &[u8], openings: &[&str]) -> Vec<Range<usize>> {
    let mut places: Vec<usize> =
        openings.iter().flat_map(|opening| memmem::find_iter(line, opening.as_bytes()).take(TRIES)).collect();
    places.sort_unstable();
    let mut found: Vec<Range<usize>> = Vec::new();
    for place in places.into_iter().take(TRIES) {
        if found.last().is_some_and(|last| place < last.end) {
            continue;
        }
        let mut reader = serde_json::Deserializer::from_slice(&line[place..]).into_iter::<IgnoredAny>();
        if let Some(Ok(_)) = reader.next() {
            let end = place + reader.byte_offset();
            // An object inside a torn record is not a record of its own: a record is followed by another one or by the
            // end of the line.
            if line[end..].is_empty() || line[end] == b'{' {
                found.push(place..end);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<&str> {
        records(line.as_bytes(), &[r#"{"type":"#, r#"{"parentUuid":"#]).into_iter().map(|range| &line[range]).collect()
    }

    #[test]
    fn a_record_behind_a_torn_one_is_found_and_parts_of_the_torn_one_are_not() {
        let whole = r#"{"parentUuid":"a","type":"user","message":{"content":[{"type":"text","text":"hi"}]}}"#;
        let torn = r#"{"parentUuid":"a","message":{"content":[{"type":"text","text":"lost"},{"type":"te"#;
        assert_eq!(texts(&format!("{torn}{whole}")), [whole]);
        assert_eq!(texts(&format!("{whole}{whole}")), [whole, whole]);
        assert_eq!(texts(torn), [""; 0]);
        assert_eq!(texts("no record"), [""; 0]);
    }
}
