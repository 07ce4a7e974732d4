//! `ostler checkpoints`: the copies of a transcript that were taken while the agent worked, and putting one back.

use crate::args::{Checkpoints, CheckpointsAction};
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::say;
use crate::still::{NotStill, Still};
use crate::ui::called::called_at;
use crate::ui::table::{Cell, lay_out};
use crate::ui::time::{age, parse_duration, size};
use jiff::Timestamp;
use ostler_store::checkpoints::{self, Checkpoint};
use ostler_store::home::Place;
use ostler_sys::clock;

pub fn run(context: &Context, args: &Checkpoints) -> Result<Code> {
    match (&args.action, &args.id) {
        (Some(CheckpointsAction::Restore { id, time }), _) => restore(context, id, time),
        (None, Some(id)) => list(&context.home.select(id)?, args.json),
        (None, None) => Err(Failure::usage("a session is missing; name one: ostler checkpoints ID")),
    }
}

fn list(place: &Place, json: bool) -> Result<Code> {
    let all = checkpoints::list(&place.open()?)?;
    if json {
        for one in &all {
            say!("{}", serde_json::to_string(one).unwrap_or_default())?;
        }
        return Ok(Code::Succeeded);
    }
    if all.is_empty() {
        say!("{}: no checkpoints; they are taken while an agent that has a transcript works", called_at(place))?;
        return Ok(Code::Succeeded);
    }
    let now = clock::now().as_second();
    let mut rows = vec![["TIME", "AGE", "SIZE", "COPY"].map(Cell::new).into()];
    rows.extend(all.iter().map(|one| {
        let since = age(now - one.at.as_second());
        [name(&all, one), since, size(one.length), one.copy.to_string()].map(|text| Cell::new(&text)).into()
    }));
    crate::say::text(&lay_out(&rows, None))?;
    Ok(Code::Succeeded)
}

fn restore(context: &Context, word: &str, time: &str) -> Result<Code> {
    let place = context.home.select(word)?;
    let folder = place.open()?;
    let all = checkpoints::list(&folder)?;
    let wanted =
        choose(&all, time, clock::now()).map_err(|words| Failure::usage(format!("{}: {words}", called_at(&place))))?;
    let _still = Still::take(&place).map_err(|not| match not {
        NotStill::Runs => Failure::new(
            Code::Refused,
            format!(
                "{} is still running and writing its transcript; stop it first: ostler stop {}",
                called_at(&place),
                place.id
            ),
        ),
        NotStill::Failed(failure) => failure,
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

/// Also among those to come it names one checkpoint.
pub fn to_the_millisecond(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
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
