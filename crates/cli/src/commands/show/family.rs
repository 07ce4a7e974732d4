//! The family of a session as a small tree: who it comes from, itself, and what came from it.

use crate::commands::ls::state_word;
use crate::context::Context;
use crate::exit::Result;
use ostler_core::id::SessionId;
use ostler_core::view::View;
use ostler_store::home::Place;
use ostler_store::look::{Depth, look_to};

/// A session that was purged leaves its children without a parent to show.
pub struct Family {
    parent: Option<View>,
    pub children: Vec<View>,
}

impl Family {
    pub fn of(context: &Context, view: &View) -> Result<Family> {
        let look = |place: &Place| look_to(Depth::Standing, place).ok();
        let parent = view.parent.map(|id| context.engine.home.place_of(id)).transpose()?.flatten();
        let children = context.engine.home.children_of(view.id)?;
        Ok(Family { parent: parent.as_ref().and_then(look), children: children.iter().filter_map(look).collect() })
    }

    /// One line for each; nothing for a session without relatives.
    pub fn lines(&self, view: &View) -> Vec<String> {
        let mut lines = Vec::new();
        let mut indent = "";
        match (&self.parent, view.parent) {
            (Some(parent), _) => lines.push(named(parent)),
            (None, Some(id)) => lines.push(format!("{id}  purged")),
            (None, None) => {}
        }
        if lines.is_empty() && self.children.is_empty() {
            return lines;
        }
        if lines.is_empty() {
            lines.push(format!("{}  this one", view.id));
        } else {
            lines.push(format!("└─ {}  this one", view.id));
            indent = "   ";
        }
        let last = self.children.len().saturating_sub(1);
        lines.extend(self.children.iter().enumerate().map(|(place, child)| {
            let branch = if place == last { "└─" } else { "├─" };
            format!("{indent}{branch} {}", named(child))
        }));
        lines
    }

    pub fn child_ids(&self) -> Vec<SessionId> {
        self.children.iter().map(|child| child.id).collect()
    }
}

fn named(view: &View) -> String {
    let name = view.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
    format!("{}{name}  {}, {}", view.id, view.agent, state_word(view).1)
}
