//! `ostler resume` without an id: the newest conversations that can be continued. A person at a terminal chooses one.
//! Without a terminal it is an error that names the newest, so that a script resumes nothing by accident.

use crate::commands::ls::tilde;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::tell;
use crate::ui::table::{Cell, lay_out};
use crate::ui::time::age;
use ostler_core::view::View;
use ostler_engine::list::{Listed, list};
use ostler_engine::process::now;
use std::io::IsTerminal;

/// How many are offered.
const OFFERED: usize = 5;

pub fn choose(context: &Context) -> Result<String> {
    let candidates = candidates(context)?;
    let Some(newest) = candidates.first() else {
        return Err(Failure::new(
            Code::NoSession,
            "no ended conversation can be resumed; list sessions with: ostler ls",
        ));
    };
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return Err(Failure::usage(format!(
            "a session is missing; the newest is {} ({}, {} ago, {}): ostler resume {0} \"…\"",
            newest.id,
            newest.agent,
            age_of(newest),
            tilde(&newest.cwd)
        )));
    }
    tell!("{}", table(&candidates).trim_end());
    let answer = ask("Resume which one? [1] ")?;
    let chosen = match answer.as_str() {
        "" => Some(newest),
        number => number.parse::<usize>().ok().and_then(|number| candidates.get(number.checked_sub(1)?)),
    };
    chosen
        .map(|view| view.id.to_string())
        .ok_or_else(|| Failure::usage(format!("{answer:?} is not one of these; nothing was resumed")))
}

fn ask(question: &str) -> Result<String> {
    crate::follow::err(question.as_bytes())?;
    let mut line = String::new();
    if std::io::stdin().read_line(&mut line)? == 0 {
        return Err(Failure::usage("no session was chosen; nothing was resumed"));
    }
    Ok(line.trim().to_owned())
}

fn candidates(context: &Context) -> Result<Vec<View>> {
    let mut found: Vec<View> = list(&context.engine, true, |one| one)?
        .into_iter()
        .filter_map(|listed| match listed {
            Listed::Good(view) => Some(*view),
            Listed::Bad(_) => None,
        })
        .filter(|view| view.ended && !view.archived && view.agent != "command" && view.native_id.is_some())
        .collect();
    found.sort_by_key(|view| std::cmp::Reverse(view.updated));
    found.truncate(OFFERED);
    Ok(found)
}

fn age_of(view: &View) -> String {
    age(now().as_second() - view.updated.as_second())
}

fn table(views: &[View]) -> String {
    let rows: Vec<Vec<Cell>> = (1..)
        .zip(views)
        .map(|(number, view)| {
            let name = view.name.as_deref().map_or(view.id.to_string(), |name| format!("{} {name}", view.id));
            let last = view.last.as_deref().and_then(|last| last.lines().next()).unwrap_or_default();
            [&format!("{number}"), &name, &view.agent, &age_of(view), &tilde(&view.cwd), last].map(Cell::new).into()
        })
        .collect();
    lay_out(&rows, ostler_engine::process::window(std::io::stderr()).map(|(_, columns)| usize::from(columns)))
}
