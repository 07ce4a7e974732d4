//! What output does to the screen, in cases where an emulator is easily wrong.

use crate::corpus::screen_of;
use ostler_screen::{Screen, Size};

/// On a screen of 6 rows and 14 columns: the output, the resulting rows (without blank ones at the end), the cursor.
#[track_caller]
fn check(output: &str, rows: &[&str], cursor: (u16, u16)) {
    let screen = screen_of(output.as_bytes());
    let text = screen.text();
    let used = text.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
    assert_eq!(text[..used], *rows, "{output:?}");
    assert_eq!(screen.cursor(), cursor, "{output:?}");
}

#[test]
fn the_cursor_waits_in_the_last_column_until_more_text_comes() {
    check("0123456789abcd", &["0123456789abcd"], (0, 13));
    check("0123456789abcdX", &["0123456789abcd", "X"], (1, 1));
    check("0123456789abcd\r\nX", &["0123456789abcd", "X"], (1, 1));
    check("0123456789abcd\x08X", &["0123456789abXd"], (0, 13));
    check("0123456789abcd\x1b[K", &["0123456789abc"], (0, 13));
    check("0123456789abcd\tX", &["0123456789abcd", "X"], (1, 1));
    check("0123456789abcd\x1b[31mX", &["0123456789abcd", "X"], (1, 1));
    check("0123456789abcd\nX", &["0123456789abcd", "             X"], (1, 13));
}

#[test]
fn wide_characters_never_hang_over_the_edge() {
    check("0123456789abc表", &["0123456789abc", "表"], (1, 2));
    check("0123456789ab表x", &["0123456789ab表", "x"], (1, 1));
    check("\x1b[?7l0123456789abc表", &["0123456789ab表"], (0, 13));
    let mut narrow = Screen::new(Size { rows: 2, columns: 1 });
    narrow.feed("表x".as_bytes());
    assert_eq!(narrow.text(), ["x", ""]);
}

#[test]
fn accents_take_no_column() {
    check("e\u{301}x", &["e\u{301}x"], (0, 2));
    check("表\u{301}x", &["表\u{301}x"], (0, 3));
    check("\u{301}x", &["x"], (0, 1));
    check("0123456789abcd\u{301}X", &["0123456789abcd\u{301}", "X"], (1, 1));
}

#[test]
fn margins_hold_what_is_inside() {
    check("1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[3;1H\n\nx", &["1", "", "x", "4"], (2, 1));
    check("1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[2;1H\x1bMx", &["1", "x", "2", "4"], (1, 1));
    check("1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[4;1H\x1b[9Ax", &["1", "x", "3", "4"], (1, 1));
    check("1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[4;1H\x1b[Lx", &["1", "2", "3", "x"], (3, 1));
    check("1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[2;1H\x1b[5Lx", &["1", "x", "", "4"], (1, 1));
    check("1\r\n2\r\n3\x1b[3;2r\x1b[rx", &["x", "2", "3"], (0, 1));
}

#[test]
fn origin_mode_counts_rows_from_the_top_margin() {
    check("\x1b[2;4r\x1b[?6hx\x1b[9;2Hy\x1b[?6lz", &["z", "x", "", " y"], (0, 1));
}

#[test]
fn a_restored_cursor_has_its_style_and_charset_back() {
    check("\x1b[2;3H\x1b(0\x1b7\x1b(B\x1b[Hq\x1b8q", &["q", "  ─"], (1, 3));
    check("abc\x1b8x", &["xbc"], (0, 1));
}

#[test]
fn line_drawing_replaces_letters() {
    check("\x1b(0lqk\x1b(B lqk \x1b)0\x0elqk\x0flqk", &["┌─┐ lqk ┌─┐lqk"], (0, 13));
}

#[test]
fn the_alternate_screen_starts_empty_and_leaves_no_trace() {
    check("ab\x1b[?1049hxyz\x1b[?1049lc", &["abc"], (0, 3));
    check("ab\x1b[?1049hx\x1b[?1049l\x1b[?1049h", &[], (0, 2));
    check("ab\x1b[?47hxyz\x1b[?47lc", &["ab   c"], (0, 6));
}

#[test]
fn repeating_is_bounded_by_the_screen() {
    check("-\x1b[3b", &["----"], (0, 4));
    check("-\x1b[65535b", &[["--------------"; 5].as_slice(), &["-"]].concat(), (5, 1));
}

#[test]
fn inserting_pushes_text_to_the_right_and_over_the_edge() {
    check("0123456789abcd\x1b[1;3H\x1b[4hXY", &["01XY23456789ab"], (0, 4));
    check("012\x1b[1;2H\x1b[2@", &["0  12"], (0, 1));
    check("0123\x1b[1;2H\x1b[2P", &["03"], (0, 1));
}

#[test]
fn a_wide_window_made_narrow_and_wide_again_has_its_text() {
    let mut screen = screen_of(b"0123456789abcd\r\n$ ");
    screen.resize(Size { rows: 6, columns: 5 });
    assert_eq!(screen.text()[..4], ["01234", "56789", "abcd", "$"]);
    assert_eq!(screen.cursor(), (3, 2));
    screen.resize(Size { rows: 6, columns: 20 });
    assert_eq!(screen.text()[..2], ["0123456789abcd", "$"]);
    assert_eq!(screen.cursor(), (1, 2));
}

#[test]
fn the_primary_screen_is_rewrapped_behind_the_alternate_one() {
    let mut screen = screen_of(b"0123456789abcd\r\n$ \x1b[?1049h\x1b[H0123456789abcd");
    screen.resize(Size { rows: 6, columns: 7 });
    assert_eq!(screen.text()[..2], ["0123456", ""]);
    screen.feed(b"\x1b[?1049lx");
    assert_eq!(screen.text()[..3], ["0123456", "789abcd", "$ x"]);
}

#[test]
fn a_window_made_lower_keeps_the_cursor_and_what_is_above_it() {
    let mut screen = screen_of(b"1\r\n2\r\n3\r\n4\r\n5");
    screen.resize(Size { rows: 3, columns: 14 });
    assert_eq!(screen.text(), ["3", "4", "5"]);
    assert_eq!(screen.cursor(), (2, 1));
}

#[test]
fn the_title_is_plain_text() {
    assert_eq!(screen_of("\x1b]0;a\u{85}b\x01c\x07".as_bytes()).title(), Some("abc"));
    assert_eq!(screen_of(b"\x1b]1;icon\x07").title(), None);
    assert_eq!(screen_of(b"\x1b]2;\xff\x07").title(), Some("\u{fffd}"));
}
