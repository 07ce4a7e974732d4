//! Jobs: sessions that drive other sessions. Whichever process is killed, each step is taken once.

#![expect(clippy::unwrap_used, reason = "a test that finds no value has failed")]

mod drivers_may_be_killed;
mod helpers_killed_together;
mod loops_end;
mod next_runs;
mod queued;
mod recovering;
mod refused;
mod requeued;
mod selectors;
mod steps_are_taken_once;
mod stopping;

use ostler_testkit::Harness;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn harness() -> Harness {
    Harness::new(env!("CARGO_BIN_EXE_ostler"))
}

/// A loop in the background: its id.
#[track_caller]
fn start(harness: &Harness, arguments: &[&str]) -> String {
    let output = harness.run(&[&["loop", "-d"], arguments].concat()).exits(0);
    output.stdout.trim_end().to_owned()
}

/// The steps of a job.
fn steps(harness: &Harness, job: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(harness.home().join("sessions").join(job).join("job.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The lines that a job has printed so far.
fn lines(harness: &Harness, job: &str) -> Vec<String> {
    steps(harness, job).iter().filter_map(|step| step["line"].as_str().map(str::to_owned)).collect()
}

/// The children of a job, by the keys of their steps.
fn children(harness: &Harness, job: &str, key: &str) -> Vec<String> {
    let of_key = |step: &&Value| step["key"].as_str().is_some_and(|name| name.starts_with(key));
    let all = steps(harness, job);
    all.iter().filter(of_key).filter_map(|step| step["session"].as_str().map(str::to_owned)).collect()
}

/// A file in the folder in which everything works.
fn file(harness: &Harness, name: &str) -> PathBuf {
    harness.root().join("home").join(name)
}

/// A command that notes that it ran, and exits with 0 from its `n`th time on.
fn passes_at(log: &Path, n: u32) -> String {
    let log = log.display();
    format!("echo ran >> {log}; echo \"so far $(wc -l < {log})\"; test $(wc -l < {log}) -ge {n}")
}

/// A prompt whose turns last until [`open`] lets them end, one after the other.
fn gated(harness: &Harness) -> String {
    let (turns, gate) = (file(harness, "turns"), file(harness, "gate-"));
    // What a loop adds to its prompt is not run.
    format!(
        "run-command echo turn >> {0}; until test -e {1}$(wc -l < {0}); do sleep 0.05; done; exit 0",
        turns.display(),
        gate.display()
    )
}

/// Lets this turn of a [`gated`] prompt end.
fn open(harness: &Harness, turn: usize) {
    std::fs::write(file(harness, &format!("gate-{turn}")), "").unwrap();
}

fn count(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap_or_default().lines().count()
}
