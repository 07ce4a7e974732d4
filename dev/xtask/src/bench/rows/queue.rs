//! How long a queue takes for many short programs of which four run at the same time.

use anyhow::{Result, bail};

use super::scale::raise_limit;
use crate::bench::Bench;
use crate::bench::clock::Moment;
use crate::bench::drive::ostler::Ostler;
use crate::bench::drive::pueue::Pueue;
use crate::bench::execute::run;
use crate::bench::measure::{Contender, Entry};
use crate::bench::row::{Goal, Row, Unit};

pub const NAME: &str = "queue";
/// As many as our default queue runs at the same time.
const AT_ONCE: usize = 4;

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let count = bench.choose(1000, 40);
    raise_limit()?;
    let entries = vec![
        Entry::new(Contender::Ostler, "ostler run -d --queue -- true, each, then ostler wait ID…", || {
            let ostler = Ostler::in_new_home(bench)?;
            Ok(move |_| {
                let started = Moment::now();
                let ids = (0..count).map(|_| ostler.launch(["--queue", "--", "true"])).collect::<Result<Vec<_>>>()?;
                // It fails unless all have succeeded.
                run(&mut ostler.command(std::iter::once("wait".to_owned()).chain(ids)))?;
                let ms = Moment::now().ms_since(started);
                ostler.empty_home()?;
                Ok(ms)
            })
        }),
        Entry::new(Contender::Pueue, "pueue add -- true, each, then pueue wait", || {
            let pueue = Pueue::start(bench, AT_ONCE)?;
            Ok(move |round: usize| {
                let started = Moment::now();
                let last = (0..count).map(|_| pueue.add("true")).collect::<Result<Vec<_>>>()?.pop();
                pueue.wait_until_done()?;
                let ms = Moment::now().ms_since(started);
                if last != Some(((round + 1) * count - 1).to_string()) {
                    bail!("pueue counted another number of tasks");
                }
                Ok(ms)
            })
        }),
    ];
    Ok(vec![Row {
        name: NAME,
        title: format!("{count} queued programs, {AT_ONCE} at once"),
        how: "From before the first is queued until all have ended, as the tool's own `wait` says. The programs do nothing: what is \
              measured is the queue.",
        unit: Unit::Milliseconds,
        // A thousand programs result in a figure that hardly varies, and pueue takes minutes for them.
        measured: bench.take_turns(entries, 1)?,
        goals: vec![Goal::AtMostTimes(3.0, Contender::Pueue)],
    }])
}
