//! Sampling: who is measured, in which order, and what is said about the samples.
//!
//! All contenders of a row take turns, one sample each per round, so that whatever else the machine does hits all of
//! them alike. A contender that cannot be measured says why in its place in the table, and the others go on without it.

use anyhow::Result;

/// Every column that a row can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contender {
    Ostler,
    Dtach,
    Tmux,
    /// tmux when its server has to be started first.
    TmuxCold,
    Shpool,
    Pueue,
    /// `pueue follow`, the other way of waiting for a task.
    PueueFollow,
    /// `command | cat > file` in a shell.
    Cat,
    Ripgrep,
}

impl Contender {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ostler => "ostler",
            Self::Dtach => "dtach",
            Self::Tmux => "tmux",
            Self::TmuxCold => "tmux, cold",
            Self::Shpool => "shpool",
            Self::Pueue => "pueue",
            Self::PueueFollow => "pueue follow",
            Self::Cat => "sh and cat",
            Self::Ripgrep => "ripgrep",
        }
    }
}

/// The samples of one contender; never empty.
#[derive(Clone, Debug)]
pub struct Samples(Vec<f64>);

impl Samples {
    pub fn new(samples: Vec<f64>) -> Option<Self> {
        (!samples.is_empty()).then_some(Self(samples))
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The middle sample; of an even number, the mean of the two in the middle.
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
        if sorted.len().is_multiple_of(2) { f64::midpoint(at(middle - 1), at(middle)) } else { at(middle) }
    }
}

/// What one contender of a row came to.
#[derive(Clone, Debug)]
pub struct Measured {
    pub who: Contender,
    /// The command line that was measured, as one would type it.
    pub command: &'static str,
    pub samples: Result<Samples, String>,
}

type TakeSample<'a> = Box<dyn FnMut(usize) -> Result<f64> + 'a>;

/// A contender made ready: everything that is not to be measured has been done.
pub struct Entry<'a> {
    who: Contender,
    command: &'static str,
    take: Result<TakeSample<'a>, String>,
}

impl<'a> Entry<'a> {
    /// `prepare` does what is not measured and returns what is; both may fail.
    pub fn new<T>(who: Contender, command: &'static str, prepare: impl FnOnce() -> Result<T>) -> Self
    where
        T: FnMut(usize) -> Result<f64> + 'a,
    {
        let take = prepare().map(|take| Box::new(take) as TakeSample<'a>).map_err(|error| one_line(&error));
        Self { who, command, take }
    }
}

/// One sample of each contender per round. `rest` waits until the machine is as quiet as before the sample; that it
/// never becomes so is held against the contender whose turn it was.
pub fn take_turns(entries: Vec<Entry<'_>>, rounds: usize, mut rest: impl FnMut() -> Result<()>) -> Vec<Measured> {
    struct Turn<'a> {
        entry: Entry<'a>,
        samples: Vec<f64>,
    }
    let mut turns: Vec<Turn<'_>> = entries.into_iter().map(|entry| Turn { entry, samples: Vec::new() }).collect();
    for round in 0..rounds {
        for turn in &mut turns {
            if let Ok(take) = &mut turn.entry.take {
                match take(round).and_then(|sample| rest().map(|()| sample)) {
                    Ok(sample) => turn.samples.push(sample),
                    Err(error) => turn.entry.take = Err(one_line(&error)),
                }
            }
        }
    }
    let finish = |Turn { entry, samples }: Turn<'_>| {
        // Half a series is not a median of the whole: an error anywhere is the result.
        let samples =
            entry.take.and_then(|_| Samples::new(samples).ok_or_else(|| "no rounds were asked for".to_owned()));
        Measured { who: entry.who, command: entry.command, samples }
    };
    turns.into_iter().map(finish).collect()
}

fn one_line(error: &anyhow::Error) -> String {
    format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use std::cell::RefCell;

    use anyhow::bail;

    use super::*;

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        assert_eq!(Samples(vec![9.0, 1.0, 5.0]).median(), 5.0);
        assert_eq!(Samples(vec![9.0, 1.0, 5.0, 6.0]).median(), 5.5);
        assert_eq!(Samples(vec![3.0]).median(), 3.0);
    }

    #[test]
    fn contenders_take_turns_and_one_that_fails_is_left_out_with_its_reason() {
        let order = RefCell::new(String::new());
        let entries = vec![
            Entry::new(Contender::Ostler, "a", || {
                Ok(|_| {
                    order.borrow_mut().push('a');
                    Ok(1.0)
                })
            }),
            Entry::new(Contender::Tmux, "b", || {
                Ok(|round| {
                    order.borrow_mut().push('b');
                    if round == 1 { bail!("fell over") } else { Ok(2.0) }
                })
            }),
        ];
        let measured = take_turns(entries, 3, || Ok(()));
        assert_eq!(*order.borrow(), "ababa");
        assert_eq!(measured[0].samples.as_ref().unwrap().count(), 3);
        assert_eq!(measured[1].samples.as_ref().unwrap_err(), "fell over");
    }
}
