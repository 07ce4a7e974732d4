//! How much a tool slows down a program that prints to its terminal while no client is attached.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::bench::Bench;
use crate::bench::agent;
use crate::bench::clock::{Mailbox, Moment};
use crate::bench::drive::dtach::Dtach;
use crate::bench::drive::ostler::Ostler;
use crate::bench::drive::shpool::Shpool;
use crate::bench::drive::tmux::Tmux;
use crate::bench::execute::{LIMIT, run};
use crate::bench::measure::{Contender, Entry, Measured};
use crate::bench::row::{Goal, Row, Unit};

pub const NAME: &str = "output";

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    Ok(vec![coloured_lines(bench)?, short_lines(bench)?])
}

fn coloured_lines(bench: &Bench) -> Result<Row> {
    let bytes = bench.choose(64_000_000, 2_000_000);
    let words = [bench.agent.display().to_string(), agent::COMMAND.into(), "pour".into(), "colours".into()];
    let program =
        Program { words: words.into_iter().chain([bytes.to_string()]).collect(), megabytes: megabytes(bytes) };
    Ok(Row {
        name: NAME,
        title: format!("terminal output, no client attached, {:.0} MB of coloured lines", program.megabytes),
        how: "A program writes lines as agents draw them; timed from inside the session, from its start to its end.",
        unit: Unit::MegabytesPerSecond,
        measured: measure_all(bench, &program)?,
        goals: vec![Goal::AtLeastTimes(1.5, Contender::Tmux)],
    })
}

fn short_lines(bench: &Bench) -> Result<Row> {
    // The numbers up to this one, each on its own line, are 64 MB.
    let last = bench.choose(8_138_888, 200_000);
    let program = Program { words: vec!["seq".into(), last.to_string()], megabytes: megabytes(seq_bytes(last)) };
    Ok(Row {
        name: NAME,
        title: format!("terminal output, no client attached, {:.0} MB of `seq`", program.megabytes),
        how: "As above. With lines this short the kernel's terminal is the limit: dtach, which throws all output away, \
              shows how fast it can be at all. Hence no goal.",
        unit: Unit::MegabytesPerSecond,
        measured: measure_all(bench, &program)?,
        goals: Vec::new(),
    })
}

fn measure_all(bench: &Bench, program: &Program) -> Result<Vec<Measured>> {
    let entries = vec![
        Entry::new(Contender::Ostler, "ostler run -d -t -- COMMAND", || {
            let (ostler, mut timed) = (Ostler::in_new_home(bench)?, Timed::new(bench, program)?);
            Ok(move |_| {
                let mut start = ostler.command(["run", "-d", "-t", "--"]);
                let rate = timed.rate(start.args(timed.words()))?;
                bench.wait_until_quiet()?;
                ostler.empty_home()?;
                Ok(rate)
            })
        }),
        Entry::new(Contender::Dtach, "dtach -n SOCKET COMMAND", || {
            let (dtach, mut timed) = (Dtach::new(bench)?, Timed::new(bench, program)?);
            Ok(move |_| timed.rate(dtach.command("-n", &dtach.socket()).args(timed.words())))
        }),
        Entry::new(Contender::Tmux, "tmux new-session -d COMMAND", || {
            let (tmux, mut timed) = (Tmux::start(bench)?, Timed::new(bench, program)?);
            Ok(move |_| timed.rate(tmux.command().args(["new-session", "-d", &timed.words().join(" ")])))
        }),
        Entry::new(Contender::Shpool, "shpool attach --background --cmd COMMAND NAME", || {
            let (shpool, mut timed) = (Shpool::start(bench)?, Timed::new(bench, program)?);
            Ok(move |round| timed.rate(&mut shpool.launch_command(&format!("s{round}"), &timed.words().join(" "))))
        }),
    ];
    bench.take_turns(entries, bench.choose(7, 2))
}

/// The program that runs under the tool, and how many megabytes it prints.
struct Program {
    words: Vec<String>,
    megabytes: f64,
}

/// The program, with a parent inside the session that measures it.
struct Timed<'a> {
    bench: &'a Bench,
    program: &'a Program,
    report: Mailbox,
}

impl<'a> Timed<'a> {
    fn new(bench: &'a Bench, program: &'a Program) -> Result<Self> {
        Ok(Self { bench, program, report: Mailbox::create(bench.scratch.file("report"))? })
    }

    fn words(&self) -> Vec<String> {
        let (agent, report) = (self.bench.agent.display().to_string(), self.report.path().display().to_string());
        let measuring = [agent, agent::COMMAND.into(), "timed".into(), report];
        measuring.into_iter().chain(self.program.words.iter().cloned()).collect()
    }

    /// How many megabytes per second the program could write.
    fn rate(&mut self, start: &mut Command) -> Result<f64> {
        run(start)?;
        let report = self.report.receive(LIMIT)?;
        let (from, to) = report.split_once(' ').with_context(|| format!("a strange report: {report}"))?;
        let ms = Moment::from_word(to)?.ms_since(Moment::from_word(from)?);
        if ms <= 0.0 {
            bail!("the program ended before it started");
        }
        Ok(self.program.megabytes / (ms / 1e3))
    }
}

#[expect(clippy::cast_precision_loss, reason = "tens of megabytes")]
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

/// How many bytes `seq LAST` prints.
fn seq_bytes(last: usize) -> usize {
    let with_digits = |digits: u32| {
        let (from, to) = (10_usize.pow(digits - 1), 10_usize.pow(digits) - 1);
        (last.min(to) + 1).saturating_sub(from) * (digits as usize + 1)
    };
    (1..=9).map(with_digits).sum()
}

#[cfg(test)]
mod tests {
    use super::seq_bytes;

    #[test]
    fn the_bytes_of_seq_are_counted_with_their_line_ends() {
        assert_eq!(seq_bytes(9), 18);
        assert_eq!(seq_bytes(10), 21);
        assert_eq!(seq_bytes(100), 18 + 270 + 4);
        assert_eq!(seq_bytes(8_138_888), 64_000_000);
    }
}
