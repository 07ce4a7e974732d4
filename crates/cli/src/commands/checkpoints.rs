//! `ostler checkpoints`: the copies of a transcript that were taken while the agent worked, and putting one back.

use crate::args::{Checkpoints, CheckpointsAction};
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::say;
use crate::still::{NotStill, Still};
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
        (None, None) => Err(Failure::usage("of which session? ostler checkpoints ID")),
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
        say!("{}: no checkpoints; they are taken while an agent with a transcript works", place.id)?;
        return Ok(Code::Succeeded);
    }
    let now = clock::now().as_second();
    let mut rows = vec![["TIME", "AGE", "SIZE", "COPY"].map(Cell::new).into()];
    rows.extend(all.iter().map(|one| {
        let since = age(now - one.at.as_second());
        [written(one.at), since, size(one.length), one.copy.to_string()].map(|text| Cell::new(&text)).into()
    }));
    crate::say::text(&lay_out(&rows, None))?;
    Ok(Code::Succeeded)
}

fn restore(context: &Context, word: &str, time: &str) -> Result<Code> {
    let place = context.home.select(word)?;
    let folder = place.open()?;
    let all = checkpoints::list(&folder)?;
    let wanted = choose(&all, time, clock::now()).ok_or_else(|| {
        Failure::usage(format!("{}: no checkpoint {time:?}; ostler checkpoints {} lists them", place.id, place.id))
    })?;
    let _still = Still::take(&place).map_err(|not| match not {
        NotStill::Runs => Failure::new(
            Code::Refused,
            format!("{0} still runs and writes its transcript; ostler stop {0} ends it first", place.id),
        ),
        NotStill::Failed(failure) => failure,
    })?;
    let before = checkpoints::restore(&folder, &wanted)?;
    // What we do ourselves is no surprise at the next resume.
    checkpoints::save(&folder, &wanted.of, clock::now())?;
    say!("{}: transcript restored as it was {}", place.id, written(wanted.at))?;
    if let Some(before) = before {
        say!("what it was until now: {}", before.display())?;
    }
    Ok(Code::Succeeded)
}

fn written(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The newest one that is not younger than TIME: `last`, an age (`10m`), or a time as the list writes it, or its beginning.
fn choose(all: &[Checkpoint], time: &str, now: Timestamp) -> Option<Checkpoint> {
    if time == "last" {
        return all.last().cloned();
    }
    if let Ok(back) = parse_duration(time) {
        let then = now.as_second() - i64::try_from(back.as_secs()).ok()?;
        return all.iter().rfind(|one| one.at.as_second() <= then).cloned();
    }
    let beginning = time.trim_end_matches('Z');
    all.iter().rfind(|one| one.at.to_string().starts_with(beginning)).cloned()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_chosen_by_word_age_or_time() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let all: Vec<Checkpoint> = [0, 60, 120]
            .iter()
            .map(|&second| Checkpoint { at: at(second), of: "talk.jsonl".into(), copy: 1, length: 1 })
            .collect();
        let second = |time| choose(&all, time, at(180)).map(|one| one.at.as_second());
        assert_eq!(second("last"), Some(120));
        assert_eq!(second("90s"), Some(60));
        assert_eq!(second("1h"), None);
        assert_eq!(second("1970-01-01T00:01"), Some(60));
        assert_eq!(second("1970-01-01"), Some(120));
        assert_eq!(second("yesterday"), None);
    }
}
