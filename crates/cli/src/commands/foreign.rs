//! `ostler ls --foreign`: conversations that run outside ostler, with who runs them. Looks, and touches nothing.

use super::ls::tilde;
use crate::context::{Context, variable};
use crate::exit::Result;
use crate::foreign::{self, Holder};
use crate::say::tell;
use crate::ui::style::Style;
use crate::ui::table::{Cell, cut, lay_out};
use crate::ui::time::age;
use ostler_core::SCHEMA;
use ostler_sys::clock;
use serde::Serialize;
use std::io::IsTerminal;

/// A holder as an object of its own, with the version of its form.
#[derive(Serialize)]
struct Listed<'a> {
    schema: u32,
    #[serde(flatten)]
    holder: &'a Holder,
}

pub fn list(context: &Context, json: bool) -> Result<()> {
    let mut strangers = foreign::holders(&context.home, &variable)?;
    strangers.retain(|holder| !holder.ours);
    let text = if json { as_json(&strangers) } else { table(&strangers, context.style) };
    crate::say::text(&text)?;
    if !json && strangers.iter().any(|holder| holder.native_id.is_some()) {
        tell!("take one over: ostler adopt --takeover CONVERSATION");
    }
    Ok(())
}

/// Holders are plain data and always have a JSON form.
fn as_json(holders: &[Holder]) -> String {
    let lines: Vec<String> = holders
        .iter()
        .map(|holder| serde_json::to_string(&Listed { schema: SCHEMA, holder }).unwrap_or_default())
        .collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

fn table(holders: &[Holder], style: Style) -> String {
    let width = if std::io::stdout().is_terminal() { ostler_sys::pty::size(std::io::stdout()) } else { None };
    let head = |text: &str| Cell::painted(text, move |text| style.dim(text));
    let mut rows = vec![["AGENT", "PID", "AGE", "STATUS", "TERMINAL", "CONVERSATION", "WHERE"].map(head).into()];
    rows.extend(holders.iter().map(|holder| {
        let or_dash = |text: &Option<String>| Cell::new(text.as_deref().unwrap_or("-"));
        vec![
            Cell::new(&holder.agent),
            Cell::painted(&holder.pid.to_string(), move |text| style.bold(text)),
            Cell::new(&age(clock::now().as_second() - holder.since.as_second())),
            or_dash(&holder.status),
            or_dash(&holder.terminal),
            or_dash(&holder.native_id),
            Cell::painted(&holder.cwd.as_deref().map_or("-".to_owned(), tilde), move |text| style.dim(text)),
        ]
    }));
    lay_out(&rows, width.map(|(_, columns)| usize::from(columns)))
}

/// What a process was started as, short enough for a line.
pub fn command_words(holder: &Holder) -> String {
    cut(&holder.command.join(" "), 120)
}
