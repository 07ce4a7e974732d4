//! The line that is printed when a session is no longer shown.

use crate::ui::called::called;
use ostler_core::id::SessionId;
use ostler_core::outcome::{Kind, Outcome};
use ostler_core::view::View;
use ostler_engine::notify::Told;
use ostler_engine::{Engine, process};
use ostler_tui::{notification, terminal, width};
use std::io::Write;

/// Errors are ignored: the person may be gone.
pub fn say(line: &str) {
    let columns = terminal::size(std::io::stderr()).map(|(_, columns)| usize::from(columns));
    let line = columns.map_or_else(|| line.to_owned(), |columns| between_words(line, columns));
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The line, wrapped between words. A command at its end stays whole, so that it can be copied.
fn between_words(line: &str, columns: usize) -> String {
    let command = line.rfind(": ostler ").map_or(line.len(), |place| place + 2);
    let (words, command) = line.split_at(command);
    let (mut rows, mut used) = (String::new(), 0);
    for word in words.split(' ').chain([command]).filter(|word| !word.is_empty()) {
        let wide = width(word);
        if used > 0 {
            let fits = used + 1 + wide <= columns;
            rows.push(if fits { ' ' } else { '\n' });
            used = if fits { used + 1 } else { 0 };
        }
        rows.push_str(word);
        used += wide;
    }
    rows
}

/// The sequence that makes a terminal notify a person.
pub fn told(told: &Told) -> Vec<u8> {
    notification::sequence(&told.title, &told.text, &|name| process::variable(name)).into_bytes()
}

/// The same for the end of a session that was shown.
pub fn tell_of_end(engine: &Engine, view: &View) {
    if let Some(end) = engine.told_of_end(view) {
        let _ = std::io::stderr().write_all(&told(&end));
    }
}

/// Printed before a terminal session is shown.
pub fn attached(leave_key: &str) -> String {
    format!("[attached; {leave_key} detaches, pressed twice it goes to the program inside]")
}

pub fn detached(id: SessionId) -> String {
    format!("[detached; still running; reattach: ostler attach {id}]")
}

/// How the session ended, and how many messages were not delivered. The cause is text from outside.
pub fn ended(view: &View) -> String {
    if let Some(by) = view.outcome.as_ref().and_then(stopped_by) {
        let next = match view.queued {
            // A command has no conversation to continue.
            0 if view.agent != "command" => format!("; resume: ostler resume {}", view.id),
            _ => waiting(view),
        };
        return format!("[{} was stopped by {}{next}]", called(view), ostler_screen::printable(&by));
    }
    let how = match &view.outcome {
        None => String::new(),
        Some(outcome) if outcome.kind == Kind::Succeeded => format!(": {}", outcome.kind.word()),
        Some(outcome) => {
            let cause = outcome.cause.replace('\n', " ");
            format!(": {}, {}", outcome.kind.word(), ostler_screen::printable(&cause))
        }
    };
    format!("[{} has ended{how}{}]", called(view), waiting(view))
}

fn waiting(view: &View) -> String {
    match view.queued {
        0 => String::new(),
        1 => format!("; a message is waiting, send it: ostler resume {}", view.id),
        many => format!("; {many} messages are waiting, send them: ostler resume {}", view.id),
    }
}

/// The user who stopped the session, without the process: `stopped by ann (pid 3): stop` is `ann`. `None` for a stop
/// that had to kill or did not come from `ostler stop`: then the full cause is printed.
fn stopped_by(outcome: &Outcome) -> Option<String> {
    let by = outcome.cause.strip_prefix("stopped by ")?.strip_suffix(": stop")?;
    let name = by.rsplit_once(" (pid ").map_or(by, |(name, _)| name);
    Some(name.replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_ends_its_rows_between_words_and_keeps_its_command_whole() {
        assert_eq!(between_words("[x has ended: the model is unknown]", 30), "[x has ended: the model is\nunknown]");
        assert_eq!(
            between_words("[x was stopped; resume: ostler resume x]", 30),
            "[x was stopped; resume:\nostler resume x]"
        );
        assert_eq!(between_words("[x has ended]", 30), "[x has ended]");
    }
}
