//! What a snapshot of the working tree costs at the end of a turn, in a large repository with small changes.

use std::cell::RefCell;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::bench::Bench;
use crate::bench::drive::ostler::{Ostler, printed_id};
use crate::bench::execute::{run, start};
use crate::bench::measure::{Contender, Entry};
use crate::bench::row::{Goal, Row, Unit};

pub const NAME: &str = "snapshots";

/// How many files are in a folder, and how many files in all are changed in a turn.
const IN_A_FOLDER: usize = 100;
const CHANGED: usize = 3;
const CHANGE: &str = "fn changed_in_a_turn() { unimplemented!() }\n";

/// Making the repository is not measured, and takes minutes on a busy machine.
const MAKING: Duration = Duration::from_secs(900);

/// The last turn that is not measured.
const FIRST: usize = 2;

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let files = bench.choose(50_000, 2000);
    let turns = bench.choose(30, 3);
    let tree = Tree::make(bench, files)?;
    let ostler = Ostler::in_new_home(bench)?;
    let started = run(&mut tree.command(&ostler, &["run", "-d", "--keep", "demo", "say hello"]))?.stdout;
    let id = printed_id(&started)?.to_owned();
    // The first snapshot is not comparable, and neither is a turn whose end was not waited for.
    run(&mut tree.command(&ostler, &["send", "--wait", &id, "say hello"]))?;
    // `diff` waits for the snapshot. The snapshot of the turn before may have been left out.
    run(&mut tree.command(&ostler, &["diff", &id, "--stat"]))?;
    let done = RefCell::new(FIRST);
    let entry = Entry::new(Contender::Ostler, "at the end of a turn of ostler run demo", || {
        Ok(|_| {
            let mut turn = done.borrow_mut();
            *turn += 1;
            tree.change(*turn)?;
            run(&mut tree.command(&ostler, &["send", "--wait", &id, "say hello"]))?;
            let line = taken(&tree, &ostler, &id, *turn)?;
            line["cpu_ms"].as_f64().context("no processor time")
        })
    });
    let cost = Row {
        name: NAME,
        title: format!("snapshot of {files} files of which {CHANGED} have changed"),
        how: "Processor time (user and system) of the process that takes it and of the git processes that it starts, as it notes \
              it itself.",
        unit: Unit::Milliseconds,
        measured: bench.take_turns(vec![entry], turns)?,
        goals: vec![Goal::AtMost(150.0)],
    };
    let turns = *done.borrow() - FIRST;
    let bytes = tree.edited(turns);
    let store = ostler.folder(&id).ancestors().nth(2).context("no home")?.join("turns").join(&id);
    let entry = Entry::new(Contender::Ostler, "at the end of each turn of ostler run demo", || {
        Ok(|_| {
            #[expect(clippy::cast_precision_loss, reason = "megabytes: far below 2^52")]
            let kibibytes = unlinked(&store)? as f64 / 1024.0;
            Ok(kibibytes)
        })
    });
    #[expect(clippy::cast_precision_loss, reason = "megabytes: far below 2^52")]
    let goal = (2.0 * bytes as f64 + 1e6) / 1024.0;
    let disk = Row {
        name: NAME,
        title: format!("disk use of {turns} snapshots, in which {} KiB of files were changed", bytes / 1024),
        how: "The lengths of all files of the store that are not links to files of the repository, with what is known of every \
              file. The goal is twice the length of the changed files and one megabyte.",
        unit: Unit::Kibibytes,
        measured: bench.take_turns(vec![entry], 1)?,
        goals: vec![Goal::AtMost(goal)],
    };
    ostler.stop(&id)?;
    Ok(vec![cost, disk])
}

/// A repository with many files.
struct Tree {
    folder: PathBuf,
    files: usize,
}

impl Tree {
    fn make(bench: &Bench, files: usize) -> Result<Tree> {
        let tree = Tree { folder: bench.scratch.folder("repository")?, files };
        for number in 0..files {
            let path = tree.path(number);
            if number % IN_A_FOLDER == 0 {
                std::fs::create_dir_all(path.parent().context("no folder")?)?;
            }
            let lines = (0..40).map(|line| format!("fn function_{number}_{line}() {{ do_something({line}) }}\n"));
            std::fs::write(path, lines.collect::<String>())?;
        }
        let git = |arguments: &[&str]| {
            let mut command = bench.scratch.command(Path::new("git"));
            command
                .current_dir(&tree.folder)
                .args(["-c", "user.name=a", "-c", "user.email=b", "-c", "core.fsync=none"])
                .args(arguments);
            start(&mut command)?.finish_with(0, MAKING).map(drop)
        };
        git(&["init", "--quiet"])?;
        git(&["add", "--all"])?;
        git(&["-c", "gc.auto=0", "commit", "--quiet", "--message", "all"])?;
        // One pack, as in a cloned repository. Searching for deltas takes minutes, and changes nothing here.
        git(&["-c", "pack.window=0", "repack", "-a", "-d", "-q"])?;
        Ok(tree)
    }

    fn path(&self, number: usize) -> PathBuf {
        self.folder.join(format!("part{}/file{number}.rs", number / IN_A_FOLDER))
    }

    /// Each turn changes other files.
    fn changed(&self, turn: usize) -> impl Iterator<Item = PathBuf> {
        (0..CHANGED).map(move |place| self.path((turn * 7919 + place * 977) % self.files))
    }

    fn change(&self, turn: usize) -> Result<()> {
        for path in self.changed(turn) {
            OpenOptions::new().append(true).open(path)?.write_all(CHANGE.as_bytes())?;
        }
        Ok(())
    }

    /// The total length of the files that were changed.
    fn edited(&self, turns: usize) -> u64 {
        let changed = (FIRST + 1..=FIRST + turns).flat_map(|turn| self.changed(turn));
        changed.filter_map(|path| std::fs::metadata(path).ok()).map(|stat| stat.len()).sum()
    }

    fn command(&self, ostler: &Ostler<'_>, arguments: &[&str]) -> std::process::Command {
        let mut command = ostler.command(arguments);
        command.current_dir(&self.folder).envs([("OSTLER_DEMO_PACE", "0"), ("OSTLER_DEMO_LATE", "0")]);
        command
    }
}

/// What is noted about the snapshot after a turn, once it is taken.
fn taken(tree: &Tree, ostler: &Ostler<'_>, id: &str, turn: usize) -> Result<Value> {
    // `diff` waits for the snapshot.
    run(&mut tree.command(ostler, &["diff", id, "--turn", &turn.to_string(), "--stat"]))?;
    let text = std::fs::read_to_string(ostler.folder(id).join("turns.jsonl"))?;
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut ends = lines.filter(|line| line["what"] == "ended" && line["turn"] == turn);
    ends.next().with_context(|| format!("no snapshot after turn {turn}"))
}

/// The total length of the files below a folder that have only one name.
fn unlinked(folder: &Path) -> Result<u64> {
    let mut total = 0;
    for entry in std::fs::read_dir(folder)? {
        let (path, stat) = {
            let entry = entry?;
            (entry.path(), entry.metadata()?)
        };
        total += match () {
            () if stat.is_dir() => unlinked(&path)?,
            () if stat.nlink() == 1 => stat.len(),
            () => 0,
        };
    }
    Ok(total)
}
