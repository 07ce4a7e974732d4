//! A row of the table: what was measured, what came out, and what was to be reached.

use super::measure::{Contender, Measured, Samples};

pub struct Row {
    /// The name that `--only` takes.
    pub name: &'static str,
    pub title: String,
    /// How it is measured, in one line.
    pub how: &'static str,
    pub unit: Unit,
    pub measured: Vec<Measured>,
    pub goals: Vec<Goal>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Milliseconds,
    /// KiB of proportional set size, per session.
    Kibibytes,
    MegabytesPerSecond,
    /// Of one processor.
    Percent,
    /// How often something happened.
    Times,
}

/// What our own figure has to be.
#[derive(Clone, Copy)]
pub enum Goal {
    AtMost(f64),
    AtLeast(f64),
    AtMostTimes(f64, Contender),
    LessThan(Contender),
    AtLeastTimes(f64, Contender),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Reached,
    Missed,
    /// One of the two figures is missing.
    Unknown,
}

impl Unit {
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Milliseconds if value >= 1000.0 => format!("{:.2} s", value / 1000.0),
            Self::Milliseconds if value >= 100.0 => format!("{value:.0} ms"),
            Self::Milliseconds if value >= 10.0 => format!("{value:.1} ms"),
            Self::Milliseconds if value >= 0.2 => format!("{value:.2} ms"),
            Self::Milliseconds => format!("{value:.3} ms"),
            Self::Kibibytes if value >= 10_240.0 => format!("{:.1} MiB", value / 1024.0),
            Self::Kibibytes => format!("{value:.0} KiB"),
            Self::MegabytesPerSecond if value >= 10.0 => format!("{value:.0} MB/s"),
            Self::MegabytesPerSecond => format!("{value:.1} MB/s"),
            Self::Percent => format!("{value:.2} %"),
            Self::Times => format!("{value:.0}"),
        }
    }

    pub fn less_is_better(self) -> bool {
        match self {
            Self::Milliseconds | Self::Kibibytes | Self::Percent | Self::Times => true,
            Self::MegabytesPerSecond => false,
        }
    }
}

impl Row {
    pub fn median(&self, who: Contender) -> Option<f64> {
        let measured = self.measured.iter().find(|measured| measured.who == who)?;
        measured.samples.as_ref().ok().map(Samples::median)
    }

    /// How many times as much time or memory this figure stands for, compared with ours: more is always worse.
    pub fn ratio_to_ours(&self, who: Contender) -> Option<f64> {
        let (ours, theirs) = (self.median(Contender::Ostler)?, self.median(who)?);
        Some(if self.unit.less_is_better() { theirs / ours } else { ours / theirs })
    }

    pub fn verdict(&self, goal: Goal) -> Verdict {
        let reached = |other: Contender, holds: fn(f64, f64, f64) -> bool, factor: f64| {
            Some(holds(self.median(Contender::Ostler)?, factor, self.median(other)?))
        };
        let reached = match goal {
            Goal::AtMost(limit) => self.median(Contender::Ostler).map(|ours| ours <= limit),
            Goal::AtLeast(limit) => self.median(Contender::Ostler).map(|ours| ours >= limit),
            Goal::AtMostTimes(factor, other) => reached(other, |ours, factor, theirs| ours <= factor * theirs, factor),
            Goal::LessThan(other) => reached(other, |ours, _, theirs| ours < theirs, 1.0),
            Goal::AtLeastTimes(factor, other) => reached(other, |ours, factor, theirs| ours >= factor * theirs, factor),
        };
        match reached {
            Some(true) => Verdict::Reached,
            Some(false) => Verdict::Missed,
            None => Verdict::Unknown,
        }
    }

    pub fn goal_in_words(&self, goal: Goal) -> String {
        match goal {
            Goal::AtMost(limit) => format!("≤ {}", self.unit.show(limit)),
            Goal::AtLeast(limit) => format!("≥ {}", self.unit.show(limit)),
            Goal::AtMostTimes(factor, other) => format!("≤ {factor} × {}", other.name()),
            Goal::LessThan(other) => format!("below {}", other.name()),
            Goal::AtLeastTimes(factor, other) => format!("≥ {factor} × {}", other.name()),
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A row with these medians.
    pub fn row(unit: Unit, figures: &[(Contender, f64)]) -> Row {
        let measured = |(who, figure): &(Contender, f64)| Measured {
            who: *who,
            command: "",
            samples: Samples::new(vec![*figure]).ok_or_else(String::new),
        };
        let measured = figures.iter().map(measured).collect();
        Row { name: "row", title: "a row".to_owned(), how: "", unit, measured, goals: Vec::new() }
    }

    #[test]
    fn a_goal_is_reached_missed_or_not_known() {
        let row = row(Unit::Milliseconds, &[(Contender::Ostler, 3.0), (Contender::Dtach, 2.0)]);
        assert_eq!(row.verdict(Goal::AtMost(3.0)), Verdict::Reached);
        assert_eq!(row.verdict(Goal::AtLeast(3.1)), Verdict::Missed);
        assert_eq!(row.verdict(Goal::AtMostTimes(1.5, Contender::Dtach)), Verdict::Reached);
        assert_eq!(row.verdict(Goal::LessThan(Contender::Dtach)), Verdict::Missed);
        assert_eq!(row.verdict(Goal::LessThan(Contender::Tmux)), Verdict::Unknown);
    }

    #[test]
    fn more_is_worse_in_a_ratio_whatever_the_unit() {
        let time = row(Unit::Milliseconds, &[(Contender::Ostler, 2.0), (Contender::Tmux, 6.0)]);
        let speed = row(Unit::MegabytesPerSecond, &[(Contender::Ostler, 6.0), (Contender::Tmux, 2.0)]);
        assert_eq!(time.ratio_to_ours(Contender::Tmux), Some(3.0));
        assert_eq!(speed.ratio_to_ours(Contender::Tmux), Some(3.0));
    }
}
