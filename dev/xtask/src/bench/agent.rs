//! The programs that the benchmarks run under each tool: this binary again, with a command of its own.
//!
//! They measure from the inside what cannot be seen from the outside: when a program really ended, and how long it was
//! blocked by the tool that reads its terminal. All of them report through a FIFO, never through the output under test.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::clock::Moment;

/// The word that selects this module in our own command line.
pub const COMMAND: &str = "bench-agent";

/// One write of `pour`: as much as a fast program writes at once.
const BLOCK: usize = 64 * 1024;

/// A line like those that headless agents write.
const JSON_LINE: &[u8] = b"{\"type\":\"assistant\",\"text\":\"The quick brown fox jumps over the lazy dog, \
                          and the ostler minds the horse meanwhile. 012345678\"}\n";

/// A line like those that agents draw: a changed line of a program, its file and its number, in colour.
const COLOURED_LINE: &str = "\x1b[2m│\x1b[0m \x1b[32m+ fn keep(horse: Horse) -> Result<Stall, Bolted> {\x1b[0m   \
                             \x1b[1;34msrc/stable.rs\x1b[0m:\x1b[33m118\x1b[0m\n";

/// Less than what a keeper considers a pause.
const DRAW_EVERY: Duration = Duration::from_millis(300);
const TELL_EVERY: Duration = Duration::from_millis(20);
/// Comes before the time in the text.
pub const TIME: &str = "the time is ";

pub fn run(arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["pour", "json", bytes] => pour(JSON_LINE, bytes.parse().context("how many bytes?")?),
        ["pour", "colours", bytes] => pour(COLOURED_LINE.as_bytes(), bytes.parse().context("how many bytes?")?),
        ["pour-and-draw-on", bytes] => pour_and_draw_on(bytes.parse().context("how many bytes?")?),
        ["tell-the-time"] => tell_the_time(),
        ["print-on"] => print_on(),
        ["timed", report, command @ ..] => timed(Path::new(report), command),
        ["exit-on-demand", gate, report] => exit_on_demand(Path::new(gate), Path::new(report)),
        ["on-terminal", report, command @ ..] => on_terminal(Path::new(report), command),
        _ => bail!("unknown {COMMAND}: {words:?}"),
    }
}

/// Writes this many bytes of a repeated line, one block at a time.
fn pour(line: &[u8], bytes: usize) -> Result<()> {
    let block = line.repeat(BLOCK / line.len());
    let mut out = std::io::stdout().lock();
    let mut left = bytes;
    while left > 0 {
        let part = block.get(..left.min(block.len())).unwrap_or(&block);
        out.write_all(part)?;
        out.flush()?;
        left -= part.len();
    }
    Ok(())
}

/// Draws this many bytes, and then a little at regular intervals, as a program does that never pauses.
fn pour_and_draw_on(bytes: usize) -> Result<()> {
    pour(COLOURED_LINE.as_bytes(), bytes)?;
    let mut out = std::io::stdout().lock();
    for number in 0.. {
        write!(out, "\rworking {number}")?;
        out.flush()?;
        // Not a wait for an event: the pace itself is measured.
        std::thread::sleep(DRAW_EVERY);
    }
    Ok(())
}

/// Prints a line a second.
fn print_on() -> Result<()> {
    loop {
        println!("a line");
        // Not a wait for an event: the pace itself is measured.
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Prints the time fifty times a second, as an agent prints a piece of its answer.
fn tell_the_time() -> Result<()> {
    let mut out = std::io::stdout().lock();
    loop {
        let now = Moment::now().to_word();
        let line = format!(
            r#"{{"type":"assistant","uuid":"u","message":{{"content":[{{"type":"text","text":"{TIME}{now}"}}]}}}}"#
        );
        writeln!(out, "{line}")?;
        out.flush()?;
        // Not a wait for an event: the pace itself is measured.
        std::thread::sleep(TELL_EVERY);
    }
}

/// Runs a command and reports when it started and when it ended.
fn timed(report: &Path, command: &[&str]) -> Result<()> {
    let (mut command, mut report) = (command_of(command)?, open_for_writing(report)?);
    let started = Moment::now();
    let status = command.status()?;
    let ended = Moment::now();
    writeln!(report, "{} {}", started.to_word(), ended.to_word())?;
    if status.success() { Ok(()) } else { bail!("{status}") }
}

/// Reports that it runs, waits for a line from the gate, and reports the time of its exit as its last action.
fn exit_on_demand(gate: &Path, report: &Path) -> Result<()> {
    let (mut gate, mut report) = (File::open(gate)?, open_for_writing(report)?);
    writeln!(report, "up")?;
    // One byte at a time: the gate is shared with the next program, whose line must stay in it.
    let mut byte = [0];
    while gate.read(&mut byte)? == 1 && byte != *b"\n" {}
    report.write_all(format!("{}\n", Moment::now().to_word()).as_bytes())?;
    // Nothing happens between the report and the exit of the process, not even our own cleanup.
    std::process::exit(0)
}

/// Makes its stdin the controlling terminal, reports the time, and executes the command.
fn on_terminal(report: &Path, command: &[&str]) -> Result<()> {
    let (mut command, mut report) = (command_of(command)?, open_for_writing(report)?);
    rustix::process::setsid()?;
    rustix::process::ioctl_tiocsctty(std::io::stdin())?;
    writeln!(report, "{}", Moment::now().to_word())?;
    Err(command.exec().into())
}

fn command_of(words: &[&str]) -> Result<Command> {
    let (program, arguments) = words.split_first().context("no command")?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

fn open_for_writing(fifo: &Path) -> Result<File> {
    OpenOptions::new().write(true).open(fifo).with_context(|| format!("cannot open {}", fifo.display()))
}
