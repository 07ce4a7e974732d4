//! How fast the screen processes output, and what it costs: `cargo run --release -p ostler-screen --example
//! screen_throughput`.

use ostler_screen::{PlainText, Screen, Size, printable, printable_lines};
use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

const SIZE: Size = Size { rows: 24, columns: 80 };
const AMOUNT: usize = 64 << 20;

fn main() {
    for (name, bytes) in [("seq", seq()), ("colourful", colourful()), ("boxes", boxes()), ("long lines", long_lines())]
    {
        measure(&format!("feed, {name}"), bytes.len(), || {
            let mut screen = Screen::new(SIZE);
            // As much as one read of a pseudo-terminal returns.
            bytes.chunks(64 << 10).for_each(|read| screen.feed(read));
            screen.cursor()
        });
    }
    let plain = seq();
    measure("plain text, seq", plain.len(), || {
        let mut length = 0;
        let mut text = PlainText::new(SIZE);
        text.feed(&plain, &mut |piece| length += piece.len());
        text.finish(&mut |piece| length += piece.len());
        length
    });
    let clean = "The quick brown fox jumps over the lazy dog, 1234567890 times.\n".repeat(AMOUNT / 64);
    measure("printable_lines, clean", clean.len(), || printable_lines(&clean).len());
    let clean = clean.replace('\n', " ");
    measure("printable, clean", clean.len(), || printable(&clean).len());

    let mut screen = Screen::new(SIZE);
    screen.feed(&colourful()[..1 << 20]);
    let (snapshot, redraw) = (screen.snapshot(), screen.redraw());
    println!("snapshot {} bytes, redraw {} bytes", snapshot.len(), redraw.len());
    let text = long_lines();
    let held = resident_kib();
    let screens: Vec<Screen> = (0..1000)
        .map(|_| {
            let mut screen = Screen::new(SIZE);
            screen.feed(&text[..16 << 10]);
            screen
        })
        .collect();
    println!("one screen of 80 by 24, full of text: {} KiB", (resident_kib() - held) / screens.len());
    measure("snapshot and restore, of bytes", snapshot.len(), || Screen::restore(&screen.snapshot()).is_ok());
}

/// The resident memory of this process as the kernel reports it; 0 where it does not.
fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn measure<T>(name: &str, bytes: usize, work: impl Fn() -> T) {
    let best = (0..3).map(|_| {
        let start = Instant::now();
        black_box(work());
        start.elapsed()
    });
    let best = best.min().unwrap_or_default();
    println!("{name:32} {:8.0} MB/s  ({best:?})", bytes as f64 / 1e6 / best.as_secs_f64());
}

fn filled(mut line: impl FnMut(&mut String, usize)) -> Vec<u8> {
    let mut text = String::new();
    let mut number = 0;
    while text.len() < AMOUNT {
        line(&mut text, number);
        number += 1;
    }
    text.into_bytes()
}

fn seq() -> Vec<u8> {
    filled(|text, number| _ = write!(text, "{number}\r\n"))
}

fn long_lines() -> Vec<u8> {
    filled(|text, number| _ = write!(text, "{number} {}\r\n", "lorem ipsum dolor sit amet ".repeat(10)))
}

/// What an agent draws: coloured words, cursor movements, erased lines.
fn colourful() -> Vec<u8> {
    filled(|text, number| {
        let (row, colour) = (number % 24 + 1, number % 256);
        _ = write!(
            text,
            "\x1b[{row};1H\x1b[2K\x1b[38;5;{colour}m● \x1b[1mTool\x1b[22m(\x1b[38;2;200;{colour};9mcargo test\x1b[39m)\x1b[0m {number}",
        );
        if number % 50 == 0 {
            text.push_str("\r\n\x1b[?25l\x1b[?2026h\x1b[32m✔\x1b[0m done\x1b[?2026l\x1b[?25h");
        }
    })
}

fn boxes() -> Vec<u8> {
    filled(|text, _| text.push_str("╭──────────────────╮ 表示 │ é\r\n"))
}
