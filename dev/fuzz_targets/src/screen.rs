//! What programs draw, and what we store of it.

use crate::first;
use ostler_screen::{PlainText, Screen, Size, printable, printable_lines};

/// A screen that is cut, stored, restored and resized anywhere is the same as one that is not.
pub fn terminal(bytes: &[u8]) {
    let (cut, bytes) = first(bytes);
    let (shape, bytes) = first(bytes);
    let size = |shape: usize| Size { rows: (shape % 16) as u16, columns: (shape / 16 * 3) as u16 };
    let (before, behind) = bytes.split_at(cut.min(bytes.len()));
    let mut whole = Screen::new(size(shape));
    let mut parts = Screen::new(size(shape));
    whole.feed(before);
    for piece in before.chunks(3) {
        parts.feed(piece);
    }
    parts = Screen::restore(&parts.snapshot()).unwrap();
    for screen in [&mut whole, &mut parts] {
        screen.resize(size(shape ^ cut));
        screen.feed(behind);
    }
    assert!(whole == parts);
    let (row, column) = whole.cursor();
    assert!(row < whole.size().rows && column <= whole.size().columns);
    // A redraw results in the same screen.
    let mut copy = Screen::new(whole.size());
    copy.feed(&whole.redraw());
    assert_eq!(copy.text(), whole.text());
}

/// A snapshot that another program has written is refused or usable.
pub fn snapshot(bytes: &[u8]) {
    if let Ok(mut screen) = Screen::restore(bytes) {
        let _ = (screen.text(), screen.redraw(), screen.cursor());
        screen.feed(b"\x1b[5;5Hx\r\n\x1b[2Jy\x1b[?1049h\x1b[r\x1b[99L");
        screen.resize(Size { rows: 7, columns: 9 });
        screen.feed(b"\x1b[99;99Hz\x1b[?1049l\xff");
        let again = Screen::restore(&screen.snapshot()).unwrap();
        assert!(again == screen);
    }
}

/// Text that is shown has no control characters but line ends.
pub fn text(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    assert!(!printable(&text).chars().any(char::is_control));
    assert!(
        !printable_lines(&text)
            .chars()
            .any(|character| character.is_control() && character != '\n' && character != '\t')
    );
    let mut plain = PlainText::new(Size { rows: 3, columns: 10 });
    let mut shown = String::new();
    plain.feed(bytes, &mut |piece| shown.push_str(piece));
    plain.finish(&mut |piece| shown.push_str(piece));
    assert!(!shown.chars().any(|character| character.is_control() && character != '\n'));
}
