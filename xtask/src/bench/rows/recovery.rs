//! How long a session is without its keeper after the keeper was killed.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use serde_json::Value;

use crate::bench::Bench;
use crate::bench::clock::Moment;
use crate::bench::drive::ostler::Ostler;
use crate::bench::measure::{Contender, Entry};
use crate::bench::row::{Goal, Row, Unit};
use crate::processes::Identity;

pub const NAME: &str = "recovery";

const LIMIT: Duration = Duration::from_secs(10);

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let entries = vec![Entry::new(Contender::Ostler, "SIGKILL to the keeper of `ostler run -d -- sleep 600`", || {
        let ostler = Ostler::in_new_home(bench)?;
        // A new session each time: the holder pauses longer before every further restart, on purpose.
        Ok(move |_| {
            let id = ostler.launch(["--", "sleep", "600"])?;
            let took = kill_once(&ostler, &id);
            ostler.stop(&id)?;
            took
        })
    })];
    Ok(vec![Row {
        name: NAME,
        title: "the keeper is killed until its replacement stands".to_owned(),
        how: "From the signal until keeper.json names another process, read in a loop; then \
              `ostler show` must call it alive. No other tool here survives this.",
        unit: Unit::Milliseconds,
        measured: bench.take_turns(entries, bench.choose(30, 3))?,
        goals: vec![Goal::AtMost(50.0)],
    }])
}

fn kill_once(ostler: &Ostler<'_>, id: &str) -> Result<f64> {
    let keeper = ostler.show(id)?.keeper_pid.context("the session has no keeper")?;
    let record = ostler.folder(id).join("keeper.json");
    let identity = Identity::of(keeper)?;
    let killed = Moment::now();
    identity.signal(Signal::KILL)?;
    let deadline = Instant::now() + LIMIT;
    let (replacement, at) = loop {
        // Between two versions of the file there is none to read; that is part of the time that is measured.
        match pid_in(&record) {
            Some(pid) if pid != keeper => break (pid, Moment::now()),
            Some(_) | None if Instant::now() > deadline => bail!("no new keeper after {} s", LIMIT.as_secs()),
            Some(_) | None => std::hint::spin_loop(),
        }
    };
    let shown = ostler.show(id)?;
    if !shown.kept || !shown.alive || shown.keeper_pid != Some(replacement) {
        bail!("keeper.json names {replacement}, but `show` says {:?}", shown.keeper_pid);
    }
    Ok(at.ms_since(killed))
}

fn pid_in(record: &Path) -> Option<i32> {
    let record: Value = serde_json::from_slice(&std::fs::read(record).ok()?).ok()?;
    i32::try_from(record.get("pid")?.as_i64()?).ok()
}
