//! `cargo xtask chaos git`: random faults while ostler works with git, and a table of the results.

use ostler_chaos::attempt;
use ostler_chaos::git::fault::Fault;
use ostler_chaos::git::operation::Operation;
use ostler_chaos::git::{IN_ONE_WORLD, play};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub fn run(mut words: impl Iterator<Item = String>) -> ExitCode {
    let mut seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let (mut faults, mut program) = (500_u64, None);
    let mut operations: &[Operation] = &Operation::ALL;
    while let Some(word) = words.next() {
        let value = words.next();
        let number = || value.as_ref().and_then(|value| value.parse().ok());
        match (word.as_str(), number()) {
            ("--seed", Some(number)) => seed = number,
            ("--faults", Some(number)) => faults = number,
            ("--only", _) if value.as_deref() == Some("turns") => operations = &Operation::OF_TURNS,
            ("--program", _) => program = value.map(PathBuf::from),
            _ => {
                eprintln!("cargo xtask chaos git [--program OSTLER] [--seed S] [--faults N] [--only turns]");
                return ExitCode::from(2);
            }
        }
    }
    let own = std::env::current_exe().ok().map(|own| own.with_file_name("ostler"));
    let Some(program) = program.or(own) else { return ExitCode::from(2) };
    println!("seed {seed}");
    let begun = Instant::now();
    let mut counts: BTreeMap<Fault, (u64, u64)> = BTreeMap::new();
    let mut by_operation: BTreeMap<Operation, (u64, u64)> = BTreeMap::new();
    let (mut done, mut violations) = (0, 0);
    for world in 0..faults.div_ceil(IN_ONE_WORLD) {
        let seed = seed.wrapping_add(world);
        let here = IN_ONE_WORLD.min(faults - world * IN_ONE_WORLD);
        let played = attempt(|| {
            play(&program, operations, seed, here, &mut |played| {
                let count = counts.entry(played.fault).or_default();
                count.0 += 1;
                count.1 += u64::from(played.injected);
                let count = by_operation.entry(played.operation).or_default();
                count.0 += 1;
                count.1 += u64::from(played.injected);
                done += 1;
            });
        });
        if let Err(why) = played {
            violations += 1;
            println!("VIOLATION: {why}");
            let only = if operations.len() < Operation::ALL.len() { " --only turns" } else { "" };
            println!("  again: cargo xtask chaos git --seed {seed} --faults {here}{only}");
        }
        println!("{done} faults, {violations} violations, {:.0} s", begun.elapsed().as_secs_f64());
    }
    println!("\n| fault | times | injected |\n| --- | ---: | ---: |");
    for (fault, (times, injected)) in &counts {
        println!("| {} | {times} | {injected} |", fault.name());
    }
    println!("\n| operation | times | injected |\n| --- | ---: | ---: |");
    for (operation, (times, injected)) in &by_operation {
        println!("| {} | {times} | {injected} |", operation.name());
    }
    println!("\n{done} faults, {violations} violations, {:.0} s", begun.elapsed().as_secs_f64());
    if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
