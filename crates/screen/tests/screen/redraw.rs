//! A terminal that was given `redraw` shows what the screen shows, and continues as the screen does.

use crate::corpus::{SIZE, STREAMS, output, screen_of};
use ostler_screen::Screen;
use proptest::prelude::*;

/// A terminal in a bad state, on which a screen is then redrawn.
fn redrawn(screen: &Screen) -> Screen {
    let mut terminal = Screen::new(SIZE);
    terminal.feed(
        "\x1b[7;32mold\x1b[?1049hother\x1b[2;3r\x1b[?6h\x1b[4h\x1b[?7l\x1b(0\x1b[20h\x1b[?1003h\x1b[?1006h\x1b[>9u\x1b[?25l\x1b[4 q\x1b]2;cut"
            .as_bytes(),
    );
    terminal.feed(&screen.redraw());
    terminal
}

/// `redraw` contains everything about a screen, always in the same form.
fn words(screen: &Screen) -> String {
    String::from_utf8_lossy(&screen.redraw()).replace('\x1b', "\n^")
}

fn assert_alike(one: &Screen, other: &Screen, what: &str) {
    assert_shows_the_same(one, other, what);
    assert_eq!(words(one), words(other), "{what}");
}

/// Compares everything except one thing: which rows are one wrapped line. A terminal that was redrawn in the middle of
/// unusual editing may have lost that.
fn assert_shows_the_same(one: &Screen, other: &Screen, what: &str) {
    assert_eq!(one.text(), other.text(), "{what}");
    assert_eq!(one.cursor(), other.cursor(), "{what}");
    assert_eq!(one.is_alternate(), other.is_alternate(), "{what}");
    assert_eq!(without_row_starts(&words(one)), without_row_starts(&words(other)), "{what}");
}

/// Removes the sequences, with one number, that go to the start of a row.
fn without_row_starts(words: &str) -> String {
    let kept = words.split('\n').map(|word| match word.strip_prefix("^[").and_then(|rest| rest.split_once('H')) {
        Some((row, text)) if row.parse::<u16>().is_ok() => text,
        Some(_) | None => word,
    });
    kept.collect()
}

#[test]
fn a_redrawn_terminal_shows_the_same_at_every_byte_of_every_stream() {
    for (name, stream) in STREAMS {
        let bytes = stream.as_bytes();
        for cut in 0..=bytes.len() {
            let screen = screen_of(&bytes[..cut]);
            assert_alike(&redrawn(&screen), &screen, &format!("{name}, after {cut} bytes"));
        }
    }
}

#[test]
fn a_redrawn_terminal_understands_the_rest_of_the_output() {
    for (name, stream) in STREAMS.iter().filter(|(name, _)| *name != "repeated") {
        let bytes = stream.as_bytes();
        for cut in 0..=bytes.len() {
            let mut terminal = redrawn(&screen_of(&bytes[..cut]));
            terminal.feed(&bytes[cut..]);
            assert_alike(&terminal, &screen_of(bytes), &format!("{name}, redrawn after {cut} bytes"));
        }
    }
}

#[test]
fn leaving_the_alternate_screen_uncovers_the_primary_one() {
    let mut terminal = redrawn(&screen_of(b"$ vi file\r\n\x1b[?1049h\x1b[2J\x1b[Htext"));
    assert_eq!(terminal.text()[0], "text");
    terminal.feed(b"\x1b[?1049l$ ");
    assert_eq!(terminal.text()[..2], ["$ vi file", "$"]);
    assert_eq!(terminal.cursor(), (1, 2));
}

#[test]
fn every_mode_is_brought_back() {
    for (set, wanted) in [
        ("\x1b[?1h", "\x1b[?1h"),
        ("\x1b[?5h", "\x1b[?5h"),
        ("\x1b[?7l", "\x1b[?7l"),
        ("\x1b[?25l", "\x1b[?25l"),
        ("\x1b=", "\x1b="),
        ("\x1b[?9h", "\x1b[?9h"),
        ("\x1b[?1000h", "\x1b[?1000h"),
        ("\x1b[?1002;1005h", "\x1b[?1002h\x1b[?1005h"),
        ("\x1b[?1003;1006h", "\x1b[?1003h\x1b[?1006h"),
        ("\x1b[?1015h", "\x1b[?1015h"),
        ("\x1b[?1016h", "\x1b[?1016h"),
        ("\x1b[?1004h", "\x1b[?1004h"),
        ("\x1b[?2004h", "\x1b[?2004h"),
        ("\x1b[3 q", "\x1b[3 q"),
        ("\x1b[>3u\x1b[>9u", "\x1b[>3u\x1b[>9u"),
        ("\x1b[>4;2m", "\x1b[>4;2m"),
        ("\x1b[4h", "\x1b[4h"),
        ("\x1b]2;t\u{ef}tle\x07", "\x1b]2;t\u{ef}tle\x1b\\"),
        ("\x1b[?1049h", "\x1b[?1049h"),
    ] {
        let redraw = screen_of(set.as_bytes()).redraw();
        let redraw = String::from_utf8_lossy(&redraw);
        let after_reset = redraw.strip_prefix(&*String::from_utf8_lossy(Screen::reset())).unwrap_or_default();
        assert!(after_reset.contains(wanted), "{set:?} is not in {after_reset:?}");
        let untouched = String::from_utf8_lossy(&screen_of(b"").redraw()).into_owned();
        for reset in ["\x1bc", "\x1b[!p"] {
            let again = screen_of(format!("{set}{reset}").as_bytes());
            if !again.is_alternate() && again.title().is_none() {
                assert_eq!(String::from_utf8_lossy(&again.redraw()), untouched, "{set:?} then {reset:?}");
            }
        }
    }
}

#[test]
fn an_update_that_was_not_finished_does_not_freeze_the_terminal() {
    let redraw = screen_of(b"\x1b[?2026habc").redraw();
    let text = String::from_utf8_lossy(&redraw);
    assert!(text.rfind("\x1b[?2026l") > text.rfind("\x1b[?2026h"));
}

#[test]
fn reset_gives_back_a_sane_terminal_from_anywhere() {
    for (name, stream) in STREAMS {
        for cut in 0..=stream.len() {
            let mut terminal = screen_of(&stream.as_bytes()[..cut]);
            terminal.feed(Screen::reset());
            assert!(!terminal.is_alternate(), "{name}");
            assert_eq!(terminal.cursor(), (SIZE.rows - 1, 0), "{name}");
            // With the screen cleared, and without what no mode controls, nothing is left to restore.
            terminal.feed(b"\x1b[2J\x1b[H\x1b7");
            let mut fresh = screen_of(b"");
            for screen in [&mut terminal, &mut fresh] {
                screen.feed(b"\x1b]2;t\x07\x1b[3g\x1b[H");
            }
            assert_alike(&terminal, &fresh, &format!("{name}, reset after {cut} bytes"));
        }
    }
}

#[test]
fn a_redraw_asks_nothing_and_holds_no_text_but_printable() {
    let redraw = screen_of("a\u{9b}6n\x1b[c\x1b[>q\x1b]11;?\x07\x1b]2;t\u{85}\x1bx\x05b".as_bytes()).redraw();
    let text = String::from_utf8_lossy(&redraw);
    for question in ["6n", "[c", ">q", "?\x07", "\x05", "\u{85}"] {
        assert!(!text.contains(question), "{question:?} in {text:?}");
    }
}

proptest! {
    #[test]
    fn any_output_can_be_redrawn(bytes in output()) {
        let screen = screen_of(&bytes);
        assert_alike(&redrawn(&screen), &screen, &String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn after_a_redraw_any_further_output_does_the_same(bytes in output(), further in output()) {
        let mut screen = screen_of(&bytes);
        let mut terminal = redrawn(&screen);
        screen.feed(&further);
        terminal.feed(&further);
        assert_shows_the_same(&terminal, &screen, &String::from_utf8_lossy(&[bytes, further].concat()));
    }
}
