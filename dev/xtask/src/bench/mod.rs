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
use std::rc::Rc;
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
    scratch: Rc<Scratch>,
    /// A copy of this program, which the tools keep; the original may be rebuilt meanwhile.
    agent: PathBuf,
    quick: bool,
    /// The processes that run between two samples.
    quiet: RefCell<Baseline>,
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
        self.only.is_none() && !self.quick && self.against.is_none()
    }
}

pub fn run(arguments: &[String]) -> Result<()> {
    let asked = Asked::parse(arguments)?;
    become_subreaper()?;
    let tools = match &asked.against {
        None => Tools::provide(asked.binary.clone())?,
        Some(_) => Tools::ours_alone(&tools::built(asked.binary.clone())?, "ostler")?,
    };
    let scratch = Rc::new(Scratch::create()?);
    let agent = scratch.file("agent");
    std::fs::copy(std::env::current_exe()?, &agent).context("cannot copy this program")?;
    let bench = Bench { tools, scratch, agent, quick: asked.quick, quiet: RefCell::new(Baseline::none()) };

    let older = asked.against.as_deref().map(|binary| against::older(&bench, binary)).transpose()?;

    let mut table = Vec::new();
    let mut problems = Vec::new();
    for (name, measure) in ROWS {
        if asked.only.as_deref().is_none_or(|only| only == name) {
            eprintln!("measuring: {name}");
            let measured = match &older {
                None => measure(&bench),
                Some(older) => against::measure(&bench, older, measure),
            };
            match measured {
                Ok(rows) => {
                    // A whole run takes long: what it has so far is shown.
                    rows.iter().for_each(|row| eprint!("  {}", report::line(row)));
                    table.extend(rows);
                }
                Err(error) => problems.push(format!("{name}: {error:#}")),
            }
            problems.extend(bench.clear_away(name)?);
        }
    }
    problems.extend(table.iter().filter_map(unmeasured));
    if !is_childless() {
        problems.push("a process is left, and /proc does not show it".to_owned());
    }

    let text = report::markdown(&table, &machine::describe(), &bench.tools.versions());
    println!("{text}");
    let folder =
        if asked.is_for_publication() { workspace::root().join("docs") } else { workspace::target().join("bench") };
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("benchmarks.md"), text)?;
    std::fs::write(folder.join("benchmarks.svg"), plot::svg(&table))?;
    eprintln!("written: benchmarks.md and benchmarks.svg in {}", folder.display());
    if problems.is_empty() { Ok(()) } else { bail!("{}", problems.join("\n  ")) }
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
        let measured = measure::take_turns(entries, rounds, || self.wait_until_quiet());
        self.quiet.replace(Baseline::none());
        Ok(measured)
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
