//! How much disk space a session takes that is not needed any more.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Result, bail};

use crate::bench::Bench;
use crate::bench::drive::ostler::Ostler;
use crate::bench::execute::run;
use crate::bench::measure::{Contender, Entry};
use crate::bench::row::{Goal, Row, Unit};

pub const NAME: &str = "disk";

/// Which amount of the used space is measured.
type Amount = fn(&Used) -> f64;

#[derive(Default)]
struct Used {
    kib: f64,
    inodes: f64,
}

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let kib: (&str, Unit, Amount) = ("disk use", Unit::Kibibytes, |used| used.kib);
    let inodes: (&str, Unit, Amount) = ("inodes", Unit::Times, |used| used.inodes);
    // The table of goals is about a command. For an agent there are also the conversation and copies of its transcript.
    Ok(vec![
        row(bench, "an ended command", kib, ended, Some(24.0))?,
        row(bench, "an ended command", inodes, ended, Some(10.0))?,
        row(bench, "an archived command", kib, archived, Some(8.0))?,
        row(bench, "an archived command", inodes, archived, Some(2.0))?,
        row(bench, "an ended turn of an agent", kib, ended_turn, None)?,
    ])
}

fn row(
    bench: &Bench,
    form: &str,
    (what, unit, amount): (&str, Unit, Amount),
    used: fn(&Ostler<'_>) -> Result<Used>,
    goal: Option<f64>,
) -> Result<Row> {
    let entries =
        vec![Entry::new(Contender::Ostler, "ostler run -d -- true, or of an agent: demo 'say hello'", || {
            let ostler = Ostler::in_new_home(bench)?;
            Ok(move |_| Ok(amount(&used(&ostler)?)))
        })];
    Ok(Row {
        name: NAME,
        title: format!("{what} of {form}"),
        how: "Blocks and inodes of its folder, or of the file that it is packed into, each inode once.",
        unit,
        measured: bench.take_turns(entries, bench.choose(5, 1))?,
        goals: goal.map(Goal::AtMost).into_iter().collect(),
    })
}

fn ended(ostler: &Ostler<'_>) -> Result<Used> {
    used(&ostler.folder(&finished(ostler, &["--", "true"])?))
}

fn ended_turn(ostler: &Ostler<'_>) -> Result<Used> {
    used(&ostler.folder(&finished(ostler, &["demo", "say hello"])?))
}

fn archived(ostler: &Ostler<'_>) -> Result<Used> {
    let id = finished(ostler, &["--", "true"])?;
    run(&mut ostler.command(["archive", &id]))?;
    for month in std::fs::read_dir(ostler.archive())? {
        let packed = month?.path().join(&id);
        if packed.exists() {
            return used(&packed);
        }
    }
    bail!("{id} is not in the archive");
}

/// A session that has ended, and all of whose helpers have exited.
fn finished(ostler: &Ostler<'_>, arguments: &[&str]) -> Result<String> {
    let id = ostler.launch(arguments)?;
    run(&mut ostler.command(["wait", &id]))?;
    ostler.until_left(&id)?;
    Ok(id)
}

/// A file with two names counts once.
fn used(path: &Path) -> Result<Used> {
    let mut seen = HashSet::new();
    let mut used = Used::default();
    let mut waiting = vec![path.to_owned()];
    while let Some(path) = waiting.pop() {
        let stat = path.symlink_metadata()?;
        if stat.is_dir() {
            for entry in std::fs::read_dir(&path)? {
                waiting.push(entry?.path());
            }
        }
        if seen.insert(stat.ino()) {
            #[expect(clippy::cast_precision_loss, reason = "some kilobytes")]
            let kib = stat.blocks() as f64 / 2.0;
            used.kib += kib;
            used.inodes += 1.0;
        }
    }
    Ok(used)
}
