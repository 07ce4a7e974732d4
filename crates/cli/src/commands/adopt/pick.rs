//! `ostler adopt` without a conversation: offers the newest conversations that no session has, and a person picks one.
//! Without a terminal it is an error that asks for the name of one.

use crate::commands::attach;
use crate::commands::ls::tilde;
use crate::context::{Context, variable};
use crate::exit::{Code, Failure, Result};
use crate::ui::table::{Cell, cut, lay_out};
use crate::ui::time::age;
use ostler_engine::foreign::about::{self, About};
use ostler_engine::foreign::stored::{self, Stored};
use ostler_engine::list::{Listed, list};
use std::collections::HashSet;
use std::time::SystemTime;

/// How many conversations are offered. Each is opened, to show what it is about.
const OFFERED: usize = 50;

pub fn choose(context: &Context) -> Result<String> {
    if !attach::is_possible() {
        return Err(Failure::usage("the conversation is missing; name it: ostler adopt CONVERSATION"));
    }
    let offered = newest(context)?;
    if offered.is_empty() {
        let words = "no conversation was found that ostler does not keep; start one: ostler run";
        return Err(Failure::new(Code::NoSession, words));
    }
    let lines = lay_out(&offered.iter().map(row).collect::<Vec<_>>(), None).lines().map(str::to_owned).collect();
    match attach::choose(context.style, "adopt", lines)?.and_then(|place| offered.get(place)) {
        Some((stored, _)) => Ok(stored.native_id.clone()),
        None => Err(Failure::usage("no conversation was chosen; nothing was done")),
    }
}

/// The conversations that no session of ours has. A conversation that cannot be read is not offered.
fn newest(context: &Context) -> Result<Vec<(Stored, About)>> {
    let ours: HashSet<String> = list(&context.engine, true, |one| one)?
        .into_iter()
        .filter_map(|listed| match listed {
            Listed::Good(view) => view.native_id,
            Listed::Bad(_) => None,
        })
        .collect();
    let others = stored::all(&variable)?.into_iter().filter(|one| !ours.contains(&one.native_id));
    let described = others.filter_map(|one| Some((about::beginning(&one).ok()??, one)));
    Ok(described.take(OFFERED).map(|(about, one)| (one, about)).collect())
}

fn row((stored, about): &(Stored, About)) -> Vec<Cell> {
    let seconds = SystemTime::now().duration_since(stored.updated).map_or(0, |time| time.as_secs());
    let prompt = about.prompt.as_deref().and_then(|text| text.lines().find(|line| !line.trim().is_empty()));
    [
        stored.native_id.get(..8).unwrap_or(&stored.native_id),
        stored.agent,
        &age(i64::try_from(seconds).unwrap_or(i64::MAX)),
        &cut(&ostler_screen::printable(prompt.unwrap_or_default().trim()), 50),
        &about.cwd.as_deref().map(tilde).unwrap_or_default(),
    ]
    .map(Cell::new)
    .into()
}
