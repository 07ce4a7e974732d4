//! What it costs to follow sessions that print: the cost has to depend on what is new, not on what was printed before.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use super::long_turn::InTurn;
use crate::bench::Bench;
use crate::bench::agent::{COMMAND, TIME};
use crate::bench::clock::Moment;
use crate::bench::drive::ostler::Ostler;
use crate::bench::execute::{processor_ms, start};
use crate::bench::measure::{Contender, Entry, Samples};
use crate::bench::row::{Goal, Row, Unit};
use crate::bench::terminal::Client;

pub const NAME: &str = "follow";

/// Lines that are skipped at first, and lines that are measured: two seconds.
const FIRST: usize = 25;
const MEASURED: usize = 100;
/// How long a client is looked at that prints no lines.
const LOOKED: Duration = Duration::from_secs(5);

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for kibibytes in [300, bench.choose(5 << 10, 1 << 10), bench.choose(50 << 10, 2 << 10)] {
        rows.extend(one_that_talks(bench, kibibytes)?);
    }
    rows.push(many_that_print(bench)?);
    Ok(rows)
}

fn one_that_talks(bench: &Bench, kibibytes: usize) -> Result<Vec<Row>> {
    let then = format!("'{}' {COMMAND} tell-the-time", bench.agent.display());
    let turn = InTurn::begin(bench, 1, kibibytes, &then, TIME)?;
    let (ostler, id) = (&turn.ostler, turn.ids.first().context("no session")?.as_str());
    let row = |title: &str, how, unit, goal, entry| {
        Ok::<_, anyhow::Error>(Row {
            name: NAME,
            title: format!("{title}, 50 messages a second, {kibibytes} KiB into a turn"),
            how,
            unit,
            measured: bench.take_turns(vec![entry], bench.choose(5, 1))?,
            goals: vec![Goal::AtMost(goal)],
        })
    };
    let followed = |which: fn(Followed) -> f64| {
        Entry::new(Contender::Ostler, "ostler logs -f -n 1 ID", move || {
            Ok(move |_| Follower::start(ostler, id)?.follow().map(which))
        })
    };
    let attached = Entry::new(Contender::Ostler, "ostler attach ID", || {
        Ok(move |_| {
            let client = Client::of(bench, &ostler.command(["attach", id]))?;
            let percent = client.percent_over(LOOKED)?;
            client.hang_up()?;
            Ok(percent)
        })
    });
    let waits = Entry::new(Contender::Ostler, "ostler wait ID", || {
        Ok(move |_| start(&mut ostler.command(["wait", id]))?.percent_over(LOOKED))
    });
    let how = "A program in the place of Claude Code says what time it is; the time between that and the line on our end of \
               the pipe, the median of 100, and the processor time meanwhile.";
    let over = "The same program; processor time over five seconds, `attach` on a terminal of 80 × 24.";
    Ok(vec![
        row("a message until logs -f prints it", how, Unit::Milliseconds, 1.0, followed(|followed| followed.ms))?,
        row("processor time of logs -f", how, Unit::Percent, 3.0, followed(|followed| followed.percent))?,
        row("processor time of attach", over, Unit::Percent, 3.0, attached)?,
        row("processor time of wait", over, Unit::Percent, 3.0, waits)?,
    ])
}

fn many_that_print(bench: &Bench) -> Result<Row> {
    let sessions = bench.choose(200, 20);
    let entry = Entry::new(Contender::Ostler, "ostler wait ID…", || {
        let ostler = Ostler::in_new_home(bench)?;
        let program = bench.agent.display().to_string();
        let print = ["--", &program, COMMAND, "print-on"];
        let ids = (0..sessions).map(|_| ostler.launch(print)).collect::<Result<Vec<_>>>()?;
        let arguments: Vec<String> = std::iter::once("wait".to_owned()).chain(ids).collect();
        Ok(move |_| start(&mut ostler.command(&arguments))?.percent_over(LOOKED))
    });
    Ok(Row {
        name: NAME,
        title: format!("processor time of wait on {sessions} sessions that print a line a second"),
        how: "Over five seconds, when it waits.",
        unit: Unit::Percent,
        measured: bench.take_turns(vec![entry], bench.choose(3, 1))?,
        goals: vec![Goal::AtMost(1.0)],
    })
}

/// A running `logs -f`.
struct Follower {
    child: Child,
    lines: BufReader<ChildStdout>,
}

/// The cost of following.
struct Followed {
    ms: f64,
    percent: f64,
}

impl Follower {
    fn start(ostler: &Ostler<'_>, id: &str) -> Result<Follower> {
        let mut command = ostler.command(["logs", "-f", "-n", "1", id]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let lines = BufReader::new(child.stdout.take().context("no output")?);
        Ok(Follower { child, lines })
    }

    fn follow(mut self) -> Result<Followed> {
        for _ in 0..FIRST {
            self.next()?;
        }
        let before = (Moment::now(), processor_ms(self.child.id())?);
        let late = (0..MEASURED).map(|_| self.next()).collect::<Result<Vec<f64>>>()?;
        let percent = (processor_ms(self.child.id())? - before.1) / Moment::now().ms_since(before.0) * 100.0;
        Ok(Followed { ms: Samples::new(late).map_or(f64::NAN, |late| late.median()), percent })
    }

    /// How late the next message comes.
    fn next(&mut self) -> Result<f64> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.lines.read_line(&mut line)? == 0 {
                anyhow::bail!("logs -f has ended");
            }
            if let Some((_, said)) = line.trim().split_once(TIME) {
                return Ok(Moment::now().ms_since(Moment::from_word(said)?));
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // If it has exited already, these calls only return an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
