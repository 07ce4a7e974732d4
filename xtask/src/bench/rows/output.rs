//! How much a tool holds up a program that prints to its terminal while nobody looks.

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
use crate::bench::measure::{Contender, Entry};
use crate::bench::row::{Goal, Row, Unit};

pub const NAME: &str = "output";

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    // Numbers up to this one, each on its line, are 64 MB.
    let last = bench.choose(8_138_888, 200_000);
    let entries = vec![
        Entry::new(Contender::Ostler, "ostler run -d -t -- seq N", || {
            let (ostler, mut seq) = (Ostler::in_new_home(bench)?, TimedSeq::new(bench, last)?);
            Ok(move |_| {
                let mut start = ostler.command(["run", "-d", "-t", "--"]);
                let rate = seq.rate(start.args(&seq.words()))?;
                bench.wait_until_quiet()?;
                ostler.empty_home()?;
                Ok(rate)
            })
        }),
        Entry::new(Contender::Dtach, "dtach -n SOCKET seq N", || {
            let (dtach, mut seq) = (Dtach::new(bench)?, TimedSeq::new(bench, last)?);
            Ok(move |_| seq.rate(dtach.command("-n", &dtach.socket()).args(seq.words())))
        }),
        Entry::new(Contender::Tmux, "tmux new-session -d 'seq N'", || {
            let (tmux, mut seq) = (Tmux::start(bench)?, TimedSeq::new(bench, last)?);
            Ok(move |_| seq.rate(tmux.command().args(["new-session", "-d", &seq.words().join(" ")])))
        }),
        Entry::new(Contender::Shpool, "shpool attach --background --cmd 'seq N' NAME", || {
            let (shpool, mut seq) = (Shpool::start(bench)?, TimedSeq::new(bench, last)?);
            Ok(move |round| seq.rate(&mut shpool.launch_command(&format!("s{round}"), &seq.words().join(" "))))
        }),
    ];
    Ok(vec![Row {
        name: NAME,
        title: format!("terminal output, nobody attached, {:.0} MB", seq_bytes(last) / 1e6),
        how: "`seq` prints numbers to its terminal; timed from inside the session, from the start of `seq` to its end.",
        unit: Unit::MegabytesPerSecond,
        measured: bench.take_turns(entries, bench.choose(7, 2))?,
        goals: vec![Goal::AtLeastTimes(1.5, Contender::Tmux)],
    }])
}

/// `seq`, and a parent inside the session that measures it.
struct TimedSeq<'a> {
    bench: &'a Bench,
    last: usize,
    report: Mailbox,
}

impl<'a> TimedSeq<'a> {
    fn new(bench: &'a Bench, last: usize) -> Result<Self> {
        Ok(Self { bench, last, report: Mailbox::create(bench.scratch.file("report"))? })
    }

    fn words(&self) -> [String; 6] {
        let (agent, report) = (self.bench.agent.display().to_string(), self.report.path().display().to_string());
        [agent, agent::COMMAND.into(), "timed".into(), report, "seq".into(), self.last.to_string()]
    }

    /// Megabytes per second that `seq` got rid of.
    fn rate(&mut self, start: &mut Command) -> Result<f64> {
        run(start)?;
        let report = self.report.receive(LIMIT)?;
        let (from, to) = report.split_once(' ').with_context(|| format!("a strange report: {report}"))?;
        let ms = Moment::from_word(to)?.ms_since(Moment::from_word(from)?);
        if ms <= 0.0 {
            bail!("seq ended before it started");
        }
        Ok(seq_bytes(self.last) / 1e6 / (ms / 1e3))
    }
}

/// How many bytes `seq LAST` prints.
#[expect(clippy::cast_precision_loss, reason = "tens of megabytes")]
fn seq_bytes(last: usize) -> f64 {
    let with_digits = |digits: u32| {
        let (from, to) = (10_usize.pow(digits - 1), 10_usize.pow(digits) - 1);
        (last.min(to) + 1).saturating_sub(from) * (digits as usize + 1)
    };
    (1..=9).map(with_digits).sum::<usize>() as f64
}

#[cfg(test)]
mod tests {
    use super::seq_bytes;

    #[test]
    fn the_bytes_of_seq_are_counted_with_their_line_ends() {
        assert_eq!(seq_bytes(9), 18.0);
        assert_eq!(seq_bytes(10), 21.0);
        assert_eq!(seq_bytes(100), 18.0 + 270.0 + 4.0);
        assert_eq!(seq_bytes(8_138_888), 64_000_000.0);
    }
}
