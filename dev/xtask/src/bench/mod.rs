//! `cargo xtask bench`: ostler beside the tools that people use today, in one run, on one machine, in one table.
//!
//! Every tool runs in folders and with sockets of its own; nothing of the user's is read or touched, and nothing is
//! left running. A goal that is missed is shown in the table and does not fail the run: a busy machine must not turn a build
//! red. Not being able to measure ourselves, or leaving a process behind, is one.

mod against;
pub mod agent;
mod clock;
mod drive;
mod execute;
mod machine;
mod measure;
mod plot;
mod report;
mod rest;
mod row;
mod rows;
mod scratch;
mod terminal;
mod tools;

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use self::measure::{Contender, Entry, Measured};
use self::row::Row;
use self::scratch::Scratch;
use self::tools::Tools;
use crate::processes::{Baseline, become_subreaper, is_childless};
use crate::workspace;

/// How long what a sample started may take to end by itself.
const REST_LIMIT: Duration = Duration::from_secs(30);

/// What every row needs.
pub struct Bench {
    tools: Tools,
    scratch: Scratch,
    /// A copy of this program, which the tools keep; the original may be rebuilt meanwhile.
    agent: PathBuf,
    quick: bool,
    /// The processes that run between two samples.
    quiet: RefCell<Baseline>,
    /// Another process measures another program, and only one of the two works at a time.
    takes_turns: bool,
}

type MeasureRow = fn(&Bench) -> Result<Vec<Row>>;

const ROWS: [(&str, MeasureRow); 20] = [
    (rows::launch::NAME, rows::launch::measure),
    (rows::memory::NAME, rows::memory::measure),
    (rows::disk::NAME, rows::disk::measure),
    (rows::listing::NAME, rows::listing::measure),
    (rows::scale::NAME, rows::scale::measure),
    (rows::queue::NAME, rows::queue::measure),
    (rows::long_turn::NAME, rows::long_turn::measure),
    (rows::turns::NAME, rows::turns::measure),
    (rows::follow::NAME, rows::follow::measure),
    (rows::terminals::NAME, rows::terminals::measure),
    (rows::wake::NAME, rows::wake::measure),
    (rows::recovery::NAME, rows::recovery::measure),
    (rows::headless::NAME, rows::headless::measure),
    (rows::output::NAME, rows::output::measure),
    (rows::attach::NAME, rows::attach::measure),
    (rows::echo::NAME, rows::echo::measure),
    (rows::decoder::NAME, rows::decoder::measure),
    (rows::ui::NAME, rows::ui::measure),
    (rows::search::NAME, rows::search::measure),
    (rows::snapshots::NAME, rows::snapshots::measure),
];

#[derive(Default)]
struct Asked {
    only: Option<String>,
    quick: bool,
    binary: Option<PathBuf>,
    /// An older ostler, to be compared with instead of the other tools.
    against: Option<PathBuf>,
    /// This ostler is one of two that are compared.
    taking_turns: Option<PathBuf>,
}

impl Asked {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut asked = Self::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--quick" => asked.quick = true,
                "--only" => asked.only = Some(words.next().context("--only which row?")?.clone()),
                "--binary" => asked.binary = Some(words.next().context("--binary which file?")?.into()),
                "--against" => asked.against = Some(words.next().context("--against which file?")?.into()),
                against::TAKING_TURNS => {
                    asked.taking_turns = Some(words.next().context("which program takes turns?")?.into());
                }
                unknown => bail!("`bench` does not know {unknown}"),
            }
        }
        let names = ROWS.map(|(name, _)| name);
        match &asked.only {
            Some(only) if !names.contains(&only.as_str()) => bail!("no row {only}; there are {}", names.join(", ")),
            Some(_) | None => Ok(asked),
        }
    }

    /// The published report comes from whole runs only.
    fn is_for_publication(&self) -> bool {
        self.only.is_none() && !self.quick
    }

    fn is_wanted(&self, row: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == row)
    }
}

pub fn run(arguments: &[String]) -> Result<()> {
    let asked = Asked::parse(arguments)?;
    if let Some(older) = &asked.against {
        let rows: Vec<&str> = ROWS.iter().map(|(name, _)| *name).filter(|name| asked.is_wanted(name)).collect();
        let now = tools::install(&tools::built(asked.binary.clone())?, "ostler")?;
        return against::compare(&rows, asked.quick, &now, &tools::install(older, "ostler-before")?);
    }
    become_subreaper()?;
    let tools = match &asked.taking_turns {
        None => Tools::provide(asked.binary.clone())?,
        Some(program) => Tools::ours_alone(program.clone()),
    };
    let scratch = Scratch::create()?;
    let agent = scratch.file("agent");
    std::fs::copy(std::env::current_exe()?, &agent).context("cannot copy this program")?;
    let takes_turns = asked.taking_turns.is_some();
    let quiet = RefCell::new(Baseline::none());
    let bench = Bench { tools, scratch, agent, quick: asked.quick, quiet, takes_turns };
    let (table, problems) = measure_all(&bench, &asked)?;
    match takes_turns {
        true => against::tell(&table),
        false => publish(&bench, &asked, &table)?,
    }
    if problems.is_empty() { Ok(()) } else { bail!("{}", problems.join("\n  ")) }
}

/// All rows that are asked for, and what went wrong.
fn measure_all(bench: &Bench, asked: &Asked) -> Result<(Vec<Row>, Vec<String>)> {
    let mut table = Vec::new();
    let mut problems = Vec::new();
    bench.yield_turn()?;
    for (name, measure) in ROWS.into_iter().filter(|(name, _)| asked.is_wanted(name)) {
        if !bench.takes_turns {
            eprintln!("measuring: {name}");
        }
        match measure(bench) {
            Ok(rows) => {
                if !bench.takes_turns {
                    // A whole run takes long: what it has so far is shown.
                    rows.iter().for_each(|row| eprint!("  {}", report::line(row)));
                }
                table.extend(rows);
            }
            Err(error) => problems.push(format!("{name}: {error:#}")),
        }
        problems.extend(bench.clear_away(name)?);
    }
    problems.extend(table.iter().filter_map(unmeasured));
    if !is_childless() {
        problems.push("a process is left, and /proc does not show it".to_owned());
    }
    Ok((table, problems))
}

fn publish(bench: &Bench, asked: &Asked, table: &[Row]) -> Result<()> {
    let text = report::markdown(table, &machine::describe(), &bench.tools.versions());
    println!("{text}");
    let folder =
        if asked.is_for_publication() { workspace::root().join("docs") } else { workspace::target().join("bench") };
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("benchmarks.md"), text)?;
    std::fs::write(folder.join("benchmarks.svg"), plot::svg(table))?;
    eprintln!("written: benchmarks.md and benchmarks.svg in {}", folder.display());
    Ok(())
}

/// Says why our own figure is missing, if it is.
fn unmeasured(row: &Row) -> Option<String> {
    let ours = row.measured.iter().find(|measured| measured.who == Contender::Ostler)?;
    ours.samples.as_ref().err().map(|reason| format!("{}: ostler was not measured: {reason}", row.title))
}

impl Bench {
    /// How many, in a full and in a quick run.
    fn choose(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// Samples prepared contenders in turns; the machine comes to rest after each sample.
    fn take_turns(&self, entries: Vec<Entry<'_>>, rounds: usize) -> Result<Vec<Measured>> {
        self.quiet.replace(Baseline::now()?);
        let measured =
            measure::take_turns(entries, rounds, || self.wait_until_quiet().and_then(|()| self.yield_turn()));
        self.quiet.replace(Baseline::none());
        Ok(measured)
    }

    fn yield_turn(&self) -> Result<()> {
        if self.takes_turns { against::wait_for_turn() } else { Ok(()) }
    }

    /// Waits until all that a sample started has ended by itself.
    fn wait_until_quiet(&self) -> Result<()> {
        let quiet = self.quiet.borrow();
        let left = quiet.settle(REST_LIMIT)?;
        if left.is_empty() {
            return Ok(());
        }
        quiet.end_newcomers()?;
        bail!("left running: {}", left.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
    }

    /// After a row no process may be left; those that are left are named and ended.
    fn clear_away(&self, row: &str) -> Result<Option<String>> {
        let none = Baseline::none();
        let left = none.settle(REST_LIMIT)?;
        none.end_newcomers()?;
        let named = left.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        Ok((!left.is_empty()).then(|| format!("{row}: left running: {named}")))
    }
}
