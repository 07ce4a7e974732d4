//! The whole lines of a file, newest first, in bounded memory: what is looked for in a transcript stands at its end, and
//! the transcript may be longer than memory. A torn last line is none; one that is too long to be read is passed over.

use memchr::memrchr;
use ostler_agents::lines::LINE_LIMIT;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

/// How much is read at once.
const PIECE: usize = 256 * 1024;

/// Calls `each` with every whole line, without its newline, the last one first, until it has seen enough.
pub fn lines(file: &File, each: impl FnMut(&[u8]) -> ControlFlow<()>) -> io::Result<()> {
    lines_in(file, file.metadata()?.len(), PIECE, LINE_LIMIT, each)
}

fn lines_in(
    file: &File,
    size: u64,
    piece: usize,
    limit: usize,
    mut each: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut before = size;
    let mut buffer = vec![0; piece];
    // The end of a line whose beginning has not been read yet, its pieces in the order of reading: backwards.
    let mut tail: Vec<Vec<u8>> = Vec::new();
    let mut length = 0;
    // What stands behind the last newline is no whole line.
    let mut whole = false;
    while before > 0 {
        let count = usize::try_from(before).unwrap_or(usize::MAX).min(piece);
        before -= count as u64;
        match file.read_exact_at(&mut buffer[..count], before) {
            Ok(()) => {}
            // Somebody has shortened it: what we were about to read is not in it.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
        let mut bytes = &buffer[..count];
        while let Some(newline) = memrchr(b'\n', bytes) {
            let line = &bytes[newline + 1..];
            if whole && length + line.len() <= limit && each(&joined(line, &tail)).is_break() {
                return Ok(());
            }
            whole = true;
            tail.clear();
            length = 0;
            bytes = &bytes[..newline];
        }
        length = length.saturating_add(bytes.len());
        if whole && length <= limit {
            tail.push(bytes.to_vec());
        } else {
            tail.clear();
        }
    }
    if whole && length <= limit {
        // There is no line before it to stop at.
        let _ = each(&joined(&[], &tail));
    }
    Ok(())
}

fn joined<'a>(beginning: &'a [u8], tail: &[Vec<u8>]) -> std::borrow::Cow<'a, [u8]> {
    if tail.is_empty() {
        return beginning.into();
    }
    let mut line = beginning.to_vec();
    tail.iter().rev().for_each(|piece| line.extend_from_slice(piece));
    line.into()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: usize = 12;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn every_whole_line_of_a_readable_length_comes_once_and_newest_first(text in prop::collection::vec(prop_oneof![1 => Just(b'\n'), 5 => any::<u8>()], 0..120), piece in 1..40usize) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("transcript");
            std::fs::write(&path, &text).unwrap();
            let mut found = Vec::new();
            let file = File::open(&path).unwrap();
            lines_in(&file, text.len() as u64, piece, LIMIT, |line| {
                found.push(line.to_vec());
                ControlFlow::Continue(())
            }).unwrap();
            let whole = text.split_inclusive(|&byte| byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"));
            let mut wanted: Vec<Vec<u8>> = whole.filter(|line| line.len() <= LIMIT).map(<[u8]>::to_vec).collect();
            wanted.reverse();
            prop_assert_eq!(found, wanted);
        }
    }
}
