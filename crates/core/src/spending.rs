//! What a session has used, in tokens and dollars: per turn, run and session.
//!
//! Agents count differently. Tokens arrive per turn (the decoders make sure of that). Money, where an agent reports it
//! at all, is what the process has cost so far, and starts from zero in the next process. Whatever else a counter does,
//! nothing is counted twice and no sum goes down.

use crate::fact::{Tokens, TurnEnd};
use serde::{Deserialize, Serialize};

/// What one turn used, as far as its agent reports it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    pub run: u32,
    /// Counted from 1, over all runs.
    pub turn: u32,
    pub tokens: Option<Tokens>,
    pub cost_usd: Option<f64>,
}

/// So many of the newest turns are kept one by one; older ones are added up, so that a long session costs no more than
/// a short one. What becomes known about a turn later becomes known soon after its end.
const RECENT: usize = 32;

/// Everything that a session has used so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spending {
    /// The newest turns; all of them if `keeps_all`.
    turns: Vec<Spent>,
    keeps_all: bool,
    /// Older turns of earlier runs.
    earlier_runs: Total,
    /// Older turns of one run: the newest run that has any.
    one_run: (u32, Total),
    /// The cost of whole runs, for runs whose turns do not report it.
    runs_usd: Vec<RunCost>,
    /// The agent's own counter of money, for the present process.
    counter_usd: f64,
}

/// What several turns have used; `None` when nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Total {
    tokens: Option<Tokens>,
    cost_usd: Option<f64>,
}

impl Total {
    fn add(&mut self, tokens: Option<Tokens>, cost_usd: Option<f64>) {
        if let Some(more) = tokens {
            *self.tokens.get_or_insert_with(Tokens::default) += more;
        }
        if let Some(more) = cost_usd {
            *self.cost_usd.get_or_insert(0.0) += more;
        }
    }
}

/// The cost of a run whose turns do not report it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct RunCost {
    run: u32,
    /// What the agent's record said when the run, or its present conversation, began.
    began_at_usd: f64,
    /// The cost of earlier conversations of the run, which it does not use any more.
    left_usd: f64,
    cost_usd: Option<f64>,
}

impl Spending {
    /// Keeps every turn, for a reader that lists them all.
    #[must_use]
    pub fn keeping_all() -> Spending {
        Spending { keeps_all: true, ..Spending::default() }
    }

    /// A turn has ended.
    pub fn note(&mut self, run: u32, turn: u32, end: &TurnEnd) {
        let cost_usd = end.cost_usd.map(|counter| {
            // A counter that went down has begun again.
            let before = if counter < self.counter_usd { 0.0 } else { self.counter_usd };
            self.counter_usd = counter;
            counter - before
        });
        self.turns.push(Spent { run, turn, tokens: end.tokens, cost_usd });
        if !self.keeps_all && self.turns.len() >= 2 * RECENT {
            let old: Vec<Spent> = self.turns.drain(..RECENT).collect();
            old.into_iter().for_each(|spent| self.add_up(spent));
        }
    }

    fn add_up(&mut self, spent: Spent) {
        let (run, total) = &mut self.one_run;
        if *run != spent.run {
            let before = std::mem::take(total);
            self.earlier_runs.add(before.tokens, before.cost_usd);
            *run = spent.run;
        }
        self.one_run.1.add(spent.tokens, spent.cost_usd);
    }

    /// The tokens of a turn are known now. A number that the agent itself reported is kept.
    pub fn count(&mut self, turn: u32, tokens: Tokens) {
        if let Some(spent) = self.turns.iter_mut().find(|spent| spent.turn == turn) {
            spent.tokens.get_or_insert(tokens);
        }
    }

    /// Takes in the agent's own record of what the conversation has cost. The first one of a run is what the run began
    /// with. With `left` the run has left that conversation, and the record of the next one counts from zero. If the
    /// turns of the run report their cost, this is ignored.
    pub fn cost(&mut self, run: u32, usd: f64, left: bool) {
        let told = self.turns.iter().any(|spent| spent.run == run && spent.cost_usd.is_some())
            || self.one_run.0 == run && self.one_run.1.cost_usd.is_some();
        match self.runs_usd.iter_mut().find(|of| of.run == run) {
            // A record that went down has begun again.
            Some(of) if !told => {
                let since = if usd < of.began_at_usd { usd } else { usd - of.began_at_usd };
                of.cost_usd = Some(of.left_usd + since);
                if left {
                    (of.left_usd, of.began_at_usd) = (of.left_usd + since, 0.0);
                }
            }
            Some(_) => {}
            None => {
                if self.runs_usd.len() >= RECENT {
                    let oldest = self.runs_usd.remove(0);
                    self.earlier_runs.add(None, oldest.cost_usd);
                }
                self.runs_usd.push(RunCost { run, began_at_usd: usd, left_usd: 0.0, cost_usd: None });
            }
        }
    }

    /// What the agent's record said as the run, or its present conversation, began.
    #[must_use]
    pub fn began_at(&self, run: u32) -> Option<f64> {
        self.runs_usd.iter().find(|of| of.run == run).map(|of| of.began_at_usd)
    }

    /// The next process counts from zero.
    pub fn begin_run(&mut self) {
        self.counter_usd = 0.0;
    }

    /// The newest turns; all of them if it keeps all.
    #[must_use]
    pub fn turns(&self) -> &[Spent] {
        &self.turns
    }

    /// Of the newest run; `None` when nothing is known.
    #[must_use]
    pub fn of_run(&self, run: u32) -> (Option<Tokens>, Option<f64>) {
        let older = if self.one_run.0 == run { self.one_run.1 } else { Total::default() };
        self.total(older, |of| of == run)
    }

    /// Of the whole session.
    #[must_use]
    pub fn of_session(&self) -> (Option<Tokens>, Option<f64>) {
        let mut older = self.earlier_runs;
        older.add(self.one_run.1.tokens, self.one_run.1.cost_usd);
        self.total(older, |_| true)
    }

    /// The tokens of the runs before this one.
    #[must_use]
    pub fn tokens_before(&self, run: u32) -> Tokens {
        let mut older = self.earlier_runs;
        if self.one_run.0 < run {
            older.add(self.one_run.1.tokens, None);
        }
        self.total(older, |of| of < run).0.unwrap_or_default()
    }

    fn total(&self, mut total: Total, counts: impl Fn(u32) -> bool) -> (Option<Tokens>, Option<f64>) {
        for spent in self.turns.iter().filter(|spent| counts(spent.run)) {
            total.add(spent.tokens, spent.cost_usd);
        }
        for of in self.runs_usd.iter().filter(|of| counts(of.run)) {
            total.add(None, of.cost_usd);
        }
        (total.tokens, total.cost_usd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Verdict;

    fn end(tokens: u64, cost_usd: Option<f64>) -> TurnEnd {
        TurnEnd {
            verdict: Verdict::Succeeded,
            text: None,
            reason: None,
            tokens: Some(Tokens { input: tokens, output: 1 }),
            cost_usd,
            messages: Vec::new(),
        }
    }

    #[test]
    fn a_counter_that_grows_over_a_process_is_cut_into_turns_and_added_over_runs() {
        let mut spending = Spending::default();
        spending.note(1, 1, &end(10, Some(0.5)));
        spending.note(1, 2, &end(20, Some(0.75)));
        spending.begin_run();
        spending.note(2, 3, &end(40, Some(2.0)));
        let costs: Vec<_> = spending.turns().iter().map(|spent| spent.cost_usd).collect();
        assert_eq!(costs, [Some(0.5), Some(0.25), Some(2.0)]);
        assert_eq!(spending.of_run(1), (Some(Tokens { input: 30, output: 2 }), Some(0.75)));
        assert_eq!(spending.of_run(2), (Some(Tokens { input: 40, output: 1 }), Some(2.0)));
        assert_eq!(spending.of_session(), (Some(Tokens { input: 70, output: 3 }), Some(2.75)));
        assert_eq!(spending.of_run(3), (None, None));
    }

    #[test]
    fn a_counter_that_is_missing_or_begins_again_takes_nothing_away() {
        let mut spending = Spending::default();
        spending.note(1, 1, &end(1, Some(3.0)));
        spending.note(1, 2, &end(1, None));
        spending.note(1, 3, &end(1, Some(1.0)));
        assert_eq!(spending.of_session().1, Some(4.0));
    }

    #[test]
    fn a_run_whose_turns_tell_no_cost_has_that_of_its_process() {
        let mut spending = Spending::default();
        spending.note(1, 1, &end(1, Some(2.0)));
        spending.cost(1, 0.0, false);
        spending.cost(1, 9.0, false);
        spending.cost(2, 1.0, false);
        spending.note(2, 2, &end(1, None));
        assert_eq!(spending.of_run(2).1, None, "not known while it runs");
        spending.cost(2, 1.5, false);
        spending.cost(2, 1.5, false);
        assert_eq!((spending.of_run(1).1, spending.of_run(2).1), (Some(2.0), Some(0.5)));
        assert_eq!(spending.of_session().1, Some(2.5));
    }

    #[test]
    fn a_run_that_goes_on_with_another_conversation_has_the_cost_of_both() {
        let mut spending = Spending::default();
        spending.cost(1, 2.0, false);
        spending.cost(1, 5.0, true);
        assert_eq!(spending.of_run(1).1, Some(3.0));
        spending.cost(1, 4.0, true);
        spending.cost(1, 0.5, false);
        assert_eq!(spending.of_run(1).1, Some(7.5));
    }

    #[test]
    fn what_is_counted_later_never_replaces_what_was_told() {
        let mut spending = Spending::default();
        spending.note(1, 1, &end(10, None));
        spending.note(1, 2, &TurnEnd { tokens: None, ..end(0, None) });
        for turn in [1, 2, 3] {
            spending.count(turn, Tokens { input: 5, output: 5 });
        }
        spending.count(2, Tokens { input: 6, output: 6 });
        assert_eq!(spending.of_session().0, Some(Tokens { input: 15, output: 6 }));
    }

    #[test]
    fn older_turns_are_added_up_and_count_as_if_they_were_listed() {
        let (mut short, mut all) = (Spending::default(), Spending::keeping_all());
        let mut turn = 0;
        for run in 1..=3 {
            for spending in [&mut short, &mut all] {
                spending.begin_run();
            }
            for count in 1..=100 {
                turn += 1;
                for spending in [&mut short, &mut all] {
                    spending.note(run, turn, &end(u64::from(turn), Some(f64::from(count))));
                }
            }
            assert!(short.turns().len() < 2 * RECENT, "{}", short.turns().len());
            assert_eq!(all.turns().len(), turn as usize);
            assert_eq!(short.of_run(run), all.of_run(run));
            assert_eq!(short.of_session(), all.of_session());
            assert_eq!(short.tokens_before(run), all.tokens_before(run));
        }
        assert_eq!(all.of_session().1, Some(300.0));
        assert_eq!(all.tokens_before(2), Tokens { input: 5050, output: 100 });
    }

    #[test]
    fn the_costs_of_many_runs_are_added_up() {
        let mut spending = Spending::default();
        for run in 1..=100 {
            spending.cost(run, 1.0, false);
            spending.cost(run, 3.0, false);
        }
        assert!(spending.runs_usd.len() <= RECENT);
        assert_eq!(spending.of_session().1, Some(200.0));
        assert_eq!(spending.of_run(100).1, Some(2.0));
    }
}
