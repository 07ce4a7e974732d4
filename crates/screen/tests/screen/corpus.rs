//! Difficult output, which the tests of this crate feed to the screen.

use ostler_screen::{Screen, Size};
use proptest::prelude::*;

pub const SIZE: Size = Size { rows: 6, columns: 14 };

/// One named stream for each difficulty.
pub const STREAMS: &[(&str, &str)] = &[
    ("plain lines that scroll", "one\r\ntwo\r\nthree\r\nfour\r\nfive\r\nsix\r\nseven\r\neight"),
    ("text wrapped at the edge", "abcdefghijklmnopqrstuvwxyz\r\n0123456789abcdEFG"),
    ("cursor waiting at the last column", "\x1b[3;1Habcdefghijklmn"),
    ("cursor waiting, style changed", "\x1b[3;1H\x1b[41mabcdefghijklmn\x1b[32m"),
    (
        "wide characters at the edge",
        "0123456789abc表示\r\n0123456789ab表\r\nx\u{1f600}y\u{1f600}\u{1f600}\u{1f600}\u{1f600}\u{1f600}\u{1f600}\u{1f600}",
    ),
    ("wide characters written over", "表示表示表示\x1b[1;2HX\x1b[1;7H表\x1b[1;12HY"),
    ("cursor waiting behind a wide character", "0123456789ab表"),
    ("accents and joiners", "e\u{301}a\u{308}\u{323} \u{26a0}\u{fe0f} \u{1f469}\u{200d}\u{1f4bb}|\x1b[2;14Hx\u{301}"),
    (
        "alternate screen with the primary behind it",
        "$ vi\r\nmore\x1b[2;3H\x1b[?1049h\x1b[2J\x1b[1;1Hfile\x1b[6;1H-- INSERT --\x1b[3;4H",
    ),
    ("alternate screen left again", "$ vi\x1b[?1049h\x1b[31mfile\x1b[?1049l\r\n$ done"),
    ("alternate screen the old way", "one\x1b[?47htwo\x1b[?47l three\x1b[?1047hfour"),
    ("scroll region", "top\x1b[2;4r\x1b[2;1Ha\r\nb\r\nc\r\nd\r\ne\x1b[6;1Hbottom\x1b[3;1H"),
    (
        "scroll region, both ways",
        "1\r\n2\r\n3\r\n4\r\n5\r\n6\x1b[2;5r\x1b[2;1H\x1bM\x1bM\x1b[3S\x1b[T\x1b[4;1H\x1b[2L\x1b[M",
    ),
    ("origin mode", "\x1b[2;5r\x1b[?6h\x1b[1;1Hfirst\x1b[99;3Hlast\x1b7\x1b[2;2H"),
    ("saved cursor", "\x1b[2;5H\x1b[1;33m\x1b7\x1b[6;1H\x1b[mtext\x1b[4;4H"),
    ("cursor saved while it waited", "0123456789abcd\x1b7\x1b[31mX\x1b[3;3H\x1b8Y"),
    ("saved cursor, restored", "\x1b[2;5H\x1b[1;33m\x1b7\x1b[6;1H\x1b[mtext\x1b8more"),
    ("line drawing", "\x1b(0lqqk\x1b(B\r\n\x1b)0\x0ex x\x0f text\x0e\x1b[3;1Hmqqj"),
    ("tab stops", "\x1b[3g\x1b[1;4H\x1bH\x1b[1;9H\x1bH\r\n\ta\tb\tc\x1b[3;9H\x1b[gx\r\n\t1\t2"),
    ("insert mode", "abcdef\x1b[1;3H\x1b[4hXY表\x1b[2;1Hmore"),
    ("insert and delete characters", "abcdefghijklmn\x1b[1;4H\x1b[3@\x1b[2;1Hab表cd表\x1b[2;3H\x1b[P\x1b[1X"),
    ("erased in colour", "\x1b[44m\x1b[2J\x1b[2;3Hx\x1b[42m\x1b[K\x1b[3;5H\x1b[41m\x1b[1K\x1b[m\x1b[5;5H\x1b[J"),
    (
        "many colours",
        "\x1b[31;1ma\x1b[38;5;200mb\x1b[48;2;1;2;3mc\x1b[0;4:3;58:2::9:8:7md\x1b[7;9;53me\x1b[94;102mf\x1b[21mg\x1b[m",
    ),
    ("title", "\x1b]0;first\x07a\x1b]2;zwei — 表\x1b\\b"),
    (
        "strings that are not shown",
        "a\x1bPq#0;2;0;0;0~~@@\x1b\\b\x1b_Gf=24;AAAA\x1b\\c\x1b]52;c;Zm9v\x07d\x1b]8;;http://x\x1b\\e",
    ),
    (
        "mouse, paste, focus, keys",
        "\x1b[?1000h\x1b[?1002h\x1b[?1006h\x1b[?2004h\x1b[?1004h\x1b[?1h\x1b=\x1b[>1u\x1b[>4;2m\x1b[?25l\x1b[6 q",
    ),
    ("keyboard flags on both screens", "\x1b[>1u\x1b[>5u\x1b[?1049h\x1b[>31u\x1b[=8;2u"),
    ("synchronised update not finished", "\x1b[?2026habc"),
    ("no wrapping", "\x1b[?7labcdefghijklmnopqrstuv\x1b[2;13H表表"),
    ("soft reset", "\x1b[2;4r\x1b[?1000h\x1b[?25l\x1b[31mtext\x1b[!pmore"),
    ("hard reset", "text\x1b[?1049h\x1b[?1000h\x1b]2;kept\x07more\x1bcnew"),
    ("picture tube", "\x1b[2;3r\x1b#8"),
    ("repeated", "-\x1b[30b\r\n表\x1b[3b"),
    ("backspaces and tabs", "abc\x08\x08X\tY\r\nabcdefghijklmn\x08Z"),
    ("newline mode", "\x1b[20habc\ndef\x0bghi\x0cjkl"),
    ("reverse video", "\x1b[?5habc"),
    ("eight-bit controls", "a\u{9b}31mb\u{85}c\u{8d}d\u{9d}0;t\u{9c}e"),
    ("broken sequences", "a\x1b[1?2hb\x1b[12\x18c\x1b[3\x1b[31md\x1b[\u{e9}e"),
];

pub fn screen_of(bytes: &[u8]) -> Screen {
    let mut screen = Screen::new(SIZE);
    screen.feed(bytes);
    screen
}

/// Output as programs write it, in any order.
pub fn output() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(fragment(), 0..25).prop_map(|fragments| fragments.concat())
}

fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let number = || prop_oneof![4 => 0..16u16, 1 => 0..2000u16];
    prop_oneof![
        4 => "[a-z ]{1,20}".prop_map(String::into_bytes),
        2 => prop::sample::select(vec!["表", "\u{1f600}", "é", "e\u{301}", "\u{200d}", "\u{fe0f}", "─", "\u{fffd}"])
            .prop_map(|text| text.as_bytes().to_vec()),
        3 => prop::sample::select(vec!["\r", "\n", "\r\n", "\t", "\x08", "\x0e", "\x0f"]).prop_map(|text| text.into()),
        2 => prop::sample::select(vec![
            "\x1b8", "\x1bD", "\x1bE", "\x1bM", "\x1bH", "\x1b=", "\x1b>", "\x1b(0", "\x1b(B", "\x1b)0", "\x1b#8", "\x1bc",
        ]).prop_map(|text| text.into()),
        5 => (prop::sample::select(&b"@ABCDEFGHIJKLMPSTXZ`adefghlmr^"[..]), number(), number())
            .prop_map(|(last, one, two)| format!("\x1b[{one};{two}{}", last as char).into_bytes()),
        2 => (prop::sample::select(&b"@ABCDEFGHIJKLMPSTXZdemru"[..]))
            .prop_map(|last| format!("\x1b[{}", last as char).into_bytes()),
        3 => (
            prop::sample::select(vec![1, 5, 6, 7, 25, 47, 66, 1000, 1002, 1003, 1004, 1006, 1047, 2004, 2026]),
            prop::sample::select(&b"hl"[..]),
        ).prop_map(|(mode, last)| format!("\x1b[?{mode}{}", last as char).into_bytes()),
        // The cursor is saved away from the edge: a terminal cannot be put into a state with a pending wrap after an
        // erased character.
        2 => prop::sample::select(vec![
            "\r\x1b7", "\x1b[3;5H\x1b7", "\x08\x1b[s", "\r\x1b[?1048h", "\x1b[2;9H\x1b[?1049h", "\x1b[?1048l", "\x1b[?1049l",
        ]).prop_map(|text| text.into()),
        2 => prop::sample::select(vec![
            "\x1b[4h", "\x1b[4l", "\x1b[20h", "\x1b[!p", "\x1b[5 q", "\x1b[>1u", "\x1b[<u", "\x1b[=3;2u", "\x1b[>4;1m",
            "\x1b[1;31m", "\x1b[48;5;99m", "\x1b[38;2;3;4;5m", "\x1b[4:3m", "\x1b[m", "\x1b]0;t\x07", "\x1b]2;\u{8868}\x1b\\",
        ]).prop_map(|text| text.into()),
    ]
}
