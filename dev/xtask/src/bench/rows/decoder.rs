//! How fast an agent's output is decoded: what a keeper and every reader do with each line.

use anyhow::{Context, Result};

use crate::bench::Bench;
use crate::bench::execute::run;
use crate::bench::measure::{Contender, Entry};
use crate::bench::row::{Goal, Row, Unit};
use crate::workspace;

pub const NAME: &str = "decoder";

const EXAMPLE: [&str; 5] = ["--release", "--package", "ostler-agents", "--example", "agents_throughput"];

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let megabytes = bench.choose(64, 16).to_string();
    let command = "cargo run --release -p ostler-agents --example agents_throughput";
    let entries = vec![Entry::new(Contender::Ostler, command, || {
        workspace::run_visibly(workspace::cargo().arg("build").args(EXAMPLE))?;
        // The example measures itself: the time that cargo takes to start it does not count.
        Ok(move |_| {
            rate(&run(workspace::cargo().args(["run", "--quiet"]).args(EXAMPLE).args(["--", &megabytes]))?.stdout)
        })
    })];
    Ok(vec![Row {
        name: NAME,
        title: "Claude Code's output into facts".to_owned(),
        how: "The lines of a real turn with a tool, an answer in 200 pieces and a tool's output of 200 lines, over and \
              over, from memory in blocks of 256 KiB; bytes per second of processor time.",
        unit: Unit::MegabytesPerSecond,
        measured: bench.take_turns(entries, bench.choose(9, 2))?,
        goals: vec![Goal::AtLeast(300.0)],
    }])
}

fn rate(printed: &str) -> Result<f64> {
    let number = printed.trim().strip_suffix(" MB/s").with_context(|| format!("no rate in {printed:?}"))?;
    Ok(number.parse()?)
}
