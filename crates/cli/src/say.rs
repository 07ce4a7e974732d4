//! Output. Standard output may be a full disk or a closed pipe; that is an error with words, not a panic. When standard
//! error is gone, what goes there is dropped, because there is no place left for the error.

use crate::commands::ls::tilde;
use crate::exit::{Failure, Result};
use ostler_engine::Notice;
use std::fmt::Arguments;
use std::io::Write;

/// Like `println!`, as a result.
macro_rules! say {
    ($($words:tt)*) => { $crate::say::line(format_args!($($words)*)) };
}

/// Like `eprintln!`, and never fails.
macro_rules! tell {
    ($($words:tt)*) => { $crate::say::aside(format_args!($($words)*)) };
}

pub(crate) use {say, tell};

pub fn line(words: Arguments<'_>) -> Result<()> {
    text(&format!("{words}\n"))
}

/// Text as it is, to standard output.
pub fn text(text: &str) -> Result<()> {
    bytes(text.as_bytes())
}

pub fn bytes(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(not_written)
}

/// The problem is standard output, not ostler.
pub fn not_written(error: std::io::Error) -> Failure {
    Failure::ours(format!("cannot write to standard output: {error}"))
}

pub fn aside(words: Arguments<'_>) {
    let _ = writeln!(std::io::stderr().lock(), "{words}");
}

/// Prints what the engine reports while it works.
#[expect(clippy::needless_pass_by_value, reason = "as a callback takes it")]
pub fn notice(notice: Notice) {
    let mut words = notice.to_string();
    if let Some(path) = notice.backup().map(|path| path.to_string_lossy()) {
        words = words.replace(&*path, &tilde(&path));
    }
    if let Notice::NotSaved { session } = &notice {
        words.push_str(&format!("; read it with: ostler logs {}", session.id));
    }
    if let Notice::JournalUnreadable { .. } = &notice {
        words.push_str("; see ostler doctor");
    }
    aside(format_args!("ostler: {words}"));
}
