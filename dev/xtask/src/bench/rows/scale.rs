//! What commands cost with thousands of sessions: the cost has to depend on what has changed, not on how many sessions
//! there are.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::listing::multiply;
use crate::bench::Bench;
use crate::bench::drive::ostler::{Ostler, printed_id};
use crate::bench::execute::{LIMIT, processor_ms, run, start};
use crate::bench::measure::{Contender, Entry};
use crate::bench::row::{Goal, Row, Unit};

pub const NAME: &str = "scale";
/// Sessions that ended earlier than this are not listed.
const TWO_DAYS: &str = "172800";
/// The exit code for a session that does not exist.
const NOT_FOUND: i32 = 3;

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = beside_ended(bench, bench.choose(10_000, 200), (10.0, 8.0))?;
    rows.push(events_of_new_ones(bench, bench.choose(10_000, 200))?);
    rows.extend(beside_ended(bench, bench.choose(50_000, 400), (30.0, 20.0))?);
    rows.push(one_of_the_archived(bench, bench.choose(50_000, 400))?);
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

fn beside_ended(bench: &Bench, all: usize, (listed, found): (f64, f64)) -> Result<Vec<Row>> {
    let old = Old::make(bench, all, bench.choose(50, 10))?;
    let shown = run(&mut old.command(&["ls"]))?.stdout;
    if !shown.contains(&format!("{all} ended earlier")) {
        bail!("ls does not count {all} sessions that ended earlier: {shown:?}");
    }
    let prefix = old.id.get(..6).unwrap_or_default();
    let asked: [(&str, &'static str, Vec<&str>, f64); 5] = [
        ("ls", "ostler ls", vec!["ls"], listed),
        ("show by id", "ostler show ID", vec!["show", &old.id], found),
        ("show by name", "ostler show NAME", vec!["show", "job 1"], found),
        ("show by the beginning of an id", "ostler show PREFIX", vec!["show", prefix], found),
        ("show of the newest", "ostler show @last", vec!["show", "@last"], found),
    ];
    let row = |what: &str, entry, goal| {
        Ok::<_, anyhow::Error>(Row {
            name: NAME,
            title: format!("{what}, beside {all} sessions that ended days ago"),
            how: "From before the command is spawned until it has exited. The folders are copies of real ended \
                  sessions under new ids; the clock is two days ahead.",
            unit: Unit::Milliseconds,
            measured: bench.take_turns(vec![entry], bench.choose(30, 3))?,
            goals: vec![Goal::AtMost(goal)],
        })
    };
    let old = &old;
    let mut rows = Vec::new();
    for (what, command, arguments, goal) in asked {
        let entry =
            Entry::new(Contender::Ostler, command, move || Ok(move |_| Ok(run(&mut old.command(&arguments))?.ms)));
        rows.push(row(what, entry, goal)?);
    }
    // A mistyped name is compared with all names.
    let mistyped = Entry::new(Contender::Ostler, "ostler show MISTYPED", move || {
        Ok(move |_| start(&mut old.command(&["show", "jbo 1"]))?.finish_with(NOT_FOUND, LIMIT))
    });
    rows.push(row("show by a mistyped name", mistyped, found)?);
    // The name must be looked up among all sessions.
    let named = Entry::new(Contender::Ostler, "ostler run -d --name NEW -- true", move || {
        Ok(move |round| {
            let started = run(&mut old.command(&["run", "-d", "--name", &format!("new {round}"), "--", "true"]))?;
            run(&mut old.command(&["wait", printed_id(&started.stdout)?]))?;
            Ok(started.ms)
        })
    });
    rows.push(row("start with a name", named, found)?);
    Ok(rows)
}

/// What `events -f` costs for each session that comes and ends.
fn events_of_new_ones(bench: &Bench, all: usize) -> Result<Row> {
    let old = Old::make(bench, all, bench.choose(50, 10))?;
    let short = bench.choose(20, 3);
    let entry = Entry::new(Contender::Ostler, "ostler events -f", || {
        let old = &old;
        Ok(move |_| {
            let events = start(&mut old.ostler.command(["events", "-f", "--since", "0s"]))?;
            events.until_it_waits()?;
            let before = processor_ms(events.pid())?;
            for _ in 0..short {
                let id = old.ostler.launch(["--", "true"])?;
                run(&mut old.ostler.command(["wait", &id]))?;
                old.ostler.until_left(&id)?;
            }
            events.until_it_waits()?;
            let used = processor_ms(events.pid())? - before;
            let printed = events.end()?;
            let ends = printed.lines().filter(|line| line.contains("\"outcome\"")).count();
            if ends < short {
                bail!("events -f printed the ends of {ends} sessions instead of {short}");
            }
            #[expect(clippy::cast_precision_loss, reason = "some dozens")]
            Ok(used / short as f64)
        })
    });
    Ok(Row {
        name: NAME,
        title: format!("processor time of events -f for each short session, beside {all} sessions that ended days ago"),
        how: "Sessions of `true`, one after the other; the processor time that `events -f` uses from the first until it waits \
              again, divided by their number.",
        unit: Unit::Milliseconds,
        measured: bench.take_turns(vec![entry], bench.choose(5, 1))?,
        goals: vec![Goal::AtMost(1.0)],
    })
}

/// How many sessions are archived with one command: what fits on a command line.
const ARCHIVED_AT_ONCE: usize = 2000;

fn one_of_the_archived(bench: &Bench, all: usize) -> Result<Row> {
    let old = Old::make(bench, all, bench.choose(50, 10))?;
    let entry = Entry::new(Contender::Ostler, "ostler show ID", || {
        let mut ids = Vec::new();
        for folder in std::fs::read_dir(old.ostler.folders())? {
            ids.push(folder?.file_name().to_string_lossy().into_owned());
        }
        for some in ids.chunks(ARCHIVED_AT_ONCE) {
            run(old.ostler.command(["archive"]).args(some))?;
        }
        // What was archived goes to the disk before a sample is taken.
        rustix::fs::sync();
        while !old.ostler.archive_is_listed()? {
            run(&mut old.ostler.command(["show", &old.id]))?;
        }
        let old = &old;
        Ok(move |_| Ok(run(&mut old.ostler.command(["show", &old.id]))?.ms))
    });
    Ok(Row {
        name: NAME,
        title: format!("show of one of {all} archived sessions"),
        how: "From before the command is spawned until it has exited. Copies of real ended sessions, each archived by ostler. \
              An earlier command has noted which sessions there are; that is possible two seconds after the last was archived.",
        unit: Unit::Milliseconds,
        measured: bench.take_turns(vec![entry], bench.choose(30, 3))?,
        goals: vec![Goal::AtMost(20.0)],
    })
}

fn beside_living(bench: &Bench) -> Result<Vec<Row>> {
    let (all, some) = (bench.choose(1000, 20), bench.choose(500, 10));
    raise_limit()?;
    let ostler = Ostler::in_new_home(bench)?;
    let living = (0..all).map(|_| ostler.launch(["--", "sleep", "3600"])).collect::<Result<Vec<_>>>()?;
    let row = |title: String, how, entry, goal: f64| {
        let measured = bench.take_turns(vec![entry], bench.choose(20, 3))?;
        let goals = vec![Goal::AtMost(goal)];
        Ok::<_, anyhow::Error>(Row { name: NAME, title, how, unit: Unit::Milliseconds, measured, goals })
    };
    let whole = "From before the command is spawned until it has exited.";
    let run_whole = |command, word: &'static str| {
        let ostler = &ostler;
        Entry::new(Contender::Ostler, command, move || Ok(move |_| Ok(run(&mut ostler.command([word]))?.ms)))
    };
    let waits = Entry::new(Contender::Ostler, "ostler wait ID…", || {
        let arguments: Vec<&str> = std::iter::once("wait").chain(living.iter().map(String::as_str)).collect();
        let ostler = &ostler;
        Ok(move |_| start(&mut ostler.command(&arguments))?.ms_until_it_polls(all))
    });
    let young = bench.take_turns(vec![run_whole("ostler ls", "ls")], bench.choose(20, 3))?;
    let mut rows = vec![Row {
        name: NAME,
        title: format!("ls of {all} living sessions that were started within some seconds"),
        how: whole,
        unit: Unit::Milliseconds,
        measured: young,
        goals: Vec::new(),
    }];
    // A list notes the view of a session once it has not changed for a moment. When only a few are missing, they are
    // not worth a write.
    while ostler.noted_by_lists()? + (all / 16).max(8) < all {
        run(&mut ostler.command(["ls"]))?;
    }
    rows.extend([
        row(format!("ls of {all} living sessions"), whole, run_whole("ostler ls", "ls"), 15.0)?,
        row(format!("doctor beside {all} living sessions"), whole, run_whole("ostler doctor", "doctor"), 60.0)?,
        row(
            format!("wait on {all} sessions, until it waits"),
            "From before the command is spawned until the kernel says that it polls as many descriptors. (With inotify its end \
             takes some milliseconds more, in which the kernel takes the watches away.)",
            waits,
            40.0,
        )?,
    ]);
    // Only once: the sessions cannot be stopped twice.
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

/// For a thousand sockets and some more.
pub(super) fn raise_limit() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?)
}
