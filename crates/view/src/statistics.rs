//! What a session has used and when, according to its journal: turns, the time that they took, tokens, money. For sums
//! over many sessions, so nothing but the journal is read, and of it only the entries that count.

use jiff::Timestamp;
use memchr::memmem;
use ostler_core::event::{Entry, Event};
use ostler_core::fact::Tokens;
use ostler_core::record::{Channel, Session};
use ostler_core::spending::Spending;
use ostler_store::StoreError;
use ostler_store::folder::Folder;
use ostler_store::journal;
use std::ops::AddAssign;

/// What was used by a certain moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    pub turns: u64,
    /// How long turns took, without the time in which a person was asked. For a command: how long it ran.
    pub ms: u64,
    pub tokens: Tokens,
    pub cost_usd: f64,
}

impl AddAssign for Used {
    fn add_assign(&mut self, more: Used) {
        self.turns += more.turns;
        self.ms = self.ms.saturating_add(more.ms);
        self.tokens += more.tokens;
        self.cost_usd += more.cost_usd;
    }
}

/// What ended at this time, with what it used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    pub at: Timestamp,
    pub used: Used,
}

/// The entries that count. They are looked for as bytes: most of a journal is about other things, and JSON takes time.
const COUNTED: [&str; 13] = [
    "\"started\"",
    "\"queued\"",
    "\"begun\"",
    "\"not_begun\"",
    "\"exited\"",
    "\"feeding\"",
    "\"turn_started\"",
    "\"turn_ended\"",
    "\"asked\"",
    "\"answered\"",
    "\"ask_closed\"",
    "\"counted\"",
    "\"cost\"",
];

/// What a session has used since then, and its `session.json`. `None`: its journal was not written since.
pub fn read(folder: &Folder, since: Option<Timestamp>) -> Result<Option<(Session, Vec<Share>)>, StoreError> {
    if let Some(since) = since
        && !journal::may_have_news(folder.dir(), since)?
    {
        return Ok(None);
    }
    let bytes = folder.dir().read("journal.jsonl").map_err(StoreError::io("journal.jsonl"))?.unwrap_or_default();
    let mut shares = shares(&bytes);
    shares.retain(|share| since.is_none_or(|since| share.at >= since));
    Ok(Some((folder.session()?, shares)))
}

/// What a journal says was used.
fn shares(journal: &[u8]) -> Vec<Share> {
    let whats = COUNTED.map(memmem::Finder::new);
    let counts = |line: &&[u8]| whats.iter().any(|what| what.find(line).is_some());
    let mut sum = Sum::default();
    for line in journal.split(|&byte| byte == b'\n').filter(counts) {
        if let Ok(entry) = serde_json::from_slice(line) {
            sum.add(&entry);
        }
    }
    sum.shares
}

#[derive(Default)]
struct Sum {
    shares: Vec<Share>,
    spending: Spending,
    turns: u32,
    tokens: Tokens,
    cost_usd: f64,
    /// When the running turn began, and when the open question was asked, in milliseconds since boot.
    turn_ms: Option<u64>,
    asked_ms: Option<u64>,
    /// How long a person was asked in this turn.
    waited_ms: u64,
    /// A command has run since then.
    command_ms: Option<u64>,
}

impl Sum {
    fn add(&mut self, entry: &Entry) {
        let mut used = Used::default();
        match &entry.event {
            // A program that waits uses nothing before it is started.
            Event::Begun => self.command_ms = self.command_ms.map(|_| entry.ms),
            Event::NotBegun { .. } => self.command_ms = None,
            Event::Started { plan, .. } | Event::Queued { plan } => {
                self.spending.begin_run();
                (self.turn_ms, self.asked_ms, self.waited_ms) = (None, None, 0);
                let is_command = plan.channel == Channel::Command;
                self.command_ms = is_command.then_some(entry.ms);
            }
            Event::Exited { .. } => {
                used.ms = self.command_ms.take().map_or(0, |began| entry.ms.saturating_sub(began));
            }
            Event::Feeding { .. } | Event::TurnStarted => {
                self.turn_ms.get_or_insert(entry.ms);
            }
            Event::Asked { .. } => {
                self.asked_ms.get_or_insert(entry.ms);
            }
            Event::Answered { .. } | Event::AskClosed { .. } => {
                self.waited_ms += self.asked_ms.take().map_or(0, |asked| entry.ms.saturating_sub(asked));
            }
            Event::TurnEnded { end } => {
                self.turns += 1;
                self.spending.note(entry.run, self.turns, end);
                let waited = self.waited_ms + self.asked_ms.take().map_or(0, |asked| entry.ms.saturating_sub(asked));
                let took = self.turn_ms.take().map_or(0, |began| entry.ms.saturating_sub(began));
                (used.turns, used.ms) = (1, took.saturating_sub(waited));
                self.waited_ms = 0;
            }
            Event::Counted { turn, tokens } => self.spending.count(*turn, *tokens),
            Event::Cost { usd, left } => self.spending.cost(entry.run, *usd, *left),
            _ => return,
        }
        let (tokens, cost_usd) = self.spending.of_session();
        let (tokens, cost_usd) = (tokens.unwrap_or_default(), cost_usd.unwrap_or(0.0));
        used.tokens = Tokens {
            input: tokens.input.saturating_sub(self.tokens.input),
            output: tokens.output.saturating_sub(self.tokens.output),
        };
        used.cost_usd = (cost_usd - self.cost_usd).max(0.0);
        (self.tokens, self.cost_usd) = (tokens, cost_usd);
        if used != Used::default() {
            self.shares.push(Share { at: entry.at, used });
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use ostler_core::fact::{Ask, TurnEnd, Verdict};
    use ostler_core::outcome::Exit;
    use ostler_core::record::{Ending, Lines, Plan};

    fn entry(ms: u64, event: Event) -> Entry {
        let at = Timestamp::from_millisecond(i64::try_from(ms).unwrap()).unwrap();
        Entry { at, ms, run: 1, out: None, request: None, inbox: None, notify: None, event }
    }

    fn plan(channel: Channel) -> Plan {
        let rules = ostler_core::rules::Rules::default();
        Plan { channel, keep: true, ending: Ending::Hangup, linger_ms: 0, rules }
    }

    fn started(channel: Channel) -> Event {
        Event::Started { plan: plan(channel), continues: false }
    }

    fn exited() -> Event {
        Event::Exited { exit: Exit::UNKNOWN, progress: false }
    }

    fn journal(entries: &[Entry]) -> Vec<u8> {
        let lines: Vec<String> = entries.iter().map(|entry| serde_json::to_string(entry).unwrap()).collect();
        lines.join("\n").into_bytes()
    }

    fn ended(tokens: u64, cost_usd: Option<f64>) -> Event {
        let tokens = Some(Tokens { input: tokens, output: 1 });
        let (text, reason, messages) = (None, None, Vec::new());
        Event::TurnEnded { end: TurnEnd { verdict: Verdict::Succeeded, text, reason, tokens, cost_usd, messages } }
    }

    #[test]
    fn each_turn_counts_with_its_end_and_without_the_time_of_questions() {
        let ask = Ask {
            request: "r".to_owned(),
            tool: None,
            input: serde_json::Value::Null,
            text: String::new(),
            suggestions: serde_json::Value::Null,
            details: serde_json::Value::Null,
        };
        let shares = shares(&journal(&[
            entry(1000, started(Channel::Lines(Lines::Turns))),
            entry(2000, Event::Feeding { n: 1, written: None, kept: None }),
            entry(2500, Event::TurnStarted),
            entry(3000, Event::Asked { ask }),
            entry(9000, Event::AskClosed { request: "r".to_owned() }),
            entry(10_000, ended(10, Some(0.5))),
            entry(20_000, Event::Feeding { n: 2, written: None, kept: None }),
            entry(21_000, ended(20, Some(0.75))),
            entry(30_000, exited()),
        ]));
        let found: Vec<(i64, Used)> = shares.into_iter().map(|share| (share.at.as_second(), share.used)).collect();
        let used = |ms, input, cost_usd| Used { turns: 1, ms, tokens: Tokens { input, output: 1 }, cost_usd };
        assert_eq!(found, [(10, used(2000, 10, 0.5)), (21, used(1000, 20, 0.25))]);
    }

    #[test]
    fn a_command_counts_with_the_time_that_it_ran() {
        let shares = shares(&journal(&[entry(1000, started(Channel::Command)), entry(61_000, exited())]));
        assert_eq!(shares[0].used, Used { ms: 60_000, ..Used::default() });
    }

    #[test]
    fn the_time_in_a_queue_does_not_count_and_the_time_after_it_does() {
        let queued = || Event::Queued { plan: plan(Channel::Command) };
        let begun = [entry(1000, queued()), entry(50_000, Event::Begun), entry(61_000, exited())];
        let shares_of_begun = shares(&journal(&begun));
        assert_eq!(shares_of_begun[0].used, Used { ms: 11_000, ..Used::default() });
        let withdrawn = Event::NotBegun { reason: "withdrawn".to_owned(), stopped: true };
        assert!(
            shares(&journal(&[entry(1000, queued()), entry(50_000, withdrawn), entry(51_000, exited())])).is_empty()
        );
    }
}
