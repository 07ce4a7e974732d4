//! The whole lines of a file, newest first, in bounded memory: what is looked for in a transcript is at its end, and
//! the transcript may be longer than memory. A torn last line does not count, and a line that is too long to be read is
//! skipped.

use memchr::memrchr;
use ostler_core::MESSAGE_LIMIT;
use std::fs::File;
use std::io;
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::FileExt;

/// How much is read at once.
const PIECE: usize = 256 * 1024;

/// The longest line that is read: that of the longest message, with room for what JSON adds to it.
const LINE_LIMIT: u64 = 2 * MESSAGE_LIMIT as u64 + (1 << 20);

/// Calls `each` with every whole line from position `from` on, without its newline, the last one first, until `each`
/// breaks. A file that is shorter than `from` was written anew, and all of it is read.
pub fn lines(file: &File, from: u64, each: impl FnMut(&[u8]) -> ControlFlow<()>) -> io::Result<()> {
    let size = file.metadata()?.len();
    let from = if from > size { 0 } else { from };
    match lines_in(file, from..size, PIECE, LINE_LIMIT, each) {
        // The file was shortened: what we were about to read is not in it.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
        other => other,
    }
}

/// Where the line begins that this position is in: after the last newline before it.
pub fn line_start(file: &File, position: u64) -> io::Result<u64> {
    let mut end = position.min(file.metadata()?.len());
    let mut buffer = vec![0; PIECE];
    while end > 0 {
        let start = end.saturating_sub(PIECE as u64);
        let piece = &mut buffer[..usize::try_from(end - start).map_err(io::Error::other)?];
        file.read_exact_at(piece, start)?;
        if let Some(newline) = memrchr(b'\n', piece) {
            return Ok(start + newline as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

fn lines_in(
    file: &File,
    range: Range<u64>,
    piece: usize,
    limit: u64,
    mut each: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut buffer = vec![0; piece];
    // Where the piece in the buffer begins, and where the line ends that is being looked at; `None` before the last
    // newline is found.
    let mut start = range.end;
    let mut line_end: Option<u64> = None;
    let mut filled = 0;
    while start > range.start {
        let count = usize::try_from(start - range.start).unwrap_or(usize::MAX).min(piece);
        start -= count as u64;
        filled = count;
        let bytes = &mut buffer[..count];
        file.read_exact_at(bytes, start)?;
        let mut rest = count;
        while let Some(newline) = memrchr(b'\n', &bytes[..rest]) {
            let line_start = start + newline as u64 + 1;
            if let Some(end) = line_end.filter(|end| end - line_start <= limit)
                && with_line(file, &bytes[newline + 1..], line_start, end, &mut each)?.is_break()
            {
                return Ok(());
            }
            line_end = Some(line_start - 1);
            rest = newline;
        }
    }
    match line_end {
        Some(end) if end - range.start <= limit => {
            with_line(file, &buffer[..filled], range.start, end, &mut each).map(|_| ())
        }
        Some(_) | None => Ok(()),
    }
}

/// A line that ends outside of the piece that its beginning is in is read by itself.
fn with_line<T>(file: &File, piece: &[u8], start: u64, end: u64, mut each: impl FnMut(&[u8]) -> T) -> io::Result<T> {
    // The length is within the limit, so it fits in memory.
    let length = usize::try_from(end - start).map_err(io::Error::other)?;
    if let Some(line) = piece.get(..length) {
        return Ok(each(line));
    }
    let mut line = vec![0; length];
    file.read_exact_at(&mut line, start)?;
    Ok(each(&line))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: u64 = 12;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn every_whole_line_of_a_readable_length_comes_once_and_newest_first(text in prop::collection::vec(prop_oneof![1 => Just(b'\n'), 5 => any::<u8>()], 0..120), from in 0..140usize, piece in 1..40usize) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("transcript");
            std::fs::write(&path, &text).unwrap();
            let mut found = Vec::new();
            let file = File::open(&path).unwrap();
            let from = from.min(text.len());
            lines_in(&file, from as u64..text.len() as u64, piece, LIMIT, |line| {
                found.push(line.to_vec());
                ControlFlow::Continue(())
            }).unwrap();
            let whole = text[from..].split_inclusive(|&byte| byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"));
            let mut wanted: Vec<Vec<u8>> = whole.filter(|line| line.len() as u64 <= LIMIT).map(<[u8]>::to_vec).collect();
            wanted.reverse();
            prop_assert_eq!(found, wanted);
        }
    }
}
