//! A fake agent that does on demand what real agents should not do.
//!
//! The words on its command line are executed in order; an argument follows after `=`:
//!
//! | word | what it does |
//! | --- | --- |
//! | `deaf` | ignores SIGTERM, SIGINT and SIGHUP from now on |
//! | `scatter=N` | leaves N processes running, each double-forked into a session of its own, and prints `scattered N` |
//! | `print=N` | prints N bytes of a pattern ([`pattern`]) |
//! | `say=TEXT` | prints a line |
//! | `long=N` | prints one line of more than N bytes, which begins and ends like one of Claude Code's |
//! | `line` | reads one line of its standard input, as an agent reads its first message |
//! | `read` | reads its standard input to the end and prints `read LENGTH CHECKSUM` |
//! | `hush` | closes its standard output and standard error |
//! | `until=FILE` | waits until the file exists, and prints `signal NAME` for each SIGHUP, SIGINT or SIGTERM |
//! | `forever` | waits in the same way without an end |
//! | `knock=FOLDER` | connects to the session in that folder and prints `answered` or `turned away` or why not |
//! | `die=N` | kills itself with signal N |
//! | `exit=N` | exits with N |

use ostler_sys::dir::Dir;
use ostler_sys::notify::Watcher;
use ostler_sys::signals::{Signals, ignore};
use ostler_sys::socket::{self, Packet};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, WaitOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Does what the words say, and returns the exit code.
#[must_use]
pub fn main(words: impl Iterator<Item = String>) -> i32 {
    let mut deaf = false;
    for word in words {
        let (verb, value) = word.split_once('=').unwrap_or((&word, ""));
        match verb {
            "deaf" => {
                deaf = true;
                for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
                    ignore(signal);
                }
            }
            "scatter" => scatter(number(value)),
            // The first half of a double fork: starts the second half and exits.
            "fork" => drop(own("stray").spawn().expect("a process")),
            "stray" => wait_for(None, false),
            "print" => print(number(value)),
            "say" => say(value),
            "long" => long(number(value)),
            "line" => drop(std::io::stdin().read_line(&mut String::new()).expect("standard input")),
            "read" => read(),
            "hush" => hush(),
            "until" => wait_for(Some(Path::new(value)), !deaf),
            "forever" => wait_for(None, !deaf),
            "knock" => knock(Path::new(value)),
            "die" => die(i32::try_from(number(value)).expect("a signal")),
            "exit" => return i32::try_from(number(value)).expect("a code"),
            _ => panic!("{word:?} is nothing that we do"),
        }
    }
    0
}

/// What `print` prints: lines that contain their own position, so that a lost or repeated byte is seen.
#[must_use]
pub fn pattern(length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length + 20);
    while bytes.len() < length {
        let position = bytes.len();
        writeln!(bytes, "{position:015}").expect("memory");
    }
    bytes.truncate(length);
    bytes
}

/// FNV-1a, 64 bits, as the demo agent computes it.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is not a number"))
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("standard output");
}

fn print(length: u64) {
    let bytes = pattern(usize::try_from(length).expect("memory"));
    let mut out = std::io::stdout().lock();
    out.write_all(&bytes).and_then(|()| out.flush()).expect("standard output");
}

fn long(length: u64) {
    let mut out = std::io::BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    out.write_all(br#"{"type":"assistant","message":{"content":[{"type":"text","text":""#).expect("standard output");
    std::io::copy(&mut std::io::repeat(b'x').take(length), &mut out).expect("standard output");
    out.write_all(b"\"}]}}\n").and_then(|()| out.flush()).expect("standard output");
}

fn read() {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes).expect("standard input");
    say(&format!("read {} {:016x}", bytes.len(), checksum(&bytes)));
}

/// Nothing is printed after this.
fn hush() {
    let null = std::fs::File::options().write(true).open("/dev/null").expect("/dev/null");
    rustix::stdio::dup2_stdout(&null).expect("dup2");
    rustix::stdio::dup2_stderr(&null).expect("dup2");
}

fn own(word: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("our own path"));
    command.arg(word).stdin(Stdio::null()).stdout(Stdio::inherit()).stderr(Stdio::null());
    command
}

/// `setsid` starts a session of its own; `fork` inside it starts the stray and exits, so that the stray's parent is
/// unknown.
fn scatter(count: u64) {
    let mut halves = Vec::new();
    for _ in 0..count {
        let mut command = Command::new("setsid");
        command.arg(std::env::current_exe().expect("our own path")).arg("fork");
        halves.push(command.stdin(Stdio::null()).spawn().expect("setsid"));
    }
    for half in &mut halves {
        half.wait().expect("our own child");
    }
    say(&format!("scattered {count}"));
}

/// Waits for a file. Reports signals that come meanwhile, and does not exit because of them.
fn wait_for(file: Option<&Path>, tells: bool) {
    let signals =
        if tells { Some(Signals::take(&[Signal::HUP, Signal::INT, Signal::TERM]).expect("signals")) } else { None };
    // Only where there is something to watch: a user has 128 inotify instances in all.
    let watcher = file.and_then(Path::parent).map(|folder| {
        let watcher = Watcher::new().expect("inotify");
        watcher.watch(folder).expect("a folder to watch");
        watcher
    });
    while !file.is_some_and(Path::exists) {
        let mut fds: Vec<PollFd<'_>> = watcher.iter().map(|watcher| PollFd::new(watcher, PollFlags::IN)).collect();
        fds.extend(signals.iter().map(|signals| PollFd::new(signals, PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("poll: {error}"),
        }
        if let Some(watcher) = &watcher {
            watcher.changed().expect("inotify");
        }
        while let Some(signal) = signals.as_ref().and_then(|signals| signals.next().expect("signals")) {
            say(&format!("signal {signal}"));
        }
    }
}

fn knock(folder: &Path) {
    let answer = Dir::open(folder).and_then(|folder| socket::reach(&folder));
    let listener = match answer {
        Ok(Some(listener)) => listener,
        Ok(None) => return say("no listener"),
        Err(error) => return say(&format!("cannot knock: {error}")),
    };
    // A refused connection may be noticed while sending or while receiving.
    let spoken = socket::transmit(&listener, br#"{"op":"watch"}"#);
    let heard = socket::receive(&listener, &mut [0; 1024]);
    match (spoken, heard) {
        (Ok(Packet::HungUp), _) | (_, Ok(Packet::HungUp)) => say("turned away"),
        (Ok(_), Ok(Packet::Done(_))) => say("answered"),
        other => say(&format!("neither: {other:?}")),
    }
}

fn die(signal: i32) {
    let signal = Signal::from_named_raw(signal).expect("a signal");
    rustix::process::kill_process(rustix::process::getpid(), signal).expect("may signal ourselves");
    // The signal has not arrived yet, or it does not end a process: nothing more can be done here.
    let _ = rustix::process::waitpid(None, WaitOptions::empty());
}
