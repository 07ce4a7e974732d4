//! How fast Claude Code's output becomes facts:
//! `cargo run --release -p ostler-agents --example agents_throughput [MEGABYTES]`.
//!
//! The lines are those of a real turn with a tool, with text in as many pieces and results as long as in such turns: an
//! answer of 200 pieces, one per line, then the complete answer; a tool's output of 200 lines.

use ostler_agents::claude::Claude;
use ostler_agents::output_facts::Reading;
use ostler_agents::speak::Speak;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::Duration;

const TURN: &str = include_str!("../tests/decoders/samples/claude.jsonl");
/// The size of one read of the output.
const PIECE: usize = 256 << 10;
const ROUNDS: usize = 5;

fn main() {
    let megabytes: usize = std::env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(64);
    let events = events(megabytes * 1_000_000);
    let rates = (0..ROUNDS).map(|_| {
        let start = processor_time();
        let mut reading = Reading::from(0, Claude.decoder());
        for piece in events.chunks(PIECE) {
            reading.feed(piece, |_, fact| drop(black_box(fact)));
        }
        events.len() as f64 / 1e6 / (processor_time() - start).as_secs_f64()
    });
    let mut rates: Vec<f64> = rates.collect();
    rates.sort_by(f64::total_cmp);
    println!("{:.0} MB/s", rates[ROUNDS / 2]);
}

/// Time of this thread: on a busy machine it waits longer, but does not use more processor time.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn events(length: usize) -> Vec<u8> {
    let answer: Vec<String> = (0..200).map(|number| format!("word{number} \\\"é\\\" ")).collect();
    let output: String =
        (0..200).map(|line| format!("src/main.rs:{line}:    let value = \\\"{line}\\\";\\n")).collect();
    let mut turn = String::new();
    for line in TURN.lines() {
        if line.contains("text_delta") {
            for piece in &answer {
                turn.push_str(&line.replace("all done", piece));
                turn.push('\n');
            }
        } else {
            let line = line.replace("all done", &answer.concat());
            turn.push_str(&line.replace("\"content\":\"told\"", &format!("\"content\":\"{output}\"")));
            turn.push('\n');
        }
    }
    turn.repeat(length.div_ceil(turn.len())).into_bytes()
}
