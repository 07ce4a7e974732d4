//! The table, for docs/benchmarks.md and for the terminal.

use std::fmt::Write as _;

use super::machine::Machine;
use super::measure::{Contender, Measured};
use super::row::{Row, Verdict};

pub fn markdown(table: &[Row], machine: &Machine, versions: &[String]) -> String {
    let Machine { date, cores, processor, memory_gib, kernel } = machine;
    let mut text = String::from("# Benchmarks\n\n");
    text.push_str(
        "Written by `cargo xtask bench`. Medians; the tools take turns, sample by sample. Do not edit by hand.\n\n",
    );
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{date}, {cores} cores ({processor}), {memory_gib:.0} GiB of memory, Linux {kernel}.");
    let _ = writeln!(text, "{}.\n", versions.join(", "));
    text.push_str("![ostler beside the others](benchmarks.svg)\n\n");
    text.push_str("| measured | ostler | the others | goal | reached | samples |\n");
    text.push_str("| --- | --- | --- | --- | --- | --- |\n");
    for row in table {
        text.push_str(&line(row));
    }
    text.push_str("\n## How each is measured\n\n");
    for row in table {
        let _ = writeln!(text, "- **{}** (`--only {}`). {}", row.title, row.name, row.how);
        for measured in &row.measured {
            let _ = writeln!(text, "  - {}: {}", measured.who.name(), measured.command);
        }
    }
    text
}

/// A row of the table.
pub fn line(row: &Row) -> String {
    let ours: Vec<&Measured> = row.measured.iter().filter(|one| one.who == Contender::Ostler).collect();
    let others: Vec<String> = row
        .measured
        .iter()
        .filter(|one| one.who != Contender::Ostler)
        .map(|one| format!("{} {}", one.who.name(), figure(row, one)))
        .collect();
    let goals: Vec<String> = row.goals.iter().map(|goal| row.goal_in_words(*goal)).collect();
    let reached: Vec<String> = row.goals.iter().map(|goal| in_a_word(row.verdict(*goal)).to_owned()).collect();
    let samples: Vec<String> = ours.iter().map(|one| samples(one)).collect();
    let ours: Vec<String> = ours.iter().map(|one| figure(row, one)).collect();
    let cell = |lines: &[String]| if lines.is_empty() { "—".to_owned() } else { lines.join("<br>") };
    let (others, goals, reached) = (cell(&others), cell(&goals), cell(&reached));
    format!("| {} | {} | {others} | {goals} | {reached} | {} |\n", row.title, ours.join(" "), samples.join(" "))
}

fn figure(row: &Row, measured: &Measured) -> String {
    match &measured.samples {
        Ok(samples) => row.unit.show(samples.median()),
        Err(reason) => format!("not measured ({})", reason.replace('|', "/")),
    }
}

fn samples(measured: &Measured) -> String {
    measured.samples.as_ref().map_or_else(|_| "0".to_owned(), |samples| samples.count().to_string())
}

fn in_a_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reached => "yes",
        Verdict::Missed => "no",
        Verdict::Unknown => "not known",
    }
}
