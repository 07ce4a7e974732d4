//! `ostler who`: every process that uses a conversation, ours or not, described so that a person can find it.

use super::foreign::command_words;
use crate::args::Who;
use crate::context::Context;
use crate::exit::{Code, Result};
use crate::ui::style::Style;
use crate::ui::table::{Cell, lay_out};
use crate::ui::time::age;
use ostler_engine::Users;
use ostler_engine::process::now;

pub fn run(context: &Context, args: &Who) -> Result<Code> {
    let answer = context.engine.who(&args.id)?;
    let text = match args.json {
        true => serde_json::to_string_pretty(&answer).map(|text| text + "\n").unwrap_or_default(),
        false => as_text(&answer, &args.id, context.style),
    };
    crate::say::text(&text)?;
    Ok(Code::Succeeded)
}

fn as_text(answer: &Users, word: &str, style: Style) -> String {
    if answer.owners.is_empty() {
        return format!("no process is using {}\n", ostler_screen::printable(word));
    }
    let head = |text: &str| Cell::painted(text, style, Style::dim);
    let mut rows = vec![["PID", "OWNER", "AGE", "TERMINAL", "KNOWN BY", "COMMAND"].map(head).into()];
    rows.extend(answer.owners.iter().map(|owner| {
        let whose = match owner.session {
            Some(session) if owner.ours => format!("session {session}"),
            Some(session) => format!("session {session}, another home"),
            None => "not started by ostler".to_owned(),
        };
        let certain = if owner.native_id.is_some() || owner.ours { "" } else { ", perhaps another conversation" };
        vec![
            Cell::painted(&owner.pid.to_string(), style, Style::bold),
            Cell::new(&whose),
            Cell::new(&age(now().as_second() - owner.since.as_second())),
            Cell::new(owner.terminal.as_deref().unwrap_or("-")),
            Cell::new(&format!("{}{certain}", owner.known_by.words())),
            Cell::new(&command_words(owner)),
        ]
    }));
    lay_out(&rows, None)
}
