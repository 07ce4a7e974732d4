//! Cuts a stream of bytes into lines. A line of many megabytes comes in many reads; each byte is looked at once.

#[derive(Default)]
pub struct Lines {
    held: Vec<u8>,
    /// How many of the held bytes are known to contain no line end.
    searched: usize,
}

impl Lines {
    /// Takes the next bytes of the stream, and passes the lines that are now complete to `each`, without their line
    /// ends.
    pub fn feed<E>(&mut self, bytes: &[u8], mut each: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        self.held.extend_from_slice(bytes);
        let mut start = 0;
        while let Some(length) = self.held[self.searched..].iter().position(|byte| *byte == b'\n') {
            let end = self.searched + length;
            each(&self.held[start..end])?;
            start = end + 1;
            self.searched = start;
        }
        self.held.drain(..start);
        self.searched = self.held.len();
        Ok(())
    }

    /// What follows the last line end, when there is no more input.
    pub fn rest(&mut self) -> Vec<u8> {
        self.searched = 0;
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(lines: &mut Lines, bytes: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        let Ok(()) = lines.feed(bytes, |line| {
            found.push(String::from_utf8_lossy(line).into_owned());
            Ok::<(), std::convert::Infallible>(())
        });
        found
    }

    #[test]
    fn a_line_is_the_same_however_it_is_cut_into_reads() {
        let text = b"first\n\nthird line\nrest";
        for size in 1..=text.len() {
            let mut lines = Lines::default();
            let found: Vec<String> = text.chunks(size).flat_map(|chunk| feed(&mut lines, chunk)).collect();
            assert_eq!(found, ["first", "", "third line"]);
            assert_eq!(lines.rest(), b"rest");
        }
    }

    #[test]
    fn a_long_line_in_small_reads_takes_linear_time() {
        let mut lines = Lines::default();
        let chunk = [b'x'; 4096];
        for _ in 0..4096 {
            assert!(feed(&mut lines, &chunk).is_empty());
        }
        assert_eq!(feed(&mut lines, b"\n")[0].len(), 16 << 20);
    }
}
