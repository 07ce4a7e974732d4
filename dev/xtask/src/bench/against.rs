//! `--against FILE`: an older ostler beside this one, row by row. The two take turns, so that whatever else the machine does
//! hits both alike; the other tools are left out.

use std::path::Path;
use std::rc::Rc;

use anyhow::Result;

use super::measure::{Contender, Measured, Samples};
use super::row::{Goal, Row};
use super::tools::Tools;
use super::{Bench, MeasureRow};

/// How often each of the two measures a row.
const ROUNDS: usize = 3;

/// A row that is worse than this needs an explanation.
const TOLERATED: f64 = 1.05;

/// The same bench with an older program.
pub fn older(bench: &Bench, binary: &Path) -> Result<Bench> {
    Ok(Bench {
        tools: Tools::ours_alone(binary, "ostler-before")?,
        scratch: Rc::clone(&bench.scratch),
        agent: bench.agent.clone(),
        quick: bench.quick,
        quiet: super::RefCell::new(super::Baseline::none()),
    })
}

/// The rows of `measure` with both programs. What only one of them can do is left out, with the reason.
pub fn measure(bench: &Bench, older: &Bench, measure: MeasureRow) -> Result<Vec<Row>> {
    let (mut now, mut before) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // The one that comes second finds the caches warm: each comes first about as often.
        let first_is_now = round % 2 == 0;
        for is_now in [first_is_now, !first_is_now] {
            if is_now {
                now.extend(measure(bench)?);
            } else {
                match measure(older) {
                    Ok(rows) => before.extend(rows),
                    Err(error) => {
                        eprintln!("  left out: the older one cannot do this ({error:#})");
                        return Ok(Vec::new());
                    }
                }
            }
        }
    }
    let mut rows: Vec<Row> = Vec::new();
    for row in &now {
        if rows.iter().all(|done| done.title != row.title) {
            rows.extend(beside(row, &now, &before));
        }
    }
    Ok(rows)
}

/// One row with all samples of both.
fn beside(row: &Row, now: &[Row], before: &[Row]) -> Option<Row> {
    let measured = |who, rows: &[Row]| {
        let same = rows.iter().filter(|other| other.title == row.title);
        let ours = same.flat_map(|row| &row.measured).filter(|measured| measured.who == Contender::Ostler);
        let samples: Vec<&Samples> = ours.map(|one| one.samples.as_ref()).collect::<Result<_, _>>().ok()?;
        let command = row.measured.iter().find(|measured| measured.who == Contender::Ostler)?.command;
        Some(Measured { who, command, samples: Samples::joined(&samples).ok_or_else(|| "no samples".to_owned()) })
    };
    let Some((now, before)) = measured(Contender::Ostler, now).zip(measured(Contender::OstlerBefore, before)) else {
        eprintln!("  left out: {}: one of the two was not measured", row.title);
        return None;
    };
    let goal = if row.unit.less_is_better() {
        Goal::AtMostTimes(TOLERATED, Contender::OstlerBefore)
    } else {
        Goal::AtLeastTimes(2.0 - TOLERATED, Contender::OstlerBefore)
    };
    Some(Row { title: row.title.clone(), measured: vec![now, before], goals: vec![goal], ..*row })
}
