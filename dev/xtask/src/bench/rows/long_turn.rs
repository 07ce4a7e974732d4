//! What commands cost in the middle of a long turn: the cost has to depend on what is new, not on what was said so far.

use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::bench::Bench;
use crate::bench::drive::ostler::{Ostler, printed_id};
use crate::bench::execute::{run, start};
use crate::bench::measure::{Contender, Entry};
use crate::bench::row::{Goal, Row, Unit};

pub const NAME: &str = "long_turn";

const LIMIT: Duration = Duration::from_secs(60);
/// What the agent says last before it only works, and the command with which it works.
const LAST: &str = "that was all so far";
const WORKS: &str = "sleep 3600";
/// The exit code for a turn that is not proven to be saved.
const NOT_SAVED: i32 = 8;

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let (sessions, megabytes) = (bench.choose(20, 3), bench.choose(5, 1));
    let many = InTurn::begin(bench, sessions, megabytes * 1024, WORKS, LAST)?;
    let mut rows = vec![many.row(
        bench,
        format!("ls of {sessions} sessions, each {megabytes} MB into a turn"),
        "ostler ls",
        vec!["ls".to_owned()],
        6.0,
    )?];
    drop(many);

    let megabytes = bench.choose(50, 2);
    let one = InTurn::begin(bench, 1, megabytes * 1024, WORKS, LAST)?;
    let id = || one.ids.first().cloned().unwrap_or_default();
    let asked = [
        ("send", "ostler send ID hello", vec!["send".to_owned(), id(), "hello".to_owned()], 10.0),
        ("show", "ostler show ID", vec!["show".to_owned(), id()], 10.0),
        ("ls", "ostler ls", vec!["ls".to_owned()], 10.0),
    ];
    for (what, command, arguments, goal) in asked {
        rows.push(one.row(bench, format!("{what}, {megabytes} MB into a turn"), command, arguments, goal)?);
    }
    drop(one);
    rows.push(killed(bench, megabytes)?);
    Ok(rows)
}

/// Each session can be stopped once.
fn killed(bench: &Bench, megabytes: usize) -> Result<Row> {
    let sessions = bench.choose(5, 2);
    let turns = InTurn::begin(bench, sessions, megabytes * 1024, WORKS, LAST)?;
    let mut ids = turns.ids.iter();
    let ostler = &turns.ostler;
    let entry = Entry::new(Contender::Ostler, "ostler stop --kill ID", || {
        Ok(move |_| {
            let id = ids.next().context("no session is left")?;
            start(&mut ostler.command(["stop", "--kill", id]))?.finish_with(NOT_SAVED, LIMIT)
        })
    });
    Ok(Row {
        name: NAME,
        title: format!("stop --kill, {megabytes} MB into a turn"),
        how: "As above. The script has written no transcript, so the exit code says that the turn is not saved.",
        unit: Unit::Milliseconds,
        measured: bench.take_turns(vec![entry], sessions)?,
        goals: vec![Goal::AtMost(10.0)],
    })
}

/// Sessions whose agent has said a lot and is still working.
pub(super) struct InTurn<'a> {
    pub ostler: Ostler<'a>,
    pub ids: Vec<String>,
}

impl InTurn<'_> {
    /// `then`: what the agent does after this many KiB. `says`: what is shown when it does.
    pub fn begin<'a>(
        bench: &'a Bench,
        sessions: usize,
        kibibytes: usize,
        then: &str,
        says: &str,
    ) -> Result<InTurn<'a>> {
        let ostler = Ostler::in_new_home(bench)?;
        let path = agent(bench, kibibytes, then)?;
        let mut ids = Vec::new();
        for _ in 0..sessions {
            let mut command = ostler.command(["run", "-d", "claude", "go on"]);
            ids.push(printed_id(&run(command.env("PATH", &path))?.stdout)?.to_owned());
        }
        for id in &ids {
            let deadline = Instant::now() + LIMIT;
            while !run(&mut ostler.command(["show", id, "--json"]))?.stdout.contains(says) {
                if Instant::now() > deadline {
                    bail!("session {id} has not been understood within {} s", LIMIT.as_secs());
                }
            }
        }
        Ok(InTurn { ostler, ids })
    }

    fn row(
        &self,
        bench: &Bench,
        title: String,
        command: &'static str,
        arguments: Vec<String>,
        goal: f64,
    ) -> Result<Row> {
        let ostler = &self.ostler;
        let entry =
            Entry::new(Contender::Ostler, command, move || Ok(move |_| Ok(run(&mut ostler.command(&arguments))?.ms)));
        Ok(Row {
            name: NAME,
            title,
            how: "From before the command is spawned until it has exited. A script in the place of Claude Code has printed so much \
                  of its JSON, and its turn goes on.",
            unit: Unit::Milliseconds,
            measured: bench.take_turns(vec![entry], bench.choose(30, 3))?,
            goals: vec![Goal::AtMost(goal)],
        })
    }
}

/// Makes a program in place of the agent, which says this much and then works on. Returns the `PATH` on which it is
/// found.
fn agent(bench: &Bench, kibibytes: usize, then: &str) -> Result<String> {
    let bin = bench.scratch.folder("bin")?;
    let said = bench.scratch.file("said");
    let line = |text: &str| {
        format!(r#"{{"type":"assistant","uuid":"u","message":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#)
    };
    let long = line(&"words ".repeat(160));
    let mut text = String::new();
    for _ in 0..(kibibytes << 10) / (long.len() + 1) {
        writeln!(text, "{long}")?;
    }
    writeln!(text, "{}", line(LAST))?;
    std::fs::write(&said, text)?;
    let program: PathBuf = bin.join("claude");
    std::fs::write(&program, format!("#!/bin/sh\nread line\ncat '{}'\nexec {then}\n", said.display()))?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    Ok(format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default()))
}
