//! `ostler checkpoints`: the copies of a transcript that were taken while the agent worked, and putting one back.

use crate::args::{Checkpoints, CheckpointsAction};
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::say;
use crate::ui::called::called_at;
use crate::ui::table::{Cell, lay_out, window};
use crate::ui::time::{age, parse_duration, size};
use jiff::Timestamp;
use ostler_agents::recorded::What;
use ostler_core::fact::Fact;
use ostler_engine::quiesced::{NotQuiesced, Quiesced};
use ostler_engine::units::to_the_millisecond;
use ostler_store::checkpoints::{self, Checkpoint};
use ostler_store::folder::Folder;
use ostler_store::home::Place;
use ostler_store::recorded;
use ostler_sys::clock;
use serde_json::{Value, json};
use std::collections::HashMap;

pub fn run(context: &Context, args: &Checkpoints) -> Result<Code> {
    match (&args.action, &args.id) {
        (Some(CheckpointsAction::Restore { id, time }), _) => restore(context, id, time),
        (None, Some(id)) => list(&context.engine.home.select(id)?, args.json),
        (None, None) => Err(Failure::usage("a session is missing; name one: ostler checkpoints ID")),
    }
}

fn list(place: &Place, json: bool) -> Result<Code> {
    let folder = place.open()?;
    let all = checkpoints::list(&folder)?;
    let messages = last_messages(&folder, &all)?;
    if json {
        for (one, message) in all.iter().zip(&messages) {
            let mut object = serde_json::to_value(one).unwrap_or_default();
            let (by, text) = match message {
                Some(What::Told { text }) => ("person", Some(text)),
                Some(What::Agent(Fact::Said { text })) => ("agent", Some(text)),
                Some(What::Agent(_)) | None => ("", None),
            };
            object["last"] = text.map_or(Value::Null, |text| json!({ "by": by, "text": text }));
            say!("{object}")?;
        }
        return Ok(Code::Succeeded);
    }
    if all.is_empty() {
        say!("{}: no checkpoints; they are taken while an agent that has a transcript works", called_at(place))?;
        return Ok(Code::Succeeded);
    }
    let now = clock::now().as_second();
    // Where there is little room, its age names a checkpoint as well as its time does.
    let window = window();
    let narrow = window.is_some_and(|columns| columns < NARROW);
    let shown = |time: String, age: String, size: String, message: String| -> Vec<Cell> {
        let cells = if narrow { vec![age, size, message] } else { vec![time, age, size, message] };
        cells.iter().map(|text| Cell::new(text)).collect()
    };
    let title = |text: &str| text.to_owned();
    let mut rows = vec![shown(title("TIME"), title("AGE"), title("SIZE"), title("LAST MESSAGE"))];
    for (one, message) in all.iter().zip(&messages) {
        let since = age(now - one.at.as_second());
        rows.push(shown(name(&all, one), since, size(one.length), in_a_line(message.as_ref())));
    }
    crate::say::text(&lay_out(&rows, Some(window.unwrap_or(PIPE))))?;
    Ok(Code::Succeeded)
}

/// Below this width there is no room for times.
const NARROW: usize = 60;
/// The width that output on a pipe is made for.
const PIPE: usize = 160;

/// The last message in each. Copies only grow, so what is known of the checkpoint before is not read again.
fn last_messages(folder: &Folder, all: &[Checkpoint]) -> Result<Vec<Option<What>>> {
    let run = folder.run(folder.newest_or_first()?)?;
    let agent = ostler_agents::keeps_conversation(&folder.session()?, &run.record()?);
    let mut known: HashMap<u32, (u64, Option<What>)> = HashMap::new();
    let mut messages = Vec::new();
    for one in all {
        let (from, before) = known.get(&one.copy).cloned().unwrap_or_default();
        let found = match agent {
            Some(agent) if one.length > from => {
                recorded::last_message(agent, &checkpoints::copy(folder, one)?, from..one.length)?
            }
            Some(_) | None => None,
        };
        let message = found.or(before);
        known.insert(one.copy, (one.length.max(from), message.clone()));
        messages.push(message);
    }
    Ok(messages)
}

/// The first line of a message; a person's has the mark that it has in the log.
fn in_a_line(message: Option<&What>) -> String {
    let first = |text: &str| text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned();
    match message {
        Some(What::Told { text }) => format!("› {}", first(text)),
        Some(What::Agent(Fact::Said { text })) => first(text),
        Some(What::Agent(_)) | None => "-".to_owned(),
    }
}

fn restore(context: &Context, word: &str, time: &str) -> Result<Code> {
    let place = context.engine.home.select(word)?;
    let folder = place.open()?;
    let all = checkpoints::list(&folder)?;
    let wanted =
        choose(&all, time, clock::now()).map_err(|words| Failure::usage(format!("{}: {words}", called_at(&place))))?;
    let _still = Quiesced::take(&place).map_err(|not| match not {
        NotQuiesced::Runs => Failure::new(
            Code::Refused,
            format!(
                "{} is still running and writing its transcript; stop it first: ostler stop {}",
                called_at(&place),
                place.id
            ),
        ),
        NotQuiesced::Failed(error) => error.into(),
    })?;
    let before = checkpoints::restore(&folder, &wanted)?;
    // What we do ourselves is no surprise at the next resume.
    checkpoints::settle(&folder, &wanted.of, clock::now())?;
    say!("{}: transcript restored from the checkpoint of {}", called_at(&place), name(&all, &wanted))?;
    if let Some(before) = before {
        say!("backup of the replaced transcript: {}", before.display())?;
    }
    Ok(Code::Succeeded)
}

/// So many of those that could be meant are named.
const NAMED: usize = 5;

/// The time of a checkpoint, as exact as it takes to tell it from the others.
fn name(all: &[Checkpoint], one: &Checkpoint) -> String {
    let alone =
        |written: fn(Timestamp) -> String| all.iter().filter(|other| written(other.at) == written(one.at)).count() == 1;
    [to_the_second, to_the_millisecond].into_iter().find(|&written| alone(written)).unwrap_or(exactly)(one.at)
}

fn to_the_second(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn exactly(at: Timestamp) -> String {
    at.to_string()
}

/// The one that is meant: `last`, the newest of at least this age (`10m`), or that of a time as the list writes it, or of
/// its beginning when no other begins so. Or what is wrong with TIME, in words.
fn choose(all: &[Checkpoint], time: &str, now: Timestamp) -> std::result::Result<Checkpoint, String> {
    let none = || match all.last() {
        Some(last) => format!("no checkpoint {time:?}; the last is {}", name(all, last)),
        None => "there are no checkpoints".to_owned(),
    };
    if time == "last" {
        return all.last().cloned().ok_or_else(none);
    }
    if let Ok(back) = parse_duration(time) {
        let then = now.as_second().saturating_sub_unsigned(back.as_secs());
        return all.iter().rfind(|one| one.at.as_second() <= then).cloned().ok_or_else(none);
    }
    if let Some(one) = all.iter().find(|one| [name(all, one), exactly(one.at)].iter().any(|name| name == time)) {
        return Ok(one.clone());
    }
    let meant: Vec<&Checkpoint> =
        all.iter().filter(|one| exactly(one.at).starts_with(time.trim_end_matches('Z'))).collect();
    match meant[..] {
        [] => Err(none()),
        [one] if !time.is_empty() => Ok(one.clone()),
        _ => {
            let newest: Vec<String> = meant.iter().rev().take(NAMED).map(|one| name(all, one)).collect();
            let more = meant.len() - newest.len();
            let more = if more == 0 { String::new() } else { format!(", and {more} older") };
            Err(format!("{time:?} is ambiguous; type one of: {}{more}", newest.join(", ")))
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn at(millisecond: i64) -> Timestamp {
        Timestamp::from_millisecond(millisecond).unwrap()
    }

    fn taken_at(milliseconds: &[i64]) -> Vec<Checkpoint> {
        let one = |&then: &i64| Checkpoint { at: at(then), of: "talk".into(), copy: 1, length: 1, settled: false };
        milliseconds.iter().map(one).collect()
    }

    #[test]
    fn a_checkpoint_is_chosen_by_word_age_or_time() {
        let all = taken_at(&[0, 60_000, 120_000]);
        let second = |time| choose(&all, time, at(180_000)).map(|one| one.at.as_second()).ok();
        assert_eq!(second("last"), Some(120));
        assert_eq!(second("90s"), Some(60));
        assert_eq!(second("1h"), None);
        assert_eq!(second("1970-01-01T00:01"), Some(60));
        assert_eq!(second("yesterday"), None);
    }

    #[test]
    fn what_could_be_several_is_none_of_them_and_they_are_named() {
        let all = taken_at(&[0, 60_000, 120_000]);
        for time in ["", "1970-01-01", "Z"] {
            let words = choose(&all, time, at(180_000)).unwrap_err();
            assert!(words.ends_with("1970-01-01T00:02:00Z, 1970-01-01T00:01:00Z, 1970-01-01T00:00:00Z"), "{words}");
        }
        assert!(choose(&all[..1], "", at(180_000)).is_err());
        assert!(choose(&[], "", at(180_000)).is_err());
    }

    #[test]
    fn two_of_one_second_are_told_apart() {
        let all = taken_at(&[1_000, 60_250, 60_750]);
        let names: Vec<String> = all.iter().map(|one| name(&all, one)).collect();
        assert_eq!(names, ["1970-01-01T00:00:01Z", "1970-01-01T00:01:00.250Z", "1970-01-01T00:01:00.750Z"]);
        for (one, name) in all.iter().zip(&names) {
            assert_eq!(choose(&all, name, at(180_000)).as_ref(), Ok(one));
        }
        assert!(choose(&all, "1970-01-01T00:01:00Z", at(180_000)).is_err());
    }
}
