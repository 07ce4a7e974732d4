//! The dashboard beside thousands of sessions: how long it takes to open, how long a key takes to be drawn, how much memory it has.

use std::time::Duration;

use anyhow::{Context, Result};

use super::listing::multiply;
use super::memory::proportional_kib;
use crate::bench::Bench;
use crate::bench::clock::Mailbox;
use crate::bench::drive::ostler::Ostler;
use crate::bench::execute::run;
use crate::bench::measure::{Contender, Entry};
use crate::bench::row::{Goal, Row, Unit};
use crate::bench::terminal::{Client, on_terminal};

pub const NAME: &str = "ui";

/// So many keys are typed for one sample, of which the 99th of a hundred counts.
const KEYS: usize = 200;
/// After a key the preview of what is selected is drawn as well; the next key comes when that is over.
const STILL: Duration = Duration::from_millis(30);
/// The last of what the dashboard draws at first.
const DRAWN: &str = "q quit";

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let (ended, alive) = (bench.choose(10_800, 100), bench.choose(200, 6));
    let ostler = Ostler::in_new_home(bench)?;
    let originals = (0..bench.choose(50, 10)).map(|_| ostler.launch(["--", "true"])).collect::<Result<Vec<_>>>()?;
    for id in &originals {
        run(&mut ostler.command(["wait", id]))?;
    }
    multiply(&ostler.folders(), &originals, ended)?;
    for _ in 0..alive {
        ostler.launch(["--", "sleep", "600"])?;
    }
    let open = || -> Result<(Client, f64)> {
        let mut reports = Mailbox::create(bench.scratch.file("reports"))?;
        let mut command = bench.scratch.command(&bench.agent);
        on_terminal(&mut command, &reports, &ostler.command(["ui"]));
        let client = Client::start(command, &mut reports)?;
        let took = client.ms_until_shown(&[DRAWN])?;
        Ok((client, took))
    };
    // Once unseen: the indices of what has ended are written by the first that looks.
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
                times.push(client.ms_until_drawn(if place % 20 < 10 { b'j' } else { b'k' }, STILL)?);
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
