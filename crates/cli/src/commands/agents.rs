//! `ostler agents`: which agents there are, whether they are installed, and what works with them.

use super::ls::tilde;
use crate::args::Agents;
use crate::context::Context;
use crate::exit::{Code, Result};
use crate::ui::style::Style;
use crate::ui::table::{Cell, lay_out};
use ostler_engine::installed::{Abilities, AgentInfo, Messages, PROTOCOL_EXAMPLE};

pub fn run(context: &Context, args: &Agents) -> Result<Code> {
    let listed = context.engine.agents();
    let text = if args.json { as_json(&listed) } else { as_text(&listed, context.style) };
    crate::say::text(&text)?;
    Ok(Code::Succeeded)
}

/// Plain data, which always has a JSON form.
fn as_json(listed: &[AgentInfo]) -> String {
    let lines: Vec<String> = listed.iter().map(|one| serde_json::to_string(one).unwrap_or_default()).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

fn as_text(listed: &[AgentInfo], style: Style) -> String {
    let head = |text: &str| Cell::painted(text, style, Style::dim);
    let mut rows = vec![["", "AGENT", "VERSION", "WORKS", "PROGRAM"].map(head).into()];
    rows.extend(listed.iter().map(|one| {
        let (mark, program) = match (&one.program, one.npm_package) {
            (None, None) if one.installed => {
                ("✔", format!("any program that speaks ACP: ostler run acp \"…\" -- {}", PROTOCOL_EXAMPLE))
            }
            (Some(path), _) => ("✔", tilde(&path.to_string_lossy())),
            (None, Some(package)) => ("-", format!("not installed: npm install -g {package}")),
            (None, None) => ("-", "not installed".to_owned()),
        };
        vec![
            Cell::painted(mark, style, if one.installed { Style::green } else { Style::dim }),
            Cell::painted(&one.name, style, Style::bold),
            Cell::new(one.version.as_deref().unwrap_or("-")),
            Cell::new(&words(one.abilities)),
            Cell::painted(&program, style, Style::dim),
        ]
    }));
    lay_out(&rows, None)
}

fn words(abilities: Abilities) -> String {
    let messages = match abilities.messages {
        Messages::OneProcess => "messages",
        Messages::ProcessPerTurn => "messages (one process each)",
        Messages::None => "",
    };
    let words = [
        (abilities.headless, "headless"),
        (abilities.terminal, "terminal"),
        (!messages.is_empty(), messages),
        (abilities.asks, "asks"),
        (abilities.saved_proof, "proof of saving"),
    ];
    let works: Vec<&str> = words.into_iter().filter(|(works, _)| *works).map(|(_, word)| word).collect();
    works.join(", ")
}
