//! A screen together with what has scrolled off its top, with colours: as much of it as a terminal would have kept.
//!
//! Unlike [`crate::PlainText`], this drops what the program itself has erased from there, as a terminal does. The rows
//! that scrolled off are kept as rows, in memory that is reused, and become text only on request: most of a long output
//! is never requested.

use crate::buffer::ScrolledOff;
use crate::redraw::write_row;
use crate::screen::Screen;
use crate::size::Size;
use crate::snapshot::{self, DamagedSnapshot};

/// At most this much text is kept, if the lines are long.
const MOST_BYTES: usize = 1 << 20;

pub struct Scrollback {
    screen: Screen,
    most: usize,
    /// What had scrolled off before this was created.
    older: Lines,
}

/// Lines that have scrolled off, the oldest first, with their colours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Each line ends with `\n`, except the last one if it continues in the next row.
    text: Vec<u8>,
}

impl Lines {
    /// All lines, without their line ends.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.text.split_inclusive(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\n").unwrap_or(line))
    }

    /// Drops all but the newest.
    fn keep(&mut self, most: usize) {
        let length = self.text.len();
        // A line begins after the end of another line. After the end of the last line no line begins.
        let begins =
            self.text.iter().enumerate().rev().skip(1).filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let fits = |begin: &usize| length - begin <= MOST_BYTES;
        let first = begins.chain([0]).take(most).take_while(fits).last().unwrap_or(length);
        self.text.drain(..first);
    }
}

impl Scrollback {
    /// An empty screen that keeps the last `most` rows that scroll off.
    pub fn new(size: Size, most: usize) -> Scrollback {
        Scrollback::of(Screen::new(size), Lines::default(), most)
    }

    /// A screen with these lines scrolled off.
    pub fn of(mut screen: Screen, older: Lines, most: usize) -> Scrollback {
        screen.terminal.primary().collect_scrolled_off(Some(ScrolledOff::new(most)));
        Scrollback { screen, most, older }
    }

    /// For a start in the middle of a long output: there the cursor of a program is mostly at the bottom.
    pub fn begin_at_the_bottom(&mut self) {
        self.feed(b"\x1b[9999;1H");
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        self.screen.feed(bytes);
    }

    pub fn resize(&mut self, size: Size) {
        self.screen.resize(size);
    }

    /// What is visible.
    pub fn screen(&self) -> &Screen {
        &self.screen
    }

    /// What has scrolled off.
    pub fn lines(&self) -> Lines {
        let mut all = Lines::default();
        let Some(scrolled_off) = self.screen.terminal.scrolled_off() else {
            return all;
        };
        if !scrolled_off.is_cut {
            all = self.older.clone();
        }
        for row in scrolled_off.rows() {
            write_row(&mut all.text, row);
            if !row.wrapped {
                all.text.push(b'\n');
            }
        }
        all.keep(self.most);
        all
    }

    /// Everything as bytes, with the position in the output up to which it was fed.
    pub fn snapshot(&self, position: u64) -> Vec<u8> {
        let (screen, lines) = (self.screen.snapshot(), self.lines());
        let mut body = format!("{position} {}\n", screen.len()).into_bytes();
        body.extend_from_slice(&screen);
        body.extend_from_slice(&lines.text);
        snapshot::seal(NAME, &body)
    }

    /// The content of a snapshot, and its position.
    pub fn restore(bytes: &[u8], most: usize) -> Result<(Scrollback, u64), DamagedSnapshot> {
        let body = snapshot::unseal(NAME, bytes)?;
        parse(body).map_or(Err(DamagedSnapshot::Changed), |(position, screen, lines)| {
            Ok((Scrollback::of(Screen::restore(screen)?, lines, most), position))
        })
    }
}

const NAME: &str = "ostler-scrollback";

fn parse(body: &[u8]) -> Option<(u64, &[u8], Lines)> {
    let end = body.iter().take(100).position(|&byte| byte == b'\n')?;
    let words: Vec<&str> = str::from_utf8(&body[..end]).ok()?.split(' ').collect();
    let [position, length] = words[..] else { return None };
    let (screen, text) = body[end + 1..].split_at_checked(length.parse().ok()?)?;
    Some((position.parse().ok()?, screen, Lines { text: text.to_vec() }))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(rows: u16, columns: u16, most: usize, bytes: &[u8]) -> Vec<String> {
        let mut scrollback = Scrollback::new(Size { rows, columns }, most);
        scrollback.feed(bytes);
        texts(&scrollback)
    }

    fn texts(scrollback: &Scrollback) -> Vec<String> {
        scrollback.lines().iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect()
    }

    #[test]
    fn the_last_lines_that_scrolled_off_are_kept_with_their_colours() {
        assert_eq!(lines(2, 9, 10, b"one\r\n\x1b[31mtwo\x1b[m\r\nthree\r\nfour"), ["one", "\x1b[0;31mtwo\x1b[0m"]);
        assert_eq!(lines(2, 9, 2, b"1\r\n2\r\n3\r\n4\r\n5"), ["2", "3"]);
        assert_eq!(lines(2, 4, 9, b"abcdefgh\r\nx\r\ny"), ["abcdefgh"], "a broken line is one line");
    }

    #[test]
    fn what_the_program_erased_is_gone_and_the_alternate_screen_has_none() {
        assert_eq!(lines(2, 9, 10, b"1\r\n2\r\n3\r\n\x1b[3Jx\r\ny\r\nz"), ["3", "x"]);
        assert_eq!(lines(2, 9, 10, b"1\r\n2\r\n3\x1b[?1049ha\r\nb\r\nc\r\nd"), ["1"]);
    }

    #[test]
    fn a_reset_keeps_what_has_scrolled_off() {
        assert_eq!(lines(2, 9, 10, b"1\r\n2\r\n3\x1bcx\r\ny\r\nz"), ["1", "x"]);
    }

    #[test]
    fn long_lines_are_kept_up_to_a_size() {
        let mut scrollback = Scrollback::new(Size { rows: 2, columns: 1000 }, 5000);
        for _ in 0..3000 {
            scrollback.feed(&[b'x'; 999]);
            scrollback.feed(b"\r\n");
        }
        assert_eq!(scrollback.lines().iter().count(), MOST_BYTES / 1000);
    }

    #[test]
    fn a_damaged_snapshot_is_refused() {
        let mut scrollback = Scrollback::new(Size { rows: 2, columns: 4 }, 5);
        scrollback.feed(b"one\r\ntwo\r\nthree");
        let whole = scrollback.snapshot(7);
        assert_eq!(Scrollback::restore(&whole, 5).unwrap().1, 7);
        for cut in 0..whole.len() {
            let mut changed = whole.clone();
            changed[cut] ^= 4;
            assert!(Scrollback::restore(&changed, 5).is_err(), "changed at {cut}");
            assert!(Scrollback::restore(&whole[..cut], 5).is_err(), "cut at {cut}");
        }
    }

    proptest! {
        #[test]
        fn a_snapshot_in_between_makes_no_difference(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(&b"\x1b[;H23Jmcabc\r\n\n\n"[..])], 0..300),
            cut in 0..300usize,
        ) {
            let cut = cut.min(bytes.len());
            let mut whole = Scrollback::new(Size { rows: 3, columns: 5 }, 1000);
            whole.feed(&bytes);
            let mut first = Scrollback::new(Size { rows: 3, columns: 5 }, 1000);
            first.feed(&bytes[..cut]);
            let (mut second, position) = Scrollback::restore(&first.snapshot(9), 1000).unwrap();
            second.feed(&bytes[cut..]);
            prop_assert_eq!(position, 9);
            prop_assert_eq!(second.lines(), whole.lines());
            prop_assert_eq!(second.screen().snapshot(), whole.screen().snapshot());
        }
    }
}
