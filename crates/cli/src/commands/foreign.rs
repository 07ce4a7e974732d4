//! `ostler ls --foreign`: conversations that run outside ostler, with the processes that use them.

use super::ls::tilde;
use crate::context::Context;
use crate::exit::Result;
use crate::say::tell;
use crate::ui::called::called;
use crate::ui::style::Style;
use crate::ui::table::{Cell, cut, lay_out, window};
use crate::ui::time::age;
use ostler_engine::foreign::{ConversationOwner, Foreign};
use ostler_engine::process::now;

pub fn list(context: &Context, json: bool) -> Result<()> {
    let foreign = context.engine.foreign()?;
    if json {
        return crate::say::text(&as_json(&foreign));
    }
    crate::say::text(&table(&foreign, context.style))?;
    let known = |one: &&Foreign| one.owner.native_id.is_some();
    for one in foreign.iter().filter(known) {
        if let Some(view) = &one.session {
            let id = view.id;
            let what_to_do = match (view.archived, view.ended) {
                (true, _) => format!("restore it first: ostler restore {id}"),
                (false, true) => format!("take it over: ostler resume --takeover {id}"),
                (false, false) => format!("it runs in both; see ostler who {id}"),
            };
            tell!("process {} is using the conversation of session {}; {what_to_do}", one.owner.pid, called(view));
        }
    }
    if foreign.iter().filter(known).any(|one| one.session.is_none()) {
        tell!("take one over: ostler adopt --takeover CONVERSATION");
    }
    Ok(())
}

/// Plain data, which always has a JSON form.
fn as_json(foreign: &[Foreign]) -> String {
    let lines: Vec<String> = foreign.iter().map(|one| serde_json::to_string(one).unwrap_or_default()).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

fn table(foreign: &[Foreign], style: Style) -> String {
    let head = |text: &str| Cell::painted(text, style, Style::dim);
    let mut rows = vec![["AGENT", "PID", "AGE", "STATUS", "TERMINAL", "CONVERSATION", "WHERE"].map(head).into()];
    rows.extend(foreign.iter().map(|Foreign { owner, .. }| {
        let or_dash = |text: &Option<String>| Cell::new(text.as_deref().unwrap_or("-"));
        vec![
            Cell::new(&owner.agent),
            Cell::painted(&owner.pid.to_string(), style, Style::bold),
            Cell::new(&age(now().as_second() - owner.since.as_second())),
            or_dash(&owner.status),
            or_dash(&owner.terminal),
            or_dash(&owner.native_id),
            Cell::painted(&owner.cwd.as_deref().map_or("-".to_owned(), tilde), style, Style::dim),
        ]
    }));
    lay_out(&rows, window())
}

/// The command line of a process, short enough for a line.
pub fn command_words(owner: &ConversationOwner) -> String {
    cut(&owner.command.join(" "), 120)
}
