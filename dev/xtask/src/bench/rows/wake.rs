//! How soon it is reported that an agent has ended.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::bench::Bench;
use crate::bench::agent;
use crate::bench::clock::{Mailbox, Moment};
use crate::bench::drive::ostler::Ostler;
use crate::bench::drive::pueue::Pueue;
use crate::bench::drive::tmux::Tmux;
use crate::bench::execute::{LIMIT, start};
use crate::bench::measure::{Contender, Entry};
use crate::bench::row::{Goal, Row, Unit};

pub const NAME: &str = "wake";

/// pueue looks every two seconds; exits are spread evenly over such a time, so that no waiter is always hit at its best
/// or worst moment.
const SPREAD: Duration = Duration::from_secs(2);

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let rounds = bench.choose(20, 2);
    let entries = vec![
        Entry::new(Contender::Ostler, "ostler wait ID", || {
            let (ostler, mut mortal) = (Ostler::in_new_home(bench)?, Mortal::new(bench)?);
            Ok(move |round| {
                let id = ostler.launch(["--"].into_iter().chain(mortal.words().iter().map(String::as_str)))?;
                mortal.ms_until_noticed(&mut ostler.command(["wait", &id]), spread(round, rounds))
            })
        }),
        Entry::new(Contender::Tmux, "tmux wait-for CHANNEL, signalled by the line after the command", || {
            let (tmux, mut mortal) = (Tmux::start(bench)?, Mortal::new(bench)?);
            Ok(move |round| {
                let channel = format!("ended-{round}");
                let (program, socket) = (tmux.program().display(), tmux.socket().display());
                let line = format!("{}; {program} -S {socket} wait-for -S {channel}", mortal.words().join(" "));
                tmux.launch(&channel, &line)?;
                mortal.ms_until_noticed(tmux.command().args(["wait-for", &channel]), spread(round, rounds))
            })
        }),
        Entry::new(Contender::Pueue, "pueue wait TASK", || {
            let (pueue, mut mortal) = (Pueue::start(bench, 10)?, Mortal::new(bench)?);
            Ok(move |round| {
                let task = pueue.add(&mortal.words().join(" "))?;
                mortal.ms_until_noticed(pueue.command().args(["wait", &task]), spread(round, rounds))
            })
        }),
        Entry::new(Contender::PueueFollow, "pueue follow TASK", || {
            let (pueue, mut mortal) = (Pueue::start(bench, 10)?, Mortal::new(bench)?);
            Ok(move |round| {
                let task = pueue.add(&mortal.words().join(" "))?;
                mortal.ms_until_noticed(pueue.command().args(["follow", &task]), spread(round, rounds))
            })
        }),
    ];
    Ok(vec![Row {
        name: NAME,
        title: "the agent exits until the waiter returns".to_owned(),
        how: "The kept program notes the time as its last act; the waiter's exit is noted by its \
              parent. Both read CLOCK_MONOTONIC.",
        unit: Unit::Milliseconds,
        measured: bench.take_turns(entries, rounds)?,
        goals: vec![Goal::AtMost(5.0)],
    }])
}

fn spread(round: usize, rounds: usize) -> Duration {
    let part = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    SPREAD * part(round) / part(rounds.max(1))
}

/// A program that runs until we let it exit, and reports when it did.
struct Mortal<'a> {
    bench: &'a Bench,
    gate: Mailbox,
    report: Mailbox,
}

impl<'a> Mortal<'a> {
    fn new(bench: &'a Bench) -> Result<Self> {
        let gate = Mailbox::create(bench.scratch.file("gate"))?;
        Ok(Self { bench, gate, report: Mailbox::create(bench.scratch.file("report"))? })
    }

    fn words(&self) -> [String; 5] {
        [
            self.bench.agent.display().to_string(),
            agent::COMMAND.to_owned(),
            "exit-on-demand".to_owned(),
            self.gate.path().display().to_string(),
            self.report.path().display().to_string(),
        ]
    }

    /// Lets the program exit once the waiter does nothing but wait.
    fn ms_until_noticed(&mut self, waiter: &mut Command, after: Duration) -> Result<f64> {
        let up = self.report.receive(LIMIT)?;
        let waiter = start(waiter)?;
        let waits = waiter.until_it_waits().is_ok() && waiter.waits_for(after);
        self.gate.post("go\n")?;
        let ended = self.report.receive(LIMIT)?;
        let (_, noticed) = waiter.finish(LIMIT)?;
        if up != "up" || !waits {
            bail!("the waiter returned while the program still ran");
        }
        Ok(noticed.ms_since(Moment::from_word(&ended)?))
    }
}
