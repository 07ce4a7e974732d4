//! How long a session is without its keeper after the keeper was killed.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::process::Signal;

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
        title: "the keeper is killed until its replacement is up".to_owned(),
        how: "From the signal until keeper.json names another process, read in a loop; then \
              `ostler show` must call it alive. No other tool here survives this.",
        unit: Unit::Milliseconds,
        measured: bench.take_turns(entries, bench.choose(30, 3))?,
        goals: vec![Goal::AtMost(50.0)],
    }])
}

fn kill_once(ostler: &Ostler<'_>, id: &str) -> Result<f64> {
    let keeper = ostler.until_kept(id)?;
    let identity = Identity::of(keeper)?;
    let killed = Moment::now();
    identity.signal(Signal::KILL)?;
    let deadline = Instant::now() + LIMIT;
    let (replacement, at) = loop {
        match ostler.keeper_on_record(id) {
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
