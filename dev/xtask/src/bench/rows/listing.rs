//! How long a list of many sessions takes.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::bench::Bench;
use crate::bench::drive::ostler::Ostler;
use crate::bench::drive::pueue::Pueue;
use crate::bench::execute::run;
use crate::bench::measure::{Contender, Entry};
use crate::bench::row::{Goal, Row, Unit};

pub const NAME: &str = "listing";

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    Ok(vec![some_alive(bench)?, many_ended(bench)?])
}

fn some_alive(bench: &Bench) -> Result<Row> {
    let (all, alive) = (bench.choose(1000, 30), bench.choose(200, 6));
    let entries = vec![
        Entry::new(Contender::Ostler, "ostler ls --json", || {
            let ostler = Ostler::in_new_home(bench)?;
            for _ in 0..all - alive {
                ostler.launch(["--", "true"])?;
            }
            bench.wait_until_quiet()?;
            for _ in 0..alive {
                ostler.launch(["--", "sleep", "600"])?;
            }
            let sessions = ostler.sessions()?;
            let living = sessions.iter().filter(|session| session.alive).count();
            if (sessions.len(), living) != (all, alive) {
                bail!("{} sessions, {living} alive, instead of {all} and {alive}", sessions.len());
            }
            Ok(move |_| {
                let listed = run(&mut ostler.command(["ls", "--json"]))?;
                expect_length(&listed.stdout, all)?;
                Ok(listed.ms)
            })
        }),
        Entry::new(Contender::Pueue, "pueue status --json", || {
            let pueue = Pueue::start(bench, alive)?;
            for _ in 0..all - alive {
                pueue.add("true")?;
            }
            pueue.wait_until_done()?;
            pueue.add_running(alive, "sleep 600")?;
            Ok(move |_| {
                let listed = run(pueue.command().args(["status", "--json"]))?;
                expect_length(&listed.stdout, all)?;
                Ok(listed.ms)
            })
        }),
    ];
    Ok(Row {
        name: NAME,
        title: format!("list {all} sessions, {alive} alive, as JSON"),
        how: "From before the command is spawned until it has exited, and the list is complete. Everything was started with 40 \
              further variables: pueue stores and prints the environment of every task, so a shorter one makes it faster.",
        unit: Unit::Milliseconds,
        measured: bench.take_turns(entries, bench.choose(50, 5))?,
        goals: vec![Goal::AtMost(25.0), Goal::AtMostTimes(0.2, Contender::Pueue)],
    })
}

fn many_ended(bench: &Bench) -> Result<Row> {
    let (all, real) = (bench.choose(10_000, 100), bench.choose(50, 10));
    let entries = vec![Entry::new(Contender::Ostler, "ostler ls -a --json", || {
        let ostler = Ostler::in_new_home(bench)?;
        let originals = (0..real).map(|_| ostler.launch(["--", "true"])).collect::<Result<Vec<_>>>()?;
        for id in &originals {
            run(&mut ostler.command(["wait", id]))?;
        }
        multiply(&ostler.folders(), &originals, all)?;
        Ok(move |_| {
            let listed = run(&mut ostler.command(["ls", "-a", "--json"]))?;
            expect_length(&listed.stdout, all)?;
            Ok(listed.ms)
        })
    })];
    Ok(Row {
        name: NAME,
        title: format!("list {all} ended sessions as JSON"),
        how: "As above; the folders are copies of real ended sessions under new ids.",
        unit: Unit::Milliseconds,
        measured: bench.take_turns(entries, bench.choose(30, 3))?,
        goals: vec![Goal::AtMost(150.0)],
    })
}

/// Compares the length of an array, or of pueue's object of tasks.
fn expect_length(json: &str, wanted: usize) -> Result<()> {
    let listed: Value = serde_json::from_str(json).context("the list is not JSON")?;
    let tasks = listed.get("tasks").and_then(Value::as_object).map(serde_json::Map::len);
    match listed.as_array().map(Vec::len).or(tasks) {
        Some(found) if found == wanted => Ok(()),
        found => bail!("{found:?} in the list instead of {wanted}"),
    }
}

/// Copies session folders under new ids until there are `all` of them.
pub fn multiply(folders: &Path, originals: &[String], all: usize) -> Result<()> {
    let mut taken: BTreeSet<String> = originals.iter().cloned().collect();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for original in originals.iter().cycle() {
        if taken.len() >= all {
            break;
        }
        let id = random.id_like(originals);
        if taken.insert(id.clone()) {
            copy_under_new_id(&folders.join(original), &folders.join(&id), (original, &id))?;
        }
    }
    // Half a million files go to the disk now, and not while the first rows are measured.
    rustix::fs::sync();
    Ok(())
}

/// Copies files and folders and replaces the old id in them by the new one. Sockets and the like are left out.
fn copy_under_new_id(from: &Path, to: &Path, ids: (&str, &str)) -> Result<()> {
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (kind, copy) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_under_new_id(&entry.path(), &copy, ids)?;
        } else if kind.is_file() {
            let bytes = std::fs::read(entry.path())?;
            match String::from_utf8(bytes) {
                Ok(text) => std::fs::write(copy, text.replace(ids.0, ids.1))?,
                Err(not_text) => std::fs::write(copy, not_text.into_bytes())?,
            }
        }
    }
    Ok(())
}

/// Random enough for names, and the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// An id made of characters that real ids have in the same position, so that the alphabet need not be known here.
    fn id_like(&mut self, originals: &[String]) -> String {
        let length = originals.first().map_or(0, |id| id.chars().count());
        let pick = |random: &mut Self| usize::try_from(random.next() % originals.len() as u64).unwrap_or(0);
        (0..length).filter_map(|place| originals.get(pick(self))?.chars().nth(place)).collect()
    }
}
