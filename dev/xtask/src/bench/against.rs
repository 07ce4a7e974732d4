//! `--against FILE`: an older ostler beside this one, row by row, sample by sample.
//!
//! Each of the two is measured by a process of its own, which has its own sessions, and finds out by itself whether they
//! are quiet. Only one of the two works at a time: it waits for a line on its input before it begins and before each
//! sample, and prints a line when it waits again. So whatever else the machine does hits both alike, also when it becomes
//! faster or slower in the course of a row.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::measure::{Contender, Samples};
use super::row::{Row, Unit};
use crate::processes::is_childless;

/// The option with which the processes of both are started, followed by the program to measure.
pub const TAKING_TURNS: &str = "--taking-turns";

/// What the process that waits for its turn prints.
const YOUR_TURN: &str = "your turn";

/// A row that is worse than this needs an explanation.
const TOLERATED: f64 = 1.05;

/// Prints the rows of both in one table.
pub fn compare(rows: &[&str], quick: bool, now: &Path, before: &Path) -> Result<()> {
    let mut problems = Vec::new();
    println!("| measured | before | now | now / before | samples |");
    println!("| --- | --- | --- | --- | --- |");
    for row in rows {
        eprintln!("measuring: {row}");
        let mut sides = [Side::start(row, quick, now)?, Side::start(row, quick, before)?];
        while sides.iter().any(|side| side.ended.is_none()) {
            sides.iter_mut().filter(|side| side.ended.is_none()).try_for_each(Side::turn)?;
        }
        let [now, before] = sides;
        for figure in &now.figures {
            match before.figures.iter().find(|other| other["title"] == figure["title"]) {
                Some(other) => println!("{}", line(figure, other)),
                None => problems.push(format!("{}: the older one was not measured", figure["title"])),
            }
        }
        problems.extend([now, before].into_iter().filter_map(|side| side.ended.flatten()));
    }
    if !is_childless() {
        problems.push("a process is left".to_owned());
    }
    if problems.is_empty() { Ok(()) } else { bail!("{}", problems.join("\n  ")) }
}

fn line(now: &Value, before: &Value) -> String {
    let median = |figure: &Value| figure["median"].as_f64().unwrap_or(f64::NAN);
    let shown = |figure: &Value| figure["shown"].as_str().unwrap_or("not measured").to_owned();
    let ratio = median(now) / median(before);
    let less_is_better = now["less_is_better"] == true;
    let worse = if less_is_better { ratio > TOLERATED } else { ratio < 2.0 - TOLERATED };
    let title = now["title"].as_str().unwrap_or_default();
    let mark = if worse { ", worse" } else { "" };
    format!("| {title} | {} | {} | {ratio:.2}{mark} | {} |", shown(before), shown(now), now["count"])
}

/// One of the two processes.
struct Side {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    figures: Vec<Value>,
    /// Whether it has ended, and what went wrong.
    ended: Option<Option<String>>,
}

impl Side {
    fn start(row: &str, quick: bool, program: &Path) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench", "--only", row, TAKING_TURNS]).arg(program).args(quick.then_some("--quick"));
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start a bench")?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (input, output) = pipes.context("a bench has no pipes")?;
        Ok(Self { process, input, output: BufReader::new(output), figures: Vec::new(), ended: None })
    }

    /// Lets it work until it waits again or has ended.
    fn turn(&mut self) -> Result<()> {
        // When it has ended, its output says so.
        let _ = writeln!(self.input);
        let mut line = String::new();
        while self.output.read_line(&mut line)? > 0 {
            if line.trim_end() == YOUR_TURN {
                return Ok(());
            }
            self.figures.push(serde_json::from_str(&line).with_context(|| format!("a bench printed {line:?}"))?);
            line.clear();
        }
        let status = self.process.wait()?;
        self.ended = Some((!status.success()).then(|| format!("a bench of this row failed ({status})")));
        Ok(())
    }
}

/// In one of the two processes: waits until it is its turn. When there are no more turns, it goes on.
pub fn wait_for_turn() -> Result<()> {
    println!("{YOUR_TURN}");
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

/// In one of the two processes: says what it has measured.
pub fn tell(rows: &[Row]) {
    for Row { title, unit, measured, .. } in rows {
        let ours = measured.iter().filter(|measured| measured.who == Contender::Ostler);
        for samples in ours.filter_map(|measured| measured.samples.as_ref().ok()) {
            println!("{}", figure(title, *unit, samples));
        }
    }
}

fn figure(title: &str, unit: Unit, samples: &Samples) -> Value {
    let median = samples.median();
    json!({
        "title": title,
        "median": median,
        "shown": unit.show(median),
        "less_is_better": unit.less_is_better(),
        "count": samples.count(),
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;

    fn of(unit: Unit, sample: f64) -> Value {
        figure("a row", unit, &Samples::new(vec![sample]).unwrap())
    }

    #[test]
    fn what_is_worse_by_more_than_a_twentieth_is_marked_whatever_the_unit() {
        let time = |now| line(&of(Unit::Milliseconds, now), &of(Unit::Milliseconds, 2.0));
        assert_eq!(time(2.0), "| a row | 2.00 ms | 2.00 ms | 1.00 | 1 |");
        assert_eq!(time(2.2), "| a row | 2.00 ms | 2.20 ms | 1.10, worse | 1 |");
        let speed = |now| line(&of(Unit::MegabytesPerSecond, now), &of(Unit::MegabytesPerSecond, 200.0));
        assert_eq!(speed(220.0), "| a row | 200 MB/s | 220 MB/s | 1.10 | 1 |");
        assert_eq!(speed(180.0), "| a row | 200 MB/s | 180 MB/s | 0.90, worse | 1 |");
    }
}
