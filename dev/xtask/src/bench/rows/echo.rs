//! How long it takes until a key is shown: through a client on a terminal, to the program, and back.

use std::process::Command;

use anyhow::{Context, Result};

use crate::bench::Bench;
use crate::bench::clock::Mailbox;
use crate::bench::drive::dtach::Dtach;
use crate::bench::drive::ostler::Ostler;
use crate::bench::drive::tmux::Tmux;
use crate::bench::execute::LIMIT;
use crate::bench::measure::{Contender, Entry, Samples};
use crate::bench::row::{Goal, Row, Unit};
use crate::bench::terminal::{Client, on_terminal};

pub const NAME: &str = "echo";

/// How many keys are typed for one sample. Their median is the sample.
const KEYS: usize = 200;

/// Letters that end no control sequence of a screen.
const LETTERS: [u8; 5] = *b"vwxyz";

/// What echoes a key.
#[derive(Clone, Copy)]
enum Echo {
    /// The terminal itself, at once: only the tool is measured.
    Terminal,
    /// A program that reads keys and draws, as agents do.
    Program,
}

impl Echo {
    /// Reports that it runs, and keeps running. Where the terminal echoes, the program is woken for many keys at once.
    fn script(self, up: &Mailbox) -> String {
        let (modes, output) = match self {
            Self::Terminal => ("-icanon min 255 echo", "> /dev/null"),
            Self::Program => ("raw -echo", ""),
        };
        format!("stty {modes}; echo up > {}; exec cat {output}", up.path().display())
    }

    fn title(self) -> &'static str {
        match self {
            Self::Terminal => "a key through attach until its echo is seen, echoed by the terminal",
            Self::Program => "a key through attach until its echo is seen, echoed by a program",
        }
    }
}

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    [Echo::Terminal, Echo::Program].into_iter().map(|echo| measure_one(bench, echo)).collect()
}

fn measure_one(bench: &Bench, echo: Echo) -> Result<Row> {
    let up = || Mailbox::create(bench.scratch.file("up"));
    let entries = vec![
        Entry::new(Contender::Ostler, "ostler attach ID", || {
            let (ostler, mut up) = (Ostler::in_new_home(bench)?, up()?);
            let id = ostler.launch(["-t", "--", "sh", "-c", &echo.script(&up)])?;
            up.receive(LIMIT)?;
            let attach = ostler.command(["attach", &id]);
            Attached::to(ostler, bench, &attach, "[attached;")
        }),
        Entry::new(Contender::Dtach, "dtach -a SOCKET", || {
            let (dtach, mut up) = (Dtach::new(bench)?, up()?);
            let (sessions, sockets) = dtach.launch(1, &["sh", "-c", &echo.script(&up)])?;
            up.receive(LIMIT)?;
            let mut attach = dtach.command("-a", sockets.first().map_or("".as_ref(), |socket| socket.as_path()));
            attach.args(["-r", "none"]);
            Attached::to((sessions, dtach), bench, &attach, "\x1b[H\x1b[J")
        }),
        Entry::new(Contender::Tmux, "tmux attach", || {
            let (tmux, mut up) = (Tmux::start(bench)?, up()?);
            tmux.launch("echo", &echo.script(&up))?;
            up.receive(LIMIT)?;
            let mut attach = tmux.command();
            attach.args(["attach-session", "-t", "echo"]);
            Attached::to(tmux, bench, &attach, "[echo]")
        }),
    ];
    Ok(Row {
        name: NAME,
        title: echo.title().to_owned(),
        how: "The client runs on a terminal of 80 × 24. Keys are typed one at a time, each when the one before was seen; a \
              sample is the median of 200.",
        unit: Unit::Milliseconds,
        measured: bench.take_turns(entries, bench.choose(30, 5))?,
        goals: vec![Goal::AtMostTimes(1.3, Contender::Dtach)],
    })
}

/// A client that types and looks. The client is dropped before the tool.
struct Attached<T> {
    client: Option<Client>,
    typed: usize,
    _tool: T,
}

impl<T> Attached<T> {
    /// Attaches, and returns a function that takes a sample. `greeting`: what the client shows when it has the
    /// terminal.
    fn to(
        tool: T,
        bench: &Bench,
        attach: &Command,
        greeting: &str,
    ) -> Result<impl FnMut(usize) -> Result<f64> + use<T>> {
        let mut reports = Mailbox::create(bench.scratch.file("clients"))?;
        let mut command = bench.scratch.command(&bench.agent);
        on_terminal(&mut command, &reports, attach);
        let client = Client::start(command, &mut reports)?;
        client.ms_until_shown(&[greeting])?;
        let mut attached = Self { client: Some(client), typed: 0, _tool: tool };
        // One-time costs are in the first keys, which are not measured.
        attached.type_keys()?;
        Ok(move |_| attached.type_keys())
    }

    fn type_keys(&mut self) -> Result<f64> {
        let client = self.client.as_ref().context("no client")?;
        let mut took = Vec::with_capacity(KEYS);
        for _ in 0..KEYS {
            took.push(client.ms_until_echoed(LETTERS[self.typed % LETTERS.len()])?);
            self.typed += 1;
        }
        Samples::new(took).map(|samples| samples.median()).context("no keys were typed")
    }
}

impl<T> Drop for Attached<T> {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.client.take().map(Client::hang_up) {
            eprintln!("{error:#}");
        }
    }
}
