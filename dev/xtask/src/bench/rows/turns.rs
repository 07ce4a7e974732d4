//! What commands cost after many turns: it has to be the same as after a few.

use std::process::Command;

use anyhow::Result;

use crate::bench::Bench;
use crate::bench::drive::ostler::{Ostler, printed_id};
use crate::bench::execute::run;
use crate::bench::measure::{Contender, Entry};
use crate::bench::row::{Goal, Row, Unit};

pub const NAME: &str = "turns";

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for turns in [10, bench.choose(1000, 20), bench.choose(5000, 30)] {
        rows.extend(after(bench, turns)?);
    }
    Ok(rows)
}

fn after(bench: &Bench, turns: usize) -> Result<[Row; 3]> {
    let ostler = Ostler::in_new_home(bench)?;
    let command = |arguments: &[&str]| -> Command {
        let mut command = ostler.command(arguments);
        command.envs([("OSTLER_DEMO_PACE", "0"), ("OSTLER_DEMO_LATE", "0")]);
        command
    };
    let id = run(&mut command(&["run", "-d", "--keep", "demo", "say hello"]))?.stdout;
    let id = printed_id(&id)?;
    for _ in 1..turns {
        run(&mut command(&["send", "--wait", id, "say hello"]))?;
    }
    let row = |what: &str, shown, arguments: &[&str], goal, rounds| {
        let entry = Entry::new(Contender::Ostler, shown, || Ok(|_| Ok(run(&mut command(arguments))?.ms)));
        Ok::<_, anyhow::Error>(Row {
            name: NAME,
            title: format!("{what}, after {turns} turns"),
            how: "From before the command is spawned until it has exited. The demo agent answers without pauses. A stop is \
                  one sample.",
            unit: Unit::Milliseconds,
            measured: bench.take_turns(vec![entry], rounds)?,
            goals: vec![Goal::AtMost(goal)],
        })
    };
    let rounds = bench.choose(30, 3);
    Ok([
        row(
            "send and wait for the answer",
            "ostler send --wait ID 'say hello'",
            &["send", "--wait", id, "say hello"],
            5.0,
            rounds,
        )?,
        row("show", "ostler show ID", &["show", id], 5.0, rounds)?,
        row("stop", "ostler stop ID", &["stop", id], 15.0, 1)?,
    ])
}
