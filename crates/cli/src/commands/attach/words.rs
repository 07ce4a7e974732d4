//! The one line that is left when a session is no longer shown.

use ostler_core::id::SessionId;
use ostler_core::outcome::Kind;
use ostler_core::view::View;
use std::io::Write;

/// For whoever is still there to read it.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

pub fn detached(id: SessionId) -> String {
    format!("[detached from {id}; ostler attach {id} comes back]")
}

/// How it ended; the cause is text from outside.
pub fn ended(view: &View) -> String {
    let Some(outcome) = &view.outcome else {
        return format!("[{} has ended]", view.id);
    };
    let word = outcome.kind.word();
    match outcome.kind {
        Kind::Succeeded => format!("[{} has ended: {word}]", view.id),
        Kind::Failed | Kind::Interrupted | Kind::Stopped | Kind::Lost => {
            let cause = outcome.cause.replace('\n', " ");
            format!("[{} has ended: {word}, {}]", view.id, ostler_screen::printable(&cause))
        }
    }
}
