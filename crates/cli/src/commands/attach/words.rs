//! The one line that is left when a session is no longer shown.

use crate::ui::called::called;
use ostler_core::id::SessionId;
use ostler_core::outcome::Kind;
use ostler_core::view::View;
use std::io::Write;

/// For whoever is still there to read it.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Before a terminal session is shown.
pub fn attached(leave_key: &str) -> String {
    format!("[attached; {leave_key} detaches, pressed twice it goes to the program inside]")
}

pub fn detached(id: SessionId) -> String {
    format!("[detached; still running; reattach: ostler attach {id}]")
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
        1 => format!("; a message is waiting, send it: ostler resume {}", view.id),
        many => format!("; {many} messages are waiting, send them: ostler resume {}", view.id),
    };
    format!("[{} has ended{how}{waiting}]", called(view))
}
