//! `ostler ls --foreign`: conversations that run outside ostler, with who runs them. Looks, and touches nothing.

use super::ls::tilde;
use crate::context::{Context, variable};
use crate::exit::Result;
use crate::say::tell;
use crate::ui::called::called;
use crate::ui::style::Style;
use crate::ui::table::{Cell, cut, lay_out};
use crate::ui::time::age;
use ostler_core::SCHEMA;
use ostler_core::id::SessionId;
use ostler_core::view::View;
use ostler_engine::foreign::{self, ConversationOwner};
use ostler_engine::list as sessions;
use ostler_engine::process::now;
use serde::Serialize;
use std::io::IsTerminal;

/// A owner as an object of its own, with the version of its form.
#[derive(Serialize)]
struct Listed<'a> {
    schema: u32,
    #[serde(flatten)]
    owner: &'a ConversationOwner,
    /// The session of this home whose conversation it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_by: Option<SessionId>,
}

pub fn list(context: &Context, json: bool) -> Result<()> {
    let mut foreign = foreign::owners(&context.engine.home, &variable)?;
    foreign.retain(|owner| !owner.ours);
    let kept = kept(context, &foreign)?;
    let keeps = |owner: &ConversationOwner| kept.iter().find(|view| is_of(view, owner));
    if json {
        return crate::say::text(&as_json(&foreign, keeps));
    }
    crate::say::text(&table(&foreign, context.style))?;
    let known = |owner: &&ConversationOwner| owner.native_id.is_some();
    for owner in foreign.iter().filter(known) {
        if let Some(view) = keeps(owner) {
            let id = view.id;
            let what_to_do = match (view.archived, view.ended) {
                (true, _) => format!("restore it first: ostler restore {id}"),
                (false, true) => format!("take it over: ostler resume --takeover {id}"),
                (false, false) => format!("it runs in both; see ostler who {id}"),
            };
            tell!("process {} is using the conversation of session {}; {what_to_do}", owner.pid, called(view));
        }
    }
    if foreign.iter().filter(known).any(|owner| keeps(owner).is_none()) {
        tell!("take one over: ostler adopt --takeover CONVERSATION");
    }
    Ok(())
}

/// The sessions of this home whose conversations these processes may have open.
fn kept(context: &Context, owners: &[ConversationOwner]) -> Result<Vec<View>> {
    if owners.iter().all(|owner| owner.native_id.is_none()) {
        return Ok(Vec::new());
    }
    let views = sessions::list(&context.engine, true, |one| one)?.into_iter().filter_map(|listed| match listed {
        sessions::Listed::Good(view) => Some(*view),
        sessions::Listed::Bad(_) => None,
    });
    Ok(views.filter(|view| owners.iter().any(|owner| is_of(view, owner))).collect())
}

fn is_of(view: &View, owner: &ConversationOwner) -> bool {
    view.native_id.is_some() && view.native_id == owner.native_id && view.conversation_agent() == owner.agent
}

/// Holders are plain data and always have a JSON form.
fn as_json<'a>(owners: &[ConversationOwner], keeps: impl Fn(&ConversationOwner) -> Option<&'a View>) -> String {
    let lines: Vec<String> = owners
        .iter()
        .map(|owner| {
            let kept_by = keeps(owner).map(|view| view.id);
            serde_json::to_string(&Listed { schema: SCHEMA, owner, kept_by }).unwrap_or_default()
        })
        .collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

fn table(owners: &[ConversationOwner], style: Style) -> String {
    let width = if std::io::stdout().is_terminal() { ostler_engine::process::window(std::io::stdout()) } else { None };
    let head = |text: &str| Cell::painted(text, move |text| style.dim(text));
    let mut rows = vec![["AGENT", "PID", "AGE", "STATUS", "TERMINAL", "CONVERSATION", "WHERE"].map(head).into()];
    rows.extend(owners.iter().map(|owner| {
        let or_dash = |text: &Option<String>| Cell::new(text.as_deref().unwrap_or("-"));
        vec![
            Cell::new(&owner.agent),
            Cell::painted(&owner.pid.to_string(), move |text| style.bold(text)),
            Cell::new(&age(now().as_second() - owner.since.as_second())),
            or_dash(&owner.status),
            or_dash(&owner.terminal),
            or_dash(&owner.native_id),
            Cell::painted(&owner.cwd.as_deref().map_or("-".to_owned(), tilde), move |text| style.dim(text)),
        ]
    }));
    lay_out(&rows, width.map(|(_, columns)| usize::from(columns)))
}

/// What a process was started as, short enough for a line.
pub fn command_words(owner: &ConversationOwner) -> String {
    cut(&owner.command.join(" "), 120)
}
