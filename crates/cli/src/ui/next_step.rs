//! What can be done about a session whose end was not observed.

use ostler_core::outcome::Kind;
use ostler_core::record::Mode;
use ostler_core::view::View;

/// `continue: ostler resume ID, read: ostler logs ID`; `None` unless it is lost.
pub fn after_loss(view: &View) -> Option<String> {
    view.outcome.as_ref().filter(|outcome| view.ended && outcome.kind == Kind::Lost)?;
    let id = view.id;
    // `resume` refuses a command, and a terminal session that never showed a conversation.
    let goes_on = view.agent != "command" && (view.native_id.is_some() || view.mode == Mode::Headless);
    let read = format!("read: ostler logs {id}");
    Some(if goes_on { format!("continue: ostler resume {id}, {read}") } else { read })
}
