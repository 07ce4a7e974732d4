//! `cargo xtask`: the chores of this project as commands, so that a person and a build machine run the very same ones.

mod agents;
mod apt;
mod bench;
mod chaos;
mod counts;
mod fuzz;
mod link_order;
mod pictures;
mod processes;
mod proven;
mod record;
mod test;
mod workspace;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask test
    format, lints, build, all tests, the proof that nothing outlives them, and docs/agents.md from what passed
cargo xtask test --quick
    unit tests, snapshots and the core promises, in about two minutes
cargo xtask agents
    the real agents that tests start, pinned in agents/package-lock.json, installed below target/agents
cargo xtask programs
    the programs of the system that tests use, with apt-get where that is possible
cargo xtask record [AGENT…] [--scene NAME]
    what those agents say and write in each scene, recorded anew below recordings/
cargo xtask pictures
    docs/pictures: the program at work in a terminal, drawn by our own emulator
cargo xtask bench [--only ROW] [--quick] [--binary OSTLER] [--against OLDER_OSTLER]
    ostler beside dtach, tmux, shpool and pueue; a whole run writes docs/benchmarks.md and docs/benchmarks.svg
cargo xtask fuzz [TARGET…] [--seconds N]
    every parser of bytes from other programs, with cargo-fuzz, each for a minute or N seconds
cargo xtask chaos [--seed S] [--faults N] [--minutes N] [--older OSTLER]
    random faults, what must hold after each of them, and a table for docs/reliability.md
cargo xtask link-order
    crates/cli/link_order.txt: the functions that frequent commands call, for the linker; after a new compiler
cargo xtask counts
    what the tests try a few times with real agents, hundreds of times, for docs/reliability.md";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((command, rest)) if command == "test" => test::run(rest),
        Some((command, rest)) if command == "agents" => agents::run(rest),
        Some((command, rest)) if command == "programs" => test::install_programs(rest),
        Some((command, rest)) if command == "record" => record::run(rest),
        Some((command, rest)) if command == "pictures" => pictures::run(rest),
        Some((command, rest)) if command == "bench" => bench::run(rest),
        Some((command, rest)) if command == "fuzz" => fuzz::run(rest),
        Some((command, rest)) if command == "chaos" => chaos::run(rest),
        Some((command, rest)) if command == "link-order" => link_order::run(rest),
        Some((command, rest)) if command == "counts" => counts::run(rest),
        // What the benchmarks keep: a process that notes the time, exits on demand, or writes a lot.
        Some((command, rest)) if command == bench::agent::COMMAND => bench::agent::run(rest),
        Some(_) | None => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
