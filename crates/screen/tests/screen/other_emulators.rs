//! A comparison with two other emulators: they show the same screen, for the output itself and for our redraw of it.
//!
//! Neither supports everything. What one does not support, or does differently from xterm, is excluded by name.

use crate::corpus::{SIZE, STREAMS, screen_of};
use ostler_screen::Screen;
use proptest::prelude::*;
use std::num::NonZeroU16;

/// What all three emulators can report.
#[derive(Debug, PartialEq)]
struct Seen {
    rows: Vec<String>,
    cursor: (u16, u16),
    alternate: bool,
}

fn seen_by_us(screen: &Screen) -> Seen {
    Seen { rows: screen.text(), cursor: screen.cursor(), alternate: screen.is_alternate() }
}

fn vt100_parser() -> vt100::Parser {
    let size = |number| NonZeroU16::new(number).expect("a screen has rows and columns");
    vt100::Parser::new(size(SIZE.rows), size(SIZE.columns), 0)
}

fn seen_by_vt100(bytes: &[u8]) -> Seen {
    let mut parser = vt100_parser();
    parser.process(bytes);
    let screen = parser.screen();
    let (row, column) = screen.cursor_position();
    Seen {
        rows: screen.rows(0, SIZE.columns).map(|row| row.trim_end_matches(' ').to_owned()).collect(),
        // vt100 reports a cursor with a pending wrap as one column beyond the edge.
        cursor: (row, column.min(SIZE.columns - 1)),
        alternate: screen.alternate_screen(),
    }
}

fn seen_by_avt(bytes: &[u8]) -> Seen {
    let mut terminal =
        avt::Terminal::new(SIZE.columns.into(), SIZE.rows.into()).expect("a screen has rows and columns");
    terminal.feed(&*String::from_utf8_lossy(bytes));
    let cursor = terminal.cursor();
    Seen {
        rows: terminal.screen().visible_lines().map(|line| line.text().trim_end_matches(' ').to_owned()).collect(),
        cursor: (cursor.row as u16, (cursor.col as u16).min(SIZE.columns - 1)),
        alternate: terminal.active_screen_kind() == avt::ScreenKind::Alternate,
    }
}

/// Streams that vt100 shows differently from xterm.
const UNKNOWN_TO_VT100: &[&str] = &[
    "alternate screen the old way",
    "line drawing",
    "tab stops",
    "insert mode",
    "no wrapping",
    "soft reset",
    "picture tube",
    "backspaces and tabs",
    "newline mode",
    "eight-bit controls",
    "broken sequences",
];

/// Streams that avt shows differently from xterm.
const UNKNOWN_TO_AVT: &[&str] =
    &["accents and joiners", "cursor saved while it waited", "insert mode", "broken sequences"];

#[test]
fn the_others_see_in_the_output_what_we_see() {
    for (name, stream) in STREAMS {
        let ours = seen_by_us(&screen_of(stream.as_bytes()));
        if !UNKNOWN_TO_VT100.contains(name) {
            assert_eq!(seen_by_vt100(stream.as_bytes()), ours, "vt100: {name}");
        }
        if !UNKNOWN_TO_AVT.contains(name) {
            assert_eq!(seen_by_avt(stream.as_bytes()), ours, "avt: {name}");
        }
    }
}

#[test]
fn the_others_see_in_our_redraw_what_we_see_even_where_they_do_not_know_the_output() {
    for (name, stream) in STREAMS {
        let screen = screen_of(stream.as_bytes());
        assert_eq!(seen_by_vt100(&screen.redraw()), seen_by_us(&screen), "vt100: {name}");
        if *name != "accents and joiners" {
            assert_eq!(seen_by_avt(&screen.redraw()), seen_by_us(&screen), "avt: {name}");
        }
    }
}

#[test]
fn the_others_find_the_primary_screen_behind_the_alternate_one_in_our_redraw() {
    let screen = screen_of(b"$ vi file\r\n\x1b[31mred\x1b[?1049h\x1b[Htext");
    let mut bytes = screen.redraw();
    bytes.extend_from_slice(b"\x1b[?1049l!");
    let wanted = ["$ vi file", "red!", "", "", "", ""];
    assert_eq!(seen_by_vt100(&bytes).rows, wanted);
    assert_eq!(seen_by_avt(&bytes).rows, wanted);
}

/// The colours and attributes of a cell, as text.
fn looks(cell: Option<&vt100::Cell>) -> String {
    cell.map_or(String::new(), |cell| {
        format!(
            "{:?} on {:?}{}{}{}{}{}",
            cell.fgcolor(),
            cell.bgcolor(),
            if cell.bold() { " bold" } else { "" },
            if cell.dim() { " dim" } else { "" },
            if cell.italic() { " italic" } else { "" },
            if cell.underline() { " underline" } else { "" },
            if cell.inverse() { " inverse" } else { "" },
        )
    })
}

#[test]
fn vt100_sees_the_same_colours_and_attributes_in_our_redraw() {
    // Erasing keeps only the background. vt100 keeps the rest of the style, so the text comes after the erasing.
    let stream = "\x1b[44m\x1b[2J\x1b[2;3H\x1b[1;31mbold\x1b[0;2;3mdim\x1b[0;4;7munder\x1b[m\x1b[4;1H\x1b[38;5;200;48;2;1;2;3mrgb\x1b[91;105mbright\x1b[m";
    let (mut direct, mut redrawn) = (vt100_parser(), vt100_parser());
    direct.process(stream.as_bytes());
    redrawn.process(&screen_of(stream.as_bytes()).redraw());
    for row in 0..SIZE.rows {
        for column in 0..SIZE.columns {
            let cell = |parser: &vt100::Parser| looks(parser.screen().cell(row, column));
            assert_eq!(cell(&redrawn), cell(&direct), "row {row}, column {column}");
        }
    }
}

#[test]
fn vt100_finds_the_same_modes_in_our_redraw() {
    let stream = b"\x1b[?1h\x1b=\x1b[?25l\x1b[?2004h\x1b[?1003h\x1b[?1006h\x1b[3 q";
    let mut parser = vt100_parser();
    parser.process(&screen_of(stream).redraw());
    let screen = parser.screen();
    assert!(
        screen.application_cursor() && screen.application_keypad() && screen.hide_cursor() && screen.bracketed_paste()
    );
    assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::AnyMotion);
    assert_eq!(screen.mouse_protocol_encoding(), vt100::MouseProtocolEncoding::Sgr);
}

/// Output that all three emulators show alike.
fn common_output() -> impl Strategy<Value = Vec<u8>> {
    let row = 1..=SIZE.rows;
    let column = 1..=SIZE.columns;
    let moved = (row, column).prop_map(|(row, column)| format!("\x1b[{row};{column}H"));
    let fragment = prop_oneof![
        4 => "[a-z ]{1,20}",
        1 => prop::sample::select(vec!["表", "示", "é", "─", "\u{1f600}"]).prop_map(str::to_owned),
        3 => Just("\r\n".to_owned()),
        3 => moved.clone(),
        3 => (moved.clone(), prop::sample::select(&b"JKXABCDEFG"[..]), 0..3u16)
            .prop_map(|(moved, last, number)| format!("{moved}\x1b[{number}{}", last as char)),
        2 => (moved.clone(), prop::sample::select(&b"@P"[..]), 1..9u16)
            .prop_map(|(moved, last, number)| format!("{moved}\r\x1b[Kabcdefghijkl{moved}\x1b[{number}{}", last as char)),
        2 => (moved.clone(), prop::sample::select(&b"LMST"[..]), 1..5u16)
            .prop_map(|(moved, last, number)| format!("\x1b[r{moved}\x1b[{number}{}\r", last as char)),
        1 => (moved.clone(), 1..4u16, 2..4u16, moved.clone())
            .prop_map(|(before, top, height, after)| format!("{before}\x1b[{top};{}r{after}", top + height)),
        1 => moved.clone().prop_map(|moved| format!("\x1b[r{moved}")),
        1 => moved.clone().prop_map(|moved| format!("\x1b[r{moved}\x1bM")),
        1 => moved.clone().prop_map(|moved| format!("{moved}\x1b7")),
        1 => Just("\x1b8".to_owned()),
        1 => moved.prop_map(|moved| format!("\x1b[r\x1b[?1049l{moved}\x1b[?1049h\x1b[2J\x1b[H\x1b7")),
        1 => Just("\x1b[r\x1b[?1049l".to_owned()),
        1 => prop::sample::select(vec!["\x1b[31m", "\x1b[44m", "\x1b[m"]).prop_map(str::to_owned),
    ];
    prop::collection::vec(fragment, 0..15).prop_map(|fragments| fragments.concat().into_bytes())
}

proptest! {
    #[test]
    fn on_common_ground_all_three_agree(bytes in common_output()) {
        let screen = screen_of(&bytes);
        let ours = seen_by_us(&screen);
        let text = String::from_utf8_lossy(&bytes).replace('\x1b', "^");
        prop_assert_eq!(&seen_by_vt100(&bytes), &ours, "vt100: {}", text);
        prop_assert_eq!(&seen_by_avt(&bytes), &ours, "avt: {}", text);
        prop_assert_eq!(&seen_by_vt100(&screen.redraw()), &ours, "vt100, redrawn: {}", text);
        prop_assert_eq!(&seen_by_avt(&screen.redraw()), &ours, "avt, redrawn: {}", text);
    }
}
