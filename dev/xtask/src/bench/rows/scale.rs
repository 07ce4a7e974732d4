//! What commands cost beside thousands of sessions: it is to follow what has changed, not how many there are.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::listing::multiply;
use crate::bench::Bench;
use crate::bench::drive::ostler::Ostler;
use crate::bench::execute::run;
use crate::bench::measure::{Contender, Entry};
use crate::bench::row::{Goal, Row, Unit};

pub const NAME: &str = "scale";
/// Sessions that ended earlier than this are not listed.
const TWO_DAYS: &str = "172800";

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = beside_ended(bench)?;
    rows.extend(beside_living(bench)?);
    Ok(rows)
}

/// A home with many sessions that ended two days ago.
struct Old<'a> {
    ostler: Ostler<'a>,
    clock: PathBuf,
    id: String,
}

impl Old<'_> {
    fn make<'a>(bench: &'a Bench, all: usize, real: usize) -> Result<Old<'a>> {
        let ostler = Ostler::in_new_home(bench)?;
        let name = |number: usize| format!("job {number}");
        let originals = (0..real)
            .map(|number| ostler.launch(["--name", &name(number), "--", "true"]))
            .collect::<Result<Vec<_>>>()?;
        for id in &originals {
            run(&mut ostler.command(["wait", id]))?;
        }
        multiply(&ostler.folders(), &originals, all)?;
        let clock = bench.scratch.file("clock");
        std::fs::write(&clock, TWO_DAYS)?;
        let id = originals.first().context("no session")?.clone();
        Ok(Old { ostler, clock, id })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.ostler.command(arguments);
        command.env("OSTLER_CLOCK", &self.clock);
        command
    }
}

fn beside_ended(bench: &Bench) -> Result<Vec<Row>> {
    let all = bench.choose(10_000, 200);
    let old = Old::make(bench, all, bench.choose(50, 10))?;
    let listed = run(&mut old.command(&["ls"]))?.stdout;
    if !listed.contains(&format!("{all} ended earlier")) {
        bail!("ls does not count {all} sessions that ended earlier: {listed:?}");
    }
    let prefix = old.id.get(..6).unwrap_or_default();
    let asked: [(&str, &'static str, Vec<&str>, f64); 5] = [
        ("ls", "ostler ls", vec!["ls"], 10.0),
        ("show by id", "ostler show ID", vec!["show", &old.id], 8.0),
        ("show by name", "ostler show NAME", vec!["show", "job 1"], 8.0),
        ("show by the beginning of an id", "ostler show PREFIX", vec!["show", prefix], 8.0),
        ("show of the newest", "ostler show @last", vec!["show", "@last"], 8.0),
    ];
    asked
        .into_iter()
        .map(|(what, command, arguments, goal)| {
            let old = &old;
            let entry =
                Entry::new(Contender::Ostler, command, move || Ok(move |_| Ok(run(&mut old.command(&arguments))?.ms)));
            Ok(Row {
                name: NAME,
                title: format!("{what}, beside {all} sessions that ended days ago"),
                how: "From before the command is spawned until it has exited. The folders are copies of real ended \
                      sessions under new ids; the clock is two days ahead.",
                unit: Unit::Milliseconds,
                measured: bench.take_turns(vec![entry], bench.choose(30, 3))?,
                goals: vec![Goal::AtMost(goal)],
            })
        })
        .collect()
}

fn beside_living(bench: &Bench) -> Result<Vec<Row>> {
    let (all, some) = (bench.choose(1000, 20), bench.choose(500, 10));
    raise_limit()?;
    let ostler = Ostler::in_new_home(bench)?;
    let ended = ostler.launch(["--", "true"])?;
    run(&mut ostler.command(["wait", &ended]))?;
    let living = (0..all).map(|_| ostler.launch(["--", "sleep", "3600"])).collect::<Result<Vec<_>>>()?;
    let one = |title: String, how, command, arguments: Vec<String>, goal: f64| {
        let ostler = &ostler;
        let entry =
            Entry::new(Contender::Ostler, command, move || Ok(move |_| Ok(run(&mut ostler.command(&arguments))?.ms)));
        let measured = bench.take_turns(vec![entry], bench.choose(20, 3))?;
        Ok::<_, anyhow::Error>(Row {
            name: NAME,
            title,
            how,
            unit: Unit::Milliseconds,
            measured,
            goals: vec![Goal::AtMost(goal)],
        })
    };
    let whole = "From before the command is spawned until it has exited.";
    let mut waits = vec!["wait".to_owned(), "--any".to_owned(), ended.clone()];
    waits.extend(living.iter().cloned());
    let mut rows = vec![
        one(format!("ls of {all} living sessions"), whole, "ostler ls", vec!["ls".to_owned()], 15.0)?,
        one(format!("doctor beside {all} living sessions"), whole, "ostler doctor", vec!["doctor".to_owned()], 60.0)?,
        one(
            format!("wait on {all} sessions, until it would wait"),
            "The same command with one session that has ended, and --any, so that it returns as soon as all are watched.",
            "ostler wait --any ENDED ID…",
            waits,
            40.0,
        )?,
    ];
    // Once: there is no second time.
    let entry = Entry::new(Contender::Ostler, "ostler stop ID…", || {
        let ostler = &ostler;
        let arguments: Vec<String> = std::iter::once("stop".to_owned()).chain(living.into_iter().take(some)).collect();
        Ok(move |_| Ok(run(&mut ostler.command(&arguments))?.ms))
    });
    rows.push(Row {
        name: NAME,
        title: format!("stop of {some} sessions"),
        how: "From before the command is spawned until all have ended, each with its outcome on the disk. One sample.",
        unit: Unit::Milliseconds,
        measured: bench.take_turns(vec![entry], 1)?,
        goals: vec![Goal::AtMost(1500.0)],
    });
    Ok(rows)
}

/// A thousand sockets, and some.
fn raise_limit() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?)
}
