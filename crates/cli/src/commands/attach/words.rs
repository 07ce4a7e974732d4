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

/// How it ended, and what was not said to it any more; the cause is text from outside.
pub fn ended(view: &View) -> String {
    let how = match &view.outcome {
        None => String::new(),
        Some(outcome) if outcome.kind == Kind::Succeeded => format!(": {}", outcome.kind.word()),
        Some(outcome) => {
            let cause = outcome.cause.replace('\n', " ");
            format!(": {}, {}", outcome.kind.word(), ostler_screen::printable(&cause))
        }
    };
    let waiting = match view.queued {
        0 => String::new(),
        1 => format!("; a message waits, ostler resume {} sends it", view.id),
        many => format!("; {many} messages wait, ostler resume {} sends them", view.id),
    };
    format!("[{} has ended{how}{waiting}]", view.id)
}
