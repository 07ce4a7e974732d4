//! `ostler who`: every process that holds a conversation, ours or not, named so that a person can find it.

use super::foreign::command_words;
use super::ls::list;
use crate::args::Who;
use crate::context::{Context, variable};
use crate::exit::{Code, Failure, Result};
use crate::foreign::{self, Evidence, Holder, processes};
use crate::one_writer::name_sessions;
use crate::ui::style::Style;
use crate::ui::table::{Cell, lay_out};
use crate::ui::time::age;
use ostler_core::SCHEMA;
use ostler_core::id::SessionId;
use ostler_core::view::View;
use ostler_store::home::NotFound;
use ostler_store::look;
use ostler_sys::clock;
use serde::Serialize;

/// The object behind `who --json`.
#[derive(Debug, Serialize)]
struct Answer {
    schema: u32,
    session: Option<SessionId>,
    agent: Option<String>,
    native_id: Option<String>,
    holders: Vec<Holder>,
}

pub fn run(context: &Context, args: &Who) -> Result<Code> {
    let holders = foreign::holders(&context.home, &variable)?;
    let answer = match session_of(context, &args.id)? {
        Some(view) => {
            let mut answer = about_session(&view, holders);
            if let Some(native_id) = &answer.native_id {
                name_sessions(view.conversation_agent(), native_id, &mut answer.holders)?;
            }
            answer
        }
        None => {
            let running = holders.iter().filter_map(|holder| holder.native_id.as_deref());
            let id = meant(&args.id, running)?.unwrap_or(&args.id).to_owned();
            let mut holders: Vec<Holder> =
                holders.into_iter().filter(|holder| holder.native_id.as_ref() == Some(&id)).collect();
            for agent in ostler_agents::all() {
                name_sessions(agent.name(), &id, &mut holders)?;
            }
            about_conversation(&id, holders)?
        }
    };
    let text = match args.json {
        true => serde_json::to_string_pretty(&answer).map(|text| text + "\n").unwrap_or_default(),
        false => as_text(&answer, &args.id, context.style),
    };
    crate::say::text(&text)?;
    Ok(Code::Succeeded)
}

/// The session that is meant: by its own id or name, or by the agent's name for its conversation.
pub fn session_of(context: &Context, word: &str) -> Result<Option<View>> {
    match context.home.select(word) {
        Ok(place) => Ok(Some(look::look(&place)?)),
        Err(NotFound::None(_)) => {
            let views: Vec<View> = list(context, true, |one| one)?
                .into_iter()
                .filter_map(|listed| match listed {
                    super::ls::Listed::Good(view) => Some(*view),
                    super::ls::Listed::Bad(_) => None,
                })
                .collect();
            let id = meant(word, views.iter().filter_map(|view| view.native_id.as_deref()))?.map(str::to_owned);
            Ok(views.into_iter().find(|view| id.is_some() && view.native_id == id))
        }
        Err(error @ (NotFound::Ambiguous { .. } | NotFound::Store(_))) => Err(error.into()),
    }
}

/// Shorter words are no prefix of a conversation's name: too much begins with them.
const SHORTEST_PREFIX: usize = 4;

/// The conversation that is meant by its name or by the beginning of it.
fn meant<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Result<Option<&'a str>> {
    let mut found: Vec<&str> = known.filter(|id| id.starts_with(word)).collect();
    found.sort_unstable();
    found.dedup();
    if let Some(exact) = found.iter().find(|id| **id == word) {
        return Ok(Some(exact));
    }
    match found.as_slice() {
        _ if word.len() < SHORTEST_PREFIX => Ok(None),
        [] => Ok(None),
        [one] => Ok(Some(one)),
        [one, other, ..] => Err(Failure::usage(format!("{word:?} is ambiguous: {one}, {other}; type more characters"))),
    }
}

fn about_session(view: &View, found: Vec<Holder>) -> Answer {
    let same = |holder: &Holder| match (&holder.native_id, &view.native_id) {
        (Some(one), Some(other)) => one == other,
        // Whoever has all the agent's conversations open may be at this one.
        (None, Some(_)) => {
            holder.agent == view.conversation_agent() && (!holder.ours || holder.session == Some(view.id))
        }
        (Some(_) | None, None) => holder.session == Some(view.id),
    };
    let mut holders: Vec<Holder> = found.into_iter().filter(same).collect();
    if let Some(pid) = view.pid
        && holders.iter().all(|holder| holder.pid != pid)
    {
        holders.extend(own_agent(view, pid));
    }
    Answer {
        schema: SCHEMA,
        session: Some(view.id),
        agent: Some(view.agent.clone()),
        native_id: view.native_id.clone(),
        holders,
    }
}

/// The session's own process, of which the agent's files betray nothing.
fn own_agent(view: &View, pid: i32) -> Option<Holder> {
    let process = processes::describe(&processes::of_this_user(pid).ok()??)?;
    let mut holder = Holder::new(view.conversation_agent(), view.native_id.clone(), Evidence::Session, process);
    (holder.ours, holder.session) = (true, Some(view.id));
    Some(holder)
}

/// A conversation that no session of ours knows.
fn about_conversation(word: &str, holders: Vec<Holder>) -> Result<Answer> {
    if holders.is_empty() && !is_native_id(word) {
        return Err(Failure::new(
            Code::NoSession,
            format!(
                "{word:?} is neither a session nor a running conversation; list them with: ostler ls -a, ostler ls --foreign"
            ),
        ));
    }
    let agent = holders.first().map(|holder| holder.agent.clone());
    Ok(Answer { schema: SCHEMA, session: None, agent, native_id: Some(word.to_owned()), holders })
}

/// Agents name conversations by UUIDs, and opencode by texts of its own.
fn is_native_id(word: &str) -> bool {
    uuid::Uuid::try_parse(word).is_ok() || word.starts_with("ses_")
}

fn as_text(answer: &Answer, word: &str, style: Style) -> String {
    if answer.holders.is_empty() {
        return format!("no process is using {}\n", ostler_screen::printable(word));
    }
    let head = |text: &str| Cell::painted(text, move |text| style.dim(text));
    let mut rows = vec![["PID", "WHOSE", "AGE", "TERMINAL", "KNOWN BY", "COMMAND"].map(head).into()];
    rows.extend(answer.holders.iter().map(|holder| {
        let whose = match holder.session {
            Some(session) if holder.ours => format!("session {session}"),
            Some(session) => format!("session {session}, another home"),
            None => "not started by ostler".to_owned(),
        };
        let certain = if holder.native_id.is_some() || holder.ours { "" } else { ", perhaps another conversation" };
        vec![
            Cell::painted(&holder.pid.to_string(), move |text| style.bold(text)),
            Cell::new(&whose),
            Cell::new(&age(clock::now().as_second() - holder.since.as_second())),
            Cell::new(holder.terminal.as_deref().unwrap_or("-")),
            Cell::new(&format!("{}{certain}", holder.known_by.words())),
            Cell::new(&command_words(holder)),
        ]
    }));
    lay_out(&rows, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_name_will_do_when_it_is_that_of_one_conversation() {
        let known = ["01a1ddbd-408d", "01a1ddbd-408d", "01a1ffff-0000", "ses_7f2c"];
        let of = |word: &str| meant(word, known.into_iter()).map_err(|failure| failure.code);
        assert_eq!(of("01a1d"), Ok(Some("01a1ddbd-408d")));
        assert_eq!(of("01a1"), Err(Code::Usage));
        assert_eq!(of("01a1ffff-0000"), Ok(Some("01a1ffff-0000")));
        assert_eq!((of("ses"), of("ses_"), of("nope1")), (Ok(None), Ok(Some("ses_7f2c")), Ok(None)));
    }

    #[test]
    fn a_word_that_no_agent_would_give_a_conversation_is_a_mistake_and_not_an_empty_answer() {
        assert!(about_conversation("01a1ddbd-408d-7262-88d9-97e7e2d532f0", Vec::new()).is_ok());
        assert!(about_conversation("ses_7f2c", Vec::new()).is_ok());
        let mistake = about_conversation("my-sesion", Vec::new()).map(|_| ()).map_err(|failure| failure.code);
        assert_eq!(mistake, Err(Code::NoSession));
    }
}
