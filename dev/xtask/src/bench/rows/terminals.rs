//! A list of terminals that draw all the time.

use std::time::Instant;

use anyhow::{Result, bail};

use crate::bench::Bench;
use crate::bench::agent::COMMAND;
use crate::bench::drive::ostler::Ostler;
use crate::bench::execute::{LIMIT, run};
use crate::bench::measure::{Contender, Entry};
use crate::bench::row::{Goal, Row, Unit};

pub const NAME: &str = "terminals";

/// Less output than that after which a snapshot is taken.
const DRAWN: u64 = 900_000;

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let sessions = bench.choose(100, 5);
    let entry = Entry::new(Contender::Ostler, "ostler ls", || {
        let ostler = Ostler::in_new_home(bench)?;
        let program = bench.agent.display().to_string();
        let drawn = DRAWN.to_string();
        let words = ["-t", "--", &program, COMMAND, "pour-and-draw-on", &drawn];
        let ids = (0..sessions).map(|_| ostler.launch(words)).collect::<Result<Vec<_>>>()?;
        let deadline = Instant::now() + LIMIT;
        let has_drawn = |id: &String| {
            let out = ostler.folder(id).join("runs/1/out");
            std::fs::metadata(out).is_ok_and(|out| out.len() >= DRAWN)
        };
        while !ids.iter().all(has_drawn) {
            run(&mut ostler.command(["ls"]))?;
            if Instant::now() > deadline {
                bail!("they have not drawn {DRAWN} bytes within {} s", LIMIT.as_secs());
            }
        }
        Ok(move |_| Ok(run(&mut ostler.command(["ls"]))?.ms))
    });
    Ok(vec![Row {
        name: NAME,
        title: format!("ls of {sessions} terminals, each {} KB behind its snapshot", DRAWN / 1000),
        how: "From before the command is spawned until it has exited. Each has drawn so much at once, and draws on without a pause.",
        unit: Unit::Milliseconds,
        measured: bench.take_turns(vec![entry], bench.choose(30, 3))?,
        goals: vec![Goal::AtMost(12.0)],
    }])
}
