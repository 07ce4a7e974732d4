//! How fast all conversations are read into the search index, and how fast something is found in them, compared with a
//! program that reads all of them each time.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::bench::drive::ostler::Ostler;
use crate::bench::execute::{LIMIT, run, start};
use crate::bench::measure::{Contender, Entry};
use crate::bench::row::{Goal, Row, Unit};
use crate::workspace;

pub const NAME: &str = "search";

const EXAMPLE: [&str; 5] = ["--release", "--package", "ostler-search", "--example", "search_corpus"];

/// The unit of times in /proc, on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// How often the memory of a process is looked at.
const LOOK: Duration = Duration::from_millis(20);

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let messages = bench.choose(1_000_000, 20_000);
    let corpus = Corpus::write(bench, messages)?;
    let mut rows = vec![first_index(bench, &corpus, messages)?, memory(bench, &corpus, messages)?];
    let ostler = indexed(bench, &corpus)?;
    let questions: [(&str, &[&str], &str); 4] = [
        ("a rare word", &["needlework"], "ostler search needlework"),
        ("two frequent words", &["connection", "timeout"], "ostler search connection timeout"),
        ("a phrase", &["connection timeout"], "ostler search \"connection timeout\""),
        ("the beginning of a word", &["needle*"], "ostler search needle*"),
    ];
    for (what, words, command) in questions {
        rows.push(question(bench, &corpus, &ostler, (messages, what), words, command)?);
    }
    rows.push(unchanged(bench, &corpus, &ostler)?);
    rows.push(one_new(bench, &corpus, &ostler, messages)?);
    Ok(rows)
}

/// Conversations in four formats.
struct Corpus {
    home: PathBuf,
    bytes: u64,
    files: usize,
}

impl Corpus {
    fn write(bench: &Bench, messages: usize) -> Result<Corpus> {
        workspace::run_visibly(workspace::cargo().arg("build").args(EXAMPLE))?;
        let home = bench.scratch.folder("corpus")?;
        let mut command = workspace::cargo();
        run(command.args(["run", "--quiet"]).args(EXAMPLE).arg("--").arg(&home).arg(messages.to_string()))?;
        let mut corpus = Corpus { home, bytes: 0, files: 0 };
        let home = corpus.home.clone();
        corpus.count(&home)?;
        Ok(corpus)
    }

    /// The transcripts of one project.
    fn transcripts_of_claude(&self) -> Result<Vec<PathBuf>> {
        let project = std::fs::read_dir(self.home.join(".claude/projects"))?.next().context("no project")??.path();
        Ok(std::fs::read_dir(project)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?)
    }

    fn count(&mut self, folder: &Path) -> Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                self.count(&entry.path())?;
            } else {
                self.files += 1;
                self.bytes += entry.metadata()?.len();
            }
        }
        Ok(())
    }
}

/// A home of ostler next to the corpus, with the index in it.
fn indexed<'a>(bench: &'a Bench, corpus: &Corpus) -> Result<Ostler<'a>> {
    let ostler = Ostler::in_new_home(bench)?;
    search(&ostler, corpus, &["needlework"])?;
    Ok(ostler)
}

fn search(ostler: &Ostler<'_>, corpus: &Corpus, words: &[&str]) -> Result<f64> {
    let mut command = ostler.command(["search", "--json"]);
    let found = run(command.env("HOME", &corpus.home).args(words))?;
    let hits: Value = serde_json::from_str(&found.stdout).context("the hits are not JSON")?;
    if hits.as_array().is_none_or(Vec::is_empty) {
        bail!("{words:?} is not found");
    }
    Ok(found.ms)
}

fn first_index(bench: &Bench, corpus: &Corpus, messages: usize) -> Result<Row> {
    let command = "ostler search needlework, without an index";
    let entries = vec![Entry::new(Contender::Ostler, command, || {
        Ok(move |_| {
            let ostler = Ostler::in_new_home(bench)?;
            let before = processor_s()?;
            search(&ostler, corpus, &["needlework"])?;
            #[expect(clippy::cast_precision_loss, reason = "gigabytes: far below 2^52")]
            let megabytes = corpus.bytes as f64 / 1e6;
            Ok(megabytes / (processor_s()? - before))
        })
    })];
    Ok(Row {
        name: NAME,
        title: format!("first search index of {messages} messages"),
        how: "Bytes of transcripts per second of processor time (user and system) of the first search. The transcripts are generated \
              in the forms of Claude Code, Codex, Gemini and opencode, with the fields that these write beside what was said.",
        unit: Unit::MegabytesPerSecond,
        measured: bench.take_turns(entries, bench.choose(3, 1))?,
        goals: vec![Goal::AtLeast(100.0)],
    })
}

fn memory(bench: &Bench, corpus: &Corpus, messages: usize) -> Result<Row> {
    let entries = vec![Entry::new(Contender::Ostler, "ostler search needlework, without an index", || {
        Ok(move |_| {
            let ostler = Ostler::in_new_home(bench)?;
            let started = start(ostler.command(["search", "needlework"]).env("HOME", &corpus.home))?;
            let mut most = peak(started.pid())?;
            while started.waits_for(LOOK) {
                most = peak(started.pid()).unwrap_or(most);
            }
            started.finish(LIMIT)?;
            Ok(most)
        })
    })];
    Ok(Row {
        name: NAME,
        title: format!("memory of the first search index of {messages} messages"),
        how: "The most that was resident (VmHWM in /proc/PID/status), looked at every 20 ms.",
        unit: Unit::Kibibytes,
        measured: bench.take_turns(entries, bench.choose(3, 1))?,
        goals: vec![Goal::AtMost(200.0 * 1024.0)],
    })
}

fn question(
    bench: &Bench,
    corpus: &Corpus,
    ostler: &Ostler<'_>,
    (messages, what): (usize, &str),
    words: &[&str],
    command: &'static str,
) -> Result<Row> {
    let mut entries = vec![Entry::new(Contender::Ostler, command, || Ok(move |_| search(ostler, corpus, words)))];
    // ripgrep searches lines, and a message is one line of JSON: it cannot search for several separate words.
    if let [word] = words {
        let word = word.trim_end_matches('*');
        entries.push(Entry::new(Contender::Ripgrep, "rg --hidden --text --files-with-matches WORD HOME", || {
            let ripgrep = bench.tools.ripgrep.path()?.to_owned();
            Ok(move |_| {
                let mut command = bench.scratch.command(&ripgrep);
                Ok(run(command.args(["--hidden", "--text", "--files-with-matches", word]).arg(&corpus.home))?.ms)
            })
        }));
    }
    Ok(Row {
        name: NAME,
        title: format!("find {what} in {messages} messages"),
        how: "From before the command is spawned until it has exited; nothing has changed since the last search. ripgrep reads the same \
              files, with as many threads as it likes.",
        unit: Unit::Milliseconds,
        measured: bench.take_turns(entries, bench.choose(20, 3))?,
        goals: vec![Goal::AtMost(50.0)],
    })
}

fn unchanged(bench: &Bench, corpus: &Corpus, ostler: &Ostler<'_>) -> Result<Row> {
    let entries = vec![Entry::new(Contender::Ostler, "ostler search xyzzyx", || {
        Ok(move |_| {
            // Nothing is found, which is exit code 1.
            let started = start(ostler.command(["search", "xyzzyx"]).env("HOME", &corpus.home))?;
            started.finish_with(1, LIMIT)
        })
    })];
    Ok(Row {
        name: NAME,
        title: format!("find that nothing has changed in {} files", corpus.files),
        how: "The same for a word that is in no message: the program starts, looks at every file, and asks the index once.",
        unit: Unit::Milliseconds,
        measured: bench.take_turns(entries, bench.choose(30, 3))?,
        goals: vec![Goal::AtMost(20.0)],
    })
}

fn one_new(bench: &Bench, corpus: &Corpus, ostler: &Ostler<'_>, messages: usize) -> Result<Row> {
    let entries = vec![Entry::new(Contender::Ostler, "ostler search newword", || {
        let transcripts = corpus.transcripts_of_claude()?;
        let mut written = 0_usize;
        Ok(move |_| {
            let file = transcripts.get(written % transcripts.len().max(1)).context("no transcript")?;
            let word = format!("newword{written}");
            written += 1;
            let line = json!({ "type": "user", "timestamp": "2026-11-16T20:00:00Z", "message": { "content": word } });
            writeln!(OpenOptions::new().append(true).open(file)?, "{line}")?;
            search(ostler, corpus, &[&word])
        })
    })];
    Ok(Row {
        name: NAME,
        title: format!("find one new message beside {messages}"),
        how: "Before each run a line is appended to another transcript. The search reads it into the index, and finds it.",
        unit: Unit::Milliseconds,
        measured: bench.take_turns(entries, bench.choose(30, 3))?,
        goals: vec![Goal::AtMost(50.0)],
    })
}

/// Processor time of all children that have ended, in seconds.
fn processor_s() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    // Fields 16 and 17; the first one here is field 3.
    let ticks: f64 = fields
        .get(13..15)
        .context("/proc/self/stat is too short")?
        .iter()
        .filter_map(|one| one.parse::<f64>().ok())
        .sum();
    Ok(ticks / TICKS_PER_SECOND)
}

/// The largest resident memory that a process has had, in KiB.
fn peak(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
