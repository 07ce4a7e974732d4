//! What a followed session writes to standard output: the conversation for a person, the final answer for a script
//! (`answer=$(ostler run AGENT "…")`), or JSON. Everything else goes to standard error.

use super::Watching;
use crate::args::Output;
use crate::commands::show;
use crate::context::Context;
use crate::exit::Result;
use crate::follow::{Printer, Show, Talking, give_answer};
use crate::say::say;
use crate::ui::conversation::Talk;
use crate::ui::style::Style;
use ostler_core::outcome::Kind;
use ostler_core::record::Session;
use ostler_core::view::View;
use ostler_engine::content::Runs;
use ostler_engine::{Engine, Place};
use ostler_tui::terminal;
use serde_json::{Value, json};
use std::io::IsTerminal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A command's own output.
    Bytes,
    Conversation,
    /// The answer when the session ends, or with `each_turn` at the end of each turn.
    Answer {
        each_turn: bool,
    },
    Json,
    StreamJson,
}

impl Format {
    pub fn of(engine: &Engine, place: &Place, session: &Session, watching: Watching) -> Result<Format> {
        let converses = engine.converses(place)?;
        Ok(match watching.output {
            _ if !converses => Format::Bytes,
            None if std::io::stdout().is_terminal() => Format::Conversation,
            None | Some(Output::Text) => Format::Answer { each_turn: session.keep },
            Some(Output::Json) => Format::Json,
            Some(Output::StreamJson) => Format::StreamJson,
        })
    }

    pub fn printer(self, engine: &Engine, place: &Place, session: &Session, style: Style) -> Result<Printer> {
        let (show, talking) = match self {
            Format::Bytes => (Show::Raw, Talking::Apart),
            Format::Conversation => (Show::Plain, Talking::Apart),
            Format::Answer { each_turn } => (Show::Plain, Talking::Answer { each_turn }),
            Format::Json => (Show::Plain, Talking::Answer { each_turn: false }),
            Format::StreamJson => {
                say!("{}", json!({ "kind": "session", "id": session.id, "agent": session.agent }))?;
                return Printer::json_lines(engine, place, Runs::Newest);
            }
        };
        let columns = terminal::size(std::io::stderr()).map(|(_, columns)| usize::from(columns));
        Printer::new(engine, place, show, Talk::new(style, columns), talking, Runs::Newest)
    }

    /// Prints the last output: when the session has ended, or asks something that cannot be answered here.
    pub fn conclude(self, context: &Context, place: &Place, view: &View, printer: &mut Printer) -> Result<()> {
        // What was said in a turn that failed or was interrupted is not an answer.
        let outcome = view.outcome.as_ref().filter(|outcome| outcome.kind == Kind::Succeeded);
        let answer = outcome.and_then(|outcome| outcome.text.as_deref());
        match self {
            Format::Bytes | Format::Conversation => {}
            Format::Answer { each_turn: true } => {}
            Format::Answer { each_turn: false } => {
                if outcome.is_some() {
                    give_answer(&printer.take_held(), answer)?;
                }
            }
            Format::Json => say!("{:#}", object(context, place, view, answer)?)?,
            Format::StreamJson => {
                let mut result = object(context, place, view, answer)?;
                result["kind"] = json!("result");
                say!("{result}")?;
            }
        }
        Ok(())
    }
}

/// The object of `show --json`, and the answer.
fn object(context: &Context, place: &Place, view: &View, answer: Option<&str>) -> Result<Value> {
    let mut object = show::object(context, place, view)?;
    object["answer"] = json!(answer);
    Ok(object)
}
