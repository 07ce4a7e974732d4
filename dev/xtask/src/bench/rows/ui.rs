//! The dashboard with thousands of sessions: how long it takes to open, how long it takes to draw a key, how much
//! memory it uses; what it costs while nothing happens, and while many sessions stream.

use std::time::Duration;

use anyhow::{Context, Result};

use super::listing::multiply;
use super::long_turn::InTurn;
use super::memory::proportional_kib;
use crate::bench::Bench;
use crate::bench::agent::{COMMAND, TIME};
use crate::bench::drive::ostler::Ostler;
use crate::bench::execute::run;
use crate::bench::measure::{Contender, Entry};
use crate::bench::row::{Goal, Row, Unit};
use crate::bench::terminal::Client;

pub const NAME: &str = "ui";

/// How many keys are typed for one sample. Their 99th percentile is the sample.
const KEYS: usize = 200;
/// Few steps in each direction, so that every key selects another session and draws a frame. After a key the preview of
/// the selected session is drawn as well; the next key is typed when that is done.
const STILL: Duration = Duration::from_millis(30);
/// The last text of the dashboard's first frame.
const DRAWN: &str = "q quit";

/// How long it is measured while sessions stream.
const STREAMING: Duration = Duration::from_secs(10);

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = beside_thousands(bench)?;
    rows.push(while_nothing_happens(bench)?);
    rows.push(while_many_stream(bench)?);
    Ok(rows)
}

/// Opens the dashboard. Returns how long it took until its first frame was shown.
fn open(bench: &Bench, ostler: &Ostler<'_>) -> Result<(Client, f64)> {
    let client = Client::of(bench, &ostler.command(["ui"]))?;
    let took = client.ms_until_shown(&[DRAWN])?;
    Ok((client, took))
}

/// Makes this many sessions that have just ended.
fn leave_ended(bench: &Bench, ostler: &Ostler<'_>, count: usize) -> Result<()> {
    let originals = (0..bench.choose(50, 10)).map(|_| ostler.launch(["--", "true"])).collect::<Result<Vec<_>>>()?;
    for id in &originals {
        run(&mut ostler.command(["wait", id]))?;
    }
    multiply(&ostler.folders(), &originals, count)
}

fn beside_thousands(bench: &Bench) -> Result<Vec<Row>> {
    let (ended, alive) = (bench.choose(10_800, 100), bench.choose(200, 6));
    let ostler = Ostler::in_new_home(bench)?;
    leave_ended(bench, &ostler, ended)?;
    for _ in 0..alive {
        ostler.launch(["--", "sleep", "600"])?;
    }
    let open = || open(bench, &ostler);
    // Once without measuring: the first command that looks writes the indices of ended sessions.
    open()?.0.hang_up()?;
    let row = |title: String, how: &'static str, unit, measured, goal| Row {
        name: NAME,
        title,
        how,
        unit,
        measured,
        goals: vec![Goal::AtMost(goal)],
    };
    let all = ended + alive;
    let opened = Entry::new(Contender::Ostler, "ostler ui", || {
        Ok(|_| {
            let (client, took) = open()?;
            client.hang_up()?;
            Ok(took)
        })
    });
    let pressed = Entry::new(Contender::Ostler, "ostler ui", || {
        Ok(|_| {
            let (client, _) = open()?;
            let mut times = Vec::new();
            for place in 0..KEYS {
                times.push(client.ms_until_drawn(if place % 4 < 2 { b'j' } else { b'k' }, STILL)?);
            }
            client.hang_up()?;
            times.sort_by(f64::total_cmp);
            times.get(KEYS * 99 / 100 - 1).copied().context("no keys")
        })
    });
    let held = Entry::new(Contender::Ostler, "ostler ui", || {
        Ok(|_| {
            let (client, _) = open()?;
            for _ in 0..20 {
                client.ms_until_drawn(b'j', STILL)?;
            }
            let kib = proportional_kib(client.process().cast_signed())?;
            client.hang_up()?;
            Ok(kib)
        })
    });
    Ok(vec![
        row(
            format!("open the dashboard with {all} sessions, {alive} alive"),
            "On a terminal of 80 × 24, from its exec until the first frame has arrived.",
            Unit::Milliseconds,
            bench.take_turns(vec![opened], bench.choose(20, 3))?,
            100.0,
        ),
        row(
            format!("a key in the dashboard until its frame, 99th percentile of {KEYS}, {all} sessions"),
            "As above; from writing j or k until the end of the next synchronised update.",
            Unit::Milliseconds,
            bench.take_turns(vec![pressed], bench.choose(5, 2))?,
            16.0,
        ),
        row(
            format!("memory of the dashboard with {all} sessions, {alive} alive"),
            "Proportional set size after it has opened and twenty sessions were selected.",
            Unit::Kibibytes,
            bench.take_turns(vec![held], bench.choose(5, 2))?,
            30.0 * 1024.0,
        ),
    ])
}

fn while_nothing_happens(bench: &Bench) -> Result<Row> {
    let (ended, idle) = (bench.choose(1_000, 20), bench.choose(50, 4));
    let seconds = bench.choose(60, 5) as u64;
    let entry = Entry::new(Contender::Ostler, "ostler ui", || {
        let ostler = Ostler::in_new_home(bench)?;
        leave_ended(bench, &ostler, ended)?;
        for _ in 0..idle {
            let id = ostler.launch(["--keep", "demo", "say ready"])?;
            run(&mut ostler.command(["wait", "--until", "turn", &id]))?;
        }
        Ok(move |_| {
            let (client, _) = open(bench, &ostler)?;
            let woken = client.wakeups_over(Duration::from_secs(seconds))?;
            client.hang_up()?;
            Ok(woken)
        })
    });
    Ok(Row {
        name: NAME,
        title: format!("wakeups of the dashboard in {seconds} s, {idle} sessions idle and {ended} ended"),
        how: "How often the kernel has put it to sleep between two looks, once all of it is drawn.",
        unit: Unit::Times,
        measured: bench.take_turns(vec![entry], bench.choose(2, 1))?,
        goals: vec![Goal::AtMost(0.0)],
    })
}

fn while_many_stream(bench: &Bench) -> Result<Row> {
    let sessions = bench.choose(50, 4);
    let then = format!("'{}' {COMMAND} tell-the-time", bench.agent.display());
    let entry = Entry::new(Contender::Ostler, "ostler ui", || {
        let turn = InTurn::begin(bench, sessions, 20, &then, TIME)?;
        Ok(move |_| {
            let (client, _) = open(bench, &turn.ostler)?;
            let percent = client.percent_over(STREAMING)?;
            client.hang_up()?;
            Ok(percent)
        })
    });
    Ok(Row {
        name: NAME,
        title: format!("processor time of the dashboard while {sessions} sessions stream, each 50 messages a second"),
        how: "On a terminal of 80 × 24, over ten seconds, with one of them in the preview.",
        unit: Unit::Percent,
        measured: bench.take_turns(vec![entry], bench.choose(5, 1))?,
        goals: vec![Goal::AtMost(5.0)],
    })
}
