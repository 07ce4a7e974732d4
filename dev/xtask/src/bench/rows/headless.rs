//! How fast a headless agent can write when its output is kept on disk.

use anyhow::{Result, bail};

use crate::bench::Bench;
use crate::bench::agent;
use crate::bench::clock::Moment;
use crate::bench::drive::ostler::Ostler;
use crate::bench::execute::run;
use crate::bench::measure::{Contender, Entry};
use crate::bench::row::{Goal, Row, Unit};

pub const NAME: &str = "headless";

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let bytes = bench.choose(1 << 30, 64 << 20);
    let program = bench.agent.display().to_string();
    let words = [program, agent::COMMAND.to_owned(), "pour".to_owned(), "json".to_owned(), bytes.to_string()];
    let entries = vec![
        Entry::new(Contender::Ostler, "ostler run -d -- COMMAND, then ostler wait ID", || {
            let ostler = Ostler::in_new_home(bench)?;
            let words = words.clone();
            Ok(move |_| {
                let started = Moment::now();
                let id = ostler.launch(["--"].into_iter().chain(words.iter().map(String::as_str)))?;
                run(&mut ostler.command(["wait", &id]))?;
                let ms = Moment::now().ms_since(started);
                let kept = ostler.folder(&id).join("runs/1/out").metadata()?.len();
                ostler.empty_home()?;
                rate(ms, kept, bytes)
            })
        }),
        Entry::new(Contender::Cat, "sh -c 'COMMAND | cat > FILE'", || {
            let file = bench.scratch.file("poured");
            let line = format!("{} | cat > {}", words.join(" "), file.display());
            Ok(move |_| {
                let ms = run(bench.scratch.command("/bin/sh".as_ref()).args(["-c", &line]))?.ms;
                let kept = file.metadata()?.len();
                std::fs::remove_file(&file)?;
                rate(ms, kept, bytes)
            })
        }),
    ];
    Ok(vec![Row {
        name: NAME,
        title: format!("headless output to disk, {} MiB", bytes >> 20),
        how: "A program writes lines in blocks of 64 KiB; from before the start until the tool says it has ended, with \
              every byte in the file. Ours includes starting the session and `wait`.",
        unit: Unit::MegabytesPerSecond,
        measured: bench.take_turns(entries, bench.choose(9, 2))?,
        goals: vec![Goal::AtLeastTimes(1.0, Contender::Cat)],
    }])
}

#[expect(clippy::cast_precision_loss, reason = "gigabytes: far below 2^52")]
fn rate(ms: f64, kept: u64, wanted: usize) -> Result<f64> {
    // Data of the last sample in memory must not be written out during the next one.
    rustix::fs::sync();
    if kept != wanted as u64 {
        bail!("{kept} bytes were kept of {wanted}");
    }
    Ok(wanted as f64 / 1e6 / (ms / 1e3))
}
