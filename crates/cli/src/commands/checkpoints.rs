//! `ostler checkpoints`: lists the copies of a transcript that were taken while the agent worked, and restores one.

use crate::args::{Checkpoints, CheckpointsAction};
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::say;
use crate::ui::called::called_at;
use crate::ui::table::{Cell, lay_out, window};
use crate::ui::time::{age, size};
use ostler_engine::checkpoints::{Checkpoint, LastMessage, NotChosen, Speaker, choose, name};
use ostler_engine::process::now;

pub fn run(context: &Context, args: &Checkpoints) -> Result<Code> {
    match (&args.action, &args.id) {
        (Some(CheckpointsAction::Restore { id, time }), _) => restore(context, id, time),
        (None, Some(id)) => list(context, id, args.json),
        (None, None) => Err(Failure::usage("a session is missing; name one: ostler checkpoints ID")),
    }
}

/// Below this width there is no room for times.
const NARROW: usize = 60;
/// The width that output on a pipe is made for.
const PIPE: usize = 160;

fn list(context: &Context, word: &str, json: bool) -> Result<Code> {
    let place = context.engine.select(word)?;
    let taken = context.engine.checkpoints(&place)?;
    if json {
        for one in &taken {
            say!("{}", serde_json::to_value(one).unwrap_or_default())?;
        }
        return Ok(Code::Succeeded);
    }
    if taken.is_empty() {
        say!("{}: no checkpoints; they are taken while an agent that has a transcript works", called_at(&place))?;
        return Ok(Code::Succeeded);
    }
    let now = now().as_second();
    // In a narrow window its age identifies a checkpoint as well as its time does.
    let window = window();
    let narrow = window.is_some_and(|columns| columns < NARROW);
    let shown = |time: String, age: String, size: String, message: String| -> Vec<Cell> {
        let cells = if narrow { vec![age, size, message] } else { vec![time, age, size, message] };
        cells.iter().map(|text| Cell::new(text)).collect()
    };
    let title = |text: &str| text.to_owned();
    let mut rows = vec![shown(title("TIME"), title("AGE"), title("SIZE"), title("LAST MESSAGE"))];
    let all: Vec<Checkpoint> = taken.iter().map(|one| one.checkpoint.clone()).collect();
    for one in &taken {
        let since = age(now - one.checkpoint.at.as_second());
        let message = in_a_line(one.last.as_ref());
        rows.push(shown(name(&all, &one.checkpoint), since, size(one.checkpoint.length), message));
    }
    crate::say::text(&lay_out(&rows, Some(window.unwrap_or(PIPE))))?;
    Ok(Code::Succeeded)
}

/// The first line of a message. A person's message has the same mark as in the log.
fn in_a_line(message: Option<&LastMessage>) -> String {
    let first = |text: &str| text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned();
    match message {
        Some(LastMessage { by: Speaker::Person, text }) => format!("› {}", first(text)),
        Some(LastMessage { by: Speaker::Agent, text }) => first(text),
        None => "-".to_owned(),
    }
}

fn restore(context: &Context, word: &str, time: &str) -> Result<Code> {
    let place = context.engine.select(word)?;
    let all = context.engine.checkpoint_times(&place)?;
    let chosen = choose(&all, time, now())
        .map_err(|not| Failure::usage(format!("{}: {}", called_at(&place), not_chosen(time, &not))))?;
    let before = context.engine.restore_checkpoint(&place, &chosen)?;
    say!("{}: transcript restored from the checkpoint of {}", called_at(&place), name(&all, &chosen))?;
    if let Some(before) = before {
        say!("backup of the replaced transcript: {}", before.display())?;
    }
    Ok(Code::Succeeded)
}

fn not_chosen(time: &str, not: &NotChosen) -> String {
    match not {
        NotChosen::NoCheckpoints => "there are no checkpoints".to_owned(),
        NotChosen::NoneOfThatTime { last } => format!("no checkpoint {time:?}; the last is {last}"),
        NotChosen::Ambiguous { newest, more } => {
            let more = if *more == 0 { String::new() } else { format!(", and {more} older") };
            format!("{time:?} is ambiguous; type one of: {}{more}", newest.join(", "))
        }
    }
}
