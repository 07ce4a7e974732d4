//! `cargo xtask chaos`: random faults, one after the other, and a table of the results.
//!
//! Fault number i of seed S is fault number 0 of seed S + i: a failure prints how to repeat it alone.

use ostler_chaos::fault::{Fault, Means};
use ostler_chaos::random::Random;
use ostler_chaos::{attempt, reused, round};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

mod with_git;

const USAGE: &str = "cargo xtask chaos git [--seed S] [--faults N]
cargo xtask chaos [--program OSTLER] [--older OSTLER] [--seed S] [--faults N] [--minutes N]
    [--only FAULT]";

/// What the command line asks for.
struct Asked {
    means: Means,
    seed: u64,
    faults: u64,
    time: Option<Duration>,
    /// Only this fault is injected.
    only: Option<Fault>,
}

fn asked(mut words: impl Iterator<Item = String>) -> Option<Asked> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let (mut program, mut older, mut seed, mut faults, mut time, mut only) = (None, None, now, None, None, None);
    while let Some(word) = words.next() {
        let value = words.next()?;
        match word.as_str() {
            "--program" => program = Some(PathBuf::from(value)),
            "--older" => older = Some(PathBuf::from(value)),
            "--seed" => seed = value.parse().ok()?,
            "--faults" => faults = Some(value.parse().ok()?),
            "--only" => only = Some(Fault::ALL.into_iter().find(|fault| fault.name() == value)?),
            "--minutes" => time = Some(Duration::from_secs(60 * value.parse::<u64>().ok()?)),
            _ => return None,
        }
    }
    let faults = faults.unwrap_or(if time.is_some() { u64::MAX } else { 100 });
    let own = std::env::current_exe().ok();
    // Cargo builds both into the same folder.
    let program = program.or_else(|| own.as_ref().map(|own| own.with_file_name("ostler")))?;
    Some(Asked { means: Means { program, older, own }, seed, faults, time, only })
}

#[derive(Default)]
struct Row {
    count: u64,
    not_met: u64,
    violations: u64,
    looks: u64,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, program] = words.as_slice()
        && word == reused::WORD
    {
        reused::play(program.as_ref());
        return ExitCode::SUCCESS;
    }
    if words.first().map(String::as_str) == Some("git") {
        return with_git::run(words.into_iter().skip(1));
    }
    let Some(asked) = asked(words.into_iter()) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    println!("seed {}", asked.seed);
    for fault in Fault::ALL {
        if let Some(why) = fault.left_out(&asked.means) {
            println!("left out: {} ({why})", fault.name());
        }
    }
    let begun = Instant::now();
    let rows = run(&asked, begun);
    table(&rows, asked.seed, begun.elapsed());
    if rows.values().all(|row| row.violations == 0) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(asked: &Asked, begun: Instant) -> BTreeMap<Fault, Row> {
    let wanted = |fault: &Fault| asked.only.is_none_or(|only| *fault == only);
    let can_be_done = |fault: &Fault| fault.left_out(&asked.means).is_none();
    let possible: Vec<Fault> = Fault::ALL.into_iter().filter(wanted).filter(can_be_done).collect();
    let mut rows: BTreeMap<Fault, Row> = BTreeMap::new();
    for number in 0..asked.faults {
        if asked.time.is_some_and(|time| begun.elapsed() >= time) {
            break;
        }
        let seed = asked.seed.wrapping_add(number);
        let fault = Random::new(!seed).pick(&possible);
        let row = rows.entry(fault).or_default();
        match attempt(|| round::play(&asked.means, fault, seed)) {
            Ok(verdict) if verdict.injected => {
                row.count += 1;
                row.looks += verdict.looks;
            }
            Ok(_) => row.not_met += 1,
            Err(why) => {
                row.count += 1;
                row.violations += 1;
                println!("VIOLATION by fault {number}, {}: {why}", fault.name());
                println!("  again: cargo xtask chaos --seed {seed} --faults 1 --only {:?}", fault.name());
            }
        }
        if (number + 1) % 50 == 0 {
            println!("{} faults, {:.0} s", number + 1, begun.elapsed().as_secs_f64());
        }
    }
    rows
}

fn table(rows: &BTreeMap<Fault, Row>, seed: u64, time: Duration) {
    let sum = |of: fn(&Row) -> u64| rows.values().map(of).sum::<u64>();
    println!("\n| fault | times | violations |\n| --- | ---: | ---: |");
    for (fault, row) in rows {
        println!("| {} | {} | {} |", fault.name(), row.count, row.violations);
    }
    println!("| **all** | {} | {} |", sum(|row| row.count), sum(|row| row.violations));
    let (looks, not_met) = (sum(|row| row.looks), sum(|row| row.not_met));
    println!(
        "\nseed {seed}, {:.0} s, {looks} looks at sessions under fire, {not_met} pause points not passed",
        time.as_secs_f64()
    );
}
