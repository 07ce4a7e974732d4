//! However the output is cut, by reads or by snapshots, the screen is the same, and no output makes it fail.

use crate::corpus::{SIZE, STREAMS, output, screen_of};
use ostler_screen::{Screen, Size};
use proptest::prelude::*;

#[test]
fn a_snapshot_at_any_byte_changes_nothing() {
    for (name, stream) in STREAMS {
        let bytes = stream.as_bytes();
        let whole = screen_of(bytes);
        for cut in 0..=bytes.len() {
            let mut screen = Screen::restore(&screen_of(&bytes[..cut]).snapshot()).expect(name);
            screen.feed(&bytes[cut..]);
            assert!(screen == whole, "{name}, cut at {cut}: {:?} instead of {:?}", screen.text(), whole.text());
        }
    }
}

#[test]
fn a_read_of_any_length_changes_nothing() {
    for (name, stream) in STREAMS {
        for length in 1..8 {
            let mut screen = Screen::new(SIZE);
            stream.as_bytes().chunks(length).for_each(|read| screen.feed(read));
            assert!(screen == screen_of(stream.as_bytes()), "{name}, {length} bytes at a time");
        }
    }
}

#[test]
fn endless_strings_and_sequences_take_no_space() {
    for start in ["\x1b]0;", "\x1b]52;c;", "\x1bP", "\x1b_", "\x1b[", "\x1b[1;"] {
        let mut screen = Screen::new(SIZE);
        screen.feed(start.as_bytes());
        for _ in 0..200 {
            screen.feed(&[b'1'; 10_000]);
        }
        assert!(screen.snapshot().len() < 10_000, "{start:?}");
        assert!(screen.redraw().len() < 10_000, "{start:?}");
    }
}

#[test]
fn a_title_is_cut_at_a_limit() {
    let mut screen = Screen::new(SIZE);
    screen.feed(b"\x1b]2;");
    screen.feed(&[b't'; 100_000]);
    screen.feed(b"\x07");
    assert!((100..2000).contains(&screen.title().map_or(0, str::len)));
}

#[test]
fn sizes_are_clamped() {
    assert_eq!(Screen::new(Size { rows: 0, columns: 0 }).size(), Size { rows: 1, columns: 1 });
    let mut screen = Screen::new(Size { rows: u16::MAX, columns: u16::MAX });
    assert_eq!(screen.size(), Size { rows: 1000, columns: 1000 });
    screen.resize(Size { rows: 0, columns: 7 });
    assert_eq!(screen.size(), Size { rows: 1, columns: 7 });
}

fn sizes() -> impl Strategy<Value = Size> {
    let small = (0..12u16, 0..20u16);
    prop_oneof![small, Just((1, 1)), Just((1, 2)), Just((0, 0)), Just((60_000, 3)), Just((2, 60_000))]
        .prop_map(|(rows, columns)| Size { rows, columns })
}

proptest! {
    #[test]
    fn any_bytes_at_any_size_are_survived(
        size in sizes(),
        steps in prop::collection::vec((prop_oneof![output(), prop::collection::vec(any::<u8>(), 0..50)], sizes()), 0..4),
    ) {
        let mut screen = Screen::new(size);
        for (bytes, size) in steps {
            screen.feed(&bytes);
            screen.resize(size);
            let (row, column) = screen.cursor();
            prop_assert!(row < screen.size().rows && column < screen.size().columns);
            prop_assert_eq!(screen.text().len(), usize::from(screen.size().rows));
            prop_assert!(!screen.redraw().is_empty());
            prop_assert!(Screen::restore(&screen.snapshot()).as_ref() == Ok(&screen));
        }
    }

    #[test]
    fn a_snapshot_anywhere_and_a_resize_after_it_change_nothing(
        bytes in output(),
        cut in any::<prop::sample::Index>(),
        size in sizes(),
        further in output(),
    ) {
        let cut = cut.index(bytes.len() + 1);
        let mut whole = screen_of(&bytes);
        let mut restored = Screen::restore(&screen_of(&bytes[..cut]).snapshot()).expect("our own snapshot");
        restored.feed(&bytes[cut..]);
        prop_assert!(restored == whole);
        for screen in [&mut whole, &mut restored] {
            screen.resize(size);
            screen.feed(&further);
        }
        prop_assert!(restored == whole);
    }

    #[test]
    fn any_bytes_are_refused_as_a_snapshot(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(Screen::restore(&bytes).is_err());
    }
}
