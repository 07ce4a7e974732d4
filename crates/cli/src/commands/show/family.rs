//! The family of a session as a small tree: its parent, itself, and its children.

use crate::commands::ls::state_word;
use ostler_core::view::View;
use ostler_engine::show::Family;

/// One line for each session; nothing for a session without relatives.
pub fn lines(family: &Family, view: &View) -> Vec<String> {
    let mut lines = Vec::new();
    let mut indent = "";
    match (&family.parent, view.parent) {
        (Some(parent), _) => lines.push(named(parent)),
        (None, Some(id)) => lines.push(format!("{id}  purged")),
        (None, None) => {}
    }
    if lines.is_empty() && family.children.is_empty() {
        return lines;
    }
    if lines.is_empty() {
        lines.push(format!("{}  this one", view.id));
    } else {
        lines.push(format!("└─ {}  this one", view.id));
        indent = "   ";
    }
    let last = family.children.len().saturating_sub(1);
    lines.extend(family.children.iter().enumerate().map(|(place, child)| {
        let branch = if place == last { "└─" } else { "├─" };
        format!("{indent}{branch} {}", named(child))
    }));
    lines
}

fn named(view: &View) -> String {
    let name = view.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
    let origin = view.origin.map(|origin| format!("{}, ", origin.word())).unwrap_or_default();
    format!("{}{name}  {origin}{}, {}", view.id, view.agent, state_word(view).1)
}
