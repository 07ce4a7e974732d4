//! How long the terminal stays empty after `attach` was typed.

use std::process::Command;

use anyhow::Result;

use crate::bench::Bench;
use crate::bench::clock::Mailbox;
use crate::bench::drive::dtach::Dtach;
use crate::bench::drive::ostler::Ostler;
use crate::bench::drive::shpool::Shpool;
use crate::bench::drive::tmux::Tmux;
use crate::bench::execute::{LIMIT, run};
use crate::bench::measure::{Contender, Entry};
use crate::bench::row::{Goal, Row, Unit};
use crate::bench::terminal::{Client, on_terminal};

pub const NAME: &str = "attach";

/// A line of the history is "L", eight digits and the end of the line.
const LINE_BYTES: usize = 10;

/// Lines that every tool can show on 24 rows, with a status line and an empty last line.
const SHOWN: usize = 20;

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let lines = bench.choose(1_000_000, 100_000);
    let entries = vec![
        Entry::new(Contender::Ostler, "ostler attach ID", || {
            let (ostler, history) = (Ostler::in_new_home(bench)?, History::new(bench, lines)?);
            let id = ostler.launch(["-t", "--", "sh", "-c", &history.script()])?;
            history.once_written(move || ostler.command(["attach", &id]))
        }),
        Entry::new(Contender::Tmux, "tmux attach", || {
            let (tmux, history) = (Tmux::start(bench)?, History::new(bench, lines)?);
            tmux.launch("history", &history.script())?;
            history.once_written(move || {
                let mut attach = tmux.command();
                attach.args(["attach-session", "-t", "history"]);
                attach
            })
        }),
        Entry::new(Contender::Dtach, "dtach -a SOCKET -r winch (the program redraws itself)", || {
            let (dtach, history) = (Dtach::new(bench)?, History::new(bench, lines)?);
            let (sessions, sockets) = dtach.launch(1, &["bash", "-c", &history.redrawing_script()])?;
            history.once_written(move || {
                let _alive_meanwhile = &sessions;
                let mut attach = dtach.command("-a", sockets.first().map_or("".as_ref(), |socket| socket.as_path()));
                attach.args(["-r", "winch"]);
                attach
            })
        }),
        Entry::new(Contender::Shpool, "shpool attach NAME", || {
            let (shpool, history) = (Shpool::start(bench)?, History::new(bench, lines)?);
            let script = bench.scratch.file("history.sh");
            std::fs::write(&script, history.script())?;
            run(&mut shpool.launch_command("history", &format!("sh {}", script.display())))?;
            history.once_written(move || {
                let mut attach = shpool.command();
                attach.args(["attach", "--force", "history"]);
                attach
            })
        }),
    ];
    let megabytes = lines * LINE_BYTES / 1_000_000;
    Ok(vec![Row {
        name: NAME,
        title: format!("attach until the screen is complete, {megabytes} MB of history"),
        how: "The client runs on a terminal of 80 × 24; from its exec until the last twenty lines of the \
              history have arrived. dtach keeps no screen, so there the program draws it again.",
        unit: Unit::Milliseconds,
        measured: bench.take_turns(entries, bench.choose(30, 3))?,
        goals: vec![Goal::AtMost(30.0)],
    }])
}

/// A program with a long history, and the part of it that must be shown.
struct History<'a> {
    bench: &'a Bench,
    lines: usize,
    written: Mailbox,
    clients: Mailbox,
}

impl<'a> History<'a> {
    fn new(bench: &'a Bench, lines: usize) -> Result<Self> {
        let written = Mailbox::create(bench.scratch.file("written"))?;
        Ok(Self { bench, lines, written, clients: Mailbox::create(bench.scratch.file("clients"))? })
    }

    /// Prints the lines, reports that, and keeps running.
    fn script(&self) -> String {
        format!("seq -f L%08.0f {}; echo written > {}; exec sleep 600", self.lines, self.written.path().display())
    }

    /// Like `script`, but it draws its last screen again whenever it gets a signal that the size of its terminal has
    /// changed.
    fn redrawing_script(&self) -> String {
        let (lines, first) = (self.lines, self.lines - SHOWN);
        format!(
            "screen=$(seq -f L%08.0f {first} {lines}); trap 'printf \"%s\\n\" \"$screen\"' WINCH; \
             seq -f L%08.0f {lines}; echo written > {}; sleep 600 & while :; do wait; done",
            self.written.path().display()
        )
    }

    /// Waits for the history, looks at it once, and returns a function that takes a sample.
    fn once_written(mut self, attach: impl Fn() -> Command + 'a) -> Result<impl FnMut(usize) -> Result<f64> + 'a> {
        self.written.receive(LIMIT)?;
        let mut sample = move |_| self.look(&attach());
        // The tool may be a few kilobytes behind its program; once the end was shown it is not.
        sample(0)?;
        Ok(sample)
    }

    fn look(&mut self, attach: &Command) -> Result<f64> {
        let mut command = self.bench.scratch.command(&self.bench.agent);
        on_terminal(&mut command, &self.clients, attach);
        let shown: Vec<String> = (self.lines - SHOWN + 1..=self.lines).map(|line| format!("L{line:08}")).collect();
        let client = Client::start(command, &mut self.clients)?;
        let took = client.ms_until_shown(&shown.iter().map(String::as_str).collect::<Vec<_>>());
        client.hang_up()?;
        took
    }
}
