//! Moments in the life of a session at which a person may want to be notified, and which of them config.toml asks for.
//!
//! Whether an event is such a moment is decided when the event is written to the journal, and the entry itself carries
//! the result. So a keeper that is killed in between cannot lose a notification: an entry that is in the journal
//! carries it, and an entry that is not there is written again by the next keeper.

use crate::asking::Shown;
use crate::event::Event;
use crate::fact::{Ask, Verdict};
use crate::life::{BUDGET, BY, State};
use crate::outcome::{Kind, Outcome, Saved};
use crate::record::{Mode, Plan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A moment that a person can be notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// It waits for a permission or an answer.
    Asking,
    /// A turn is over, and it waits for a message.
    Turn,
    /// A turn or the whole run failed.
    Failed,
    /// The process is gone, and how it ended is unknown.
    Lost,
    /// It has ended, and its last turn is not proven to be saved.
    Unproven,
    /// It waits for a usage limit to be reset.
    Limit,
    /// It has used up its budget, or a turn has passed twice the budget.
    Budget,
    /// It has ended.
    Ended,
    /// From a newer version.
    #[serde(other)]
    Unknown,
}

impl Moment {
    /// All moments that config.toml can ask for.
    pub const ALL: [Moment; 8] = [
        Moment::Asking,
        Moment::Turn,
        Moment::Failed,
        Moment::Lost,
        Moment::Unproven,
        Moment::Limit,
        Moment::Budget,
        Moment::Ended,
    ];

    /// As it is written in config.toml.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Moment::Asking => "asking",
            Moment::Turn => "turn",
            Moment::Failed => "failed",
            Moment::Lost => "lost",
            Moment::Unproven => "unproven",
            Moment::Limit => "limit",
            Moment::Budget => "budget",
            Moment::Ended => "ended",
            Moment::Unknown => "unknown",
        }
    }

    /// What has happened, in words that follow the name of a session.
    #[must_use]
    pub fn says(self) -> &'static str {
        match self {
            Moment::Asking => "asks",
            Moment::Turn => "has finished its turn",
            Moment::Failed => "has failed",
            Moment::Lost => "is lost",
            Moment::Unproven => "has ended, and its last turn is not proven to be saved",
            Moment::Limit => "waits for a usage limit",
            Moment::Budget => "has used up its budget",
            Moment::Ended => "has ended",
            Moment::Unknown => "has news",
        }
    }

    /// The moment that this word means.
    #[must_use]
    pub fn parse(word: &str) -> Option<Moment> {
        Moment::ALL.into_iter().find(|moment| moment.word() == word)
    }

    /// Whether `min_duration_ms` applies: it ends something that takes time.
    fn has_length(self) -> bool {
        match self {
            Moment::Turn | Moment::Failed | Moment::Unproven | Moment::Ended => true,
            Moment::Asking | Moment::Lost | Moment::Limit | Moment::Budget | Moment::Unknown => false,
        }
    }
}

/// What config.toml asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub moments: Vec<Moment>,
    /// Not while a person is attached.
    pub only_detached: bool,
    /// Nothing that took less time than this.
    pub min_duration_ms: u64,
    /// Shown in attached terminals.
    pub in_terminals: bool,
    /// Sent, by a separate process.
    pub by_sender: bool,
}

impl Wanted {
    /// The moment to notify of, if any. `state`: before the event; `attached`: a person is attached to the session.
    #[must_use]
    pub fn choose(&self, state: &State, event: &Event, now_ms: u64, attached: bool) -> Option<Moment> {
        if self.only_detached && attached {
            return None;
        }
        self.choose_of(of(state, event), || length_ms(state, event, now_ms))
    }

    /// The same for the end of a session that a face shows to a person.
    #[must_use]
    pub fn choose_end(&self, outcome: &Outcome) -> Option<Moment> {
        self.choose_of(of_end(outcome, false), || outcome.duration_ms).filter(|_| !self.only_detached)
    }

    fn choose_of(&self, moments: &[Moment], length_ms: impl Fn() -> Option<u64>) -> Option<Moment> {
        let long_enough =
            |moment: &Moment| !moment.has_length() || length_ms().is_none_or(|ms| ms >= self.min_duration_ms);
        moments.iter().copied().find(|moment| self.moments.contains(moment)).filter(long_enough)
    }
}

/// Which moments an event is, the most specific one first: a person who asked for ends only is also notified of a
/// failed end.
#[must_use]
pub fn of(state: &State, event: &Event) -> &'static [Moment] {
    match event {
        Event::Asked { ask } if !state.asks().iter().any(|open| open.request == ask.request) => &[Moment::Asking],
        Event::TurnEnded { end } if state.waits_after(end) => &[Moment::Limit],
        Event::StopRequested { by, .. } | Event::InterruptRequested { by, .. } if by == BY && is_budget(event) => {
            &[Moment::Budget]
        }
        // A session that does not stay ends with its turn: its end is reported, and not the end of the turn.
        Event::TurnEnded { end } if stays(&state.plan) => match end.verdict {
            Verdict::Succeeded if state.mail.queue.is_empty() => &[Moment::Turn],
            Verdict::Failed if state.interrupt.sent_ms().is_none() => &[Moment::Failed, Moment::Turn],
            // The session continues with the next message, or a person interrupted the turn.
            Verdict::Succeeded | Verdict::Failed | Verdict::Interrupted => &[],
        },
        Event::Ended { outcome } => of_end(outcome, state.stop.is_some()),
        _ => &[],
    }
}

/// Whether the event reports that the session's budget is reached.
fn is_budget(event: &Event) -> bool {
    let words = match event {
        Event::StopRequested { why, .. } => Some(why),
        Event::InterruptRequested { why, .. } => why.as_ref(),
        _ => None,
    };
    words.is_some_and(|words| words.contains(BUDGET))
}

/// The same for the end of a run. `requested`: a stop was requested, and a failed turn has been reported before.
#[must_use]
pub fn of_end(outcome: &Outcome, requested: bool) -> &'static [Moment] {
    match (outcome.kind, outcome.saved) {
        (Kind::Lost, _) => &[Moment::Lost, Moment::Ended],
        (Kind::Failed, _) if !requested => &[Moment::Failed, Moment::Ended],
        (_, Saved::Unverified) => &[Moment::Unproven, Moment::Ended],
        (Kind::Succeeded | Kind::Failed | Kind::Interrupted | Kind::Stopped, _) => &[Moment::Ended],
    }
}

/// Whether the session waits for a further message when a turn is over.
fn stays(plan: &Plan) -> bool {
    plan.keep || plan.mode() == Mode::Terminal
}

/// How long the turn or the run that the event ends has taken, where that is known.
fn length_ms(state: &State, event: &Event, now_ms: u64) -> Option<u64> {
    match event {
        Event::TurnEnded { .. } => Some(now_ms.saturating_sub(state.turn_began_ms()?)),
        Event::Ended { outcome } => outcome.duration_ms,
        _ => None,
    }
}

/// What the agent said, or what is known about the event. The text is as the agent wrote it: not safe for a terminal,
/// and perhaps long.
#[must_use]
pub fn text_of(event: &Event) -> String {
    let first = |texts: &[Option<&String>]| texts.iter().copied().flatten().find(|text| !text.is_empty()).cloned();
    match event {
        Event::Asked { ask } => text_of_ask(ask),
        Event::TurnEnded { end } => match end.verdict {
            Verdict::Succeeded => first(&[end.text.as_ref()]),
            Verdict::Failed | Verdict::Interrupted => first(&[end.reason.as_ref(), end.text.as_ref()]),
        }
        .unwrap_or_default(),
        Event::StopRequested { why, .. } => why.clone(),
        Event::InterruptRequested { why, .. } => why.clone().unwrap_or_default(),
        Event::Ended { outcome } => match outcome.kind {
            Kind::Succeeded => first(&[outcome.text.as_ref(), Some(&outcome.cause)]),
            Kind::Failed | Kind::Interrupted | Kind::Stopped | Kind::Lost => first(&[Some(&outcome.cause)]),
        }
        .unwrap_or_default(),
        _ => String::new(),
    }
}

/// As every face shows it: the tool and its real input, never only a description. A question in words has neither.
fn text_of_ask(ask: &Ask) -> String {
    let questions: Vec<&str> = ask.questions().iter().map(|question| question.text).collect();
    if !questions.is_empty() {
        return questions.join("\n");
    }
    if ask.tool.is_none() && ask.input.is_null() {
        return ask.text.clone();
    }
    let rows = Shown::of(ask).full(usize::MAX);
    rows.into_iter().map(|row| row.text).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::event::Entry;
    use crate::fact::TurnEnd;
    use crate::life::step;
    use crate::outcome::judge;
    use crate::record::{Channel, Ending, Lines};
    use jiff::Timestamp;

    fn plan(keep: bool) -> Plan {
        Plan {
            channel: Channel::Lines(Lines::Turns),
            keep,
            ending: Ending::EndOfInput,
            linger_ms: 1,
            rules: crate::rules::Rules::default(),
        }
    }

    fn turn(verdict: Verdict) -> Event {
        let end = TurnEnd { verdict, text: None, reason: None, tokens: None, cost_usd: None, messages: Vec::new() };
        Event::TurnEnded { end }
    }

    fn after(keep: bool, events: &[(u64, Event)]) -> State {
        events.iter().fold(State::new(plan(keep)), |state, (ms, event)| {
            let (at, event) = (Timestamp::UNIX_EPOCH, event.clone());
            step(state, &Entry { at, ms: *ms, run: 1, out: None, request: None, inbox: None, notify: None, event }).0
        })
    }

    fn ask() -> Event {
        let input = serde_json::json!({"command": "rm -r build"});
        let ask = Ask {
            request: "1".to_owned(),
            tool: Some("Bash".to_owned()),
            input,
            text: "tidies up".to_owned(),
            suggestions: serde_json::Value::Null,
            details: serde_json::Value::Null,
        };
        Event::Asked { ask }
    }

    fn working(keep: bool) -> State {
        after(keep, &[(0, Event::Started { plan: plan(keep), continues: false }), (1000, Event::TurnStarted)])
    }

    #[test]
    fn a_turn_is_told_of_where_the_session_stays_and_its_end_where_it_does_not() {
        assert_eq!(of(&working(true), &turn(Verdict::Succeeded)), [Moment::Turn]);
        assert_eq!(of(&working(true), &turn(Verdict::Failed)), [Moment::Failed, Moment::Turn]);
        assert!(of(&working(true), &turn(Verdict::Interrupted)).is_empty());
        assert!(of(&working(false), &turn(Verdict::Failed)).is_empty());
        let outcome = judge(&working(false), 0);
        assert!(!of(&working(false), &Event::Ended { outcome }).is_empty());
    }

    #[test]
    fn an_end_is_told_by_its_most_special_name() {
        let state = working(false);
        let outcome = |kind, saved| Outcome { kind, saved, ..judge(&state, 0) };
        let moments = |kind, saved| of_end(&outcome(kind, saved), false);
        assert_eq!(moments(Kind::Succeeded, Saved::Verified), [Moment::Ended]);
        assert_eq!(moments(Kind::Succeeded, Saved::Unverified), [Moment::Unproven, Moment::Ended]);
        assert_eq!(moments(Kind::Failed, Saved::Unverified), [Moment::Failed, Moment::Ended]);
        assert_eq!(moments(Kind::Lost, Saved::Verified), [Moment::Lost, Moment::Ended]);
        // The failed turn of a session that was stopped later has been reported before.
        assert_eq!(of_end(&outcome(Kind::Failed, Saved::Verified), true), [Moment::Ended]);
    }

    fn wanted(moments: &[Moment]) -> Wanted {
        let (moments, in_terminals) = (moments.to_vec(), false);
        Wanted { moments, only_detached: false, min_duration_ms: 0, in_terminals, by_sender: true }
    }

    #[test]
    fn what_was_short_or_is_looked_at_is_not_told() {
        let state = working(true);
        let only_ends = wanted(&[Moment::Ended]);
        let wanted = Wanted { only_detached: true, min_duration_ms: 5000, ..wanted(&Moment::ALL) };
        let end = turn(Verdict::Succeeded);
        assert_eq!(wanted.choose(&state, &end, 5999, false), None);
        assert_eq!(wanted.choose(&state, &end, 6000, false), Some(Moment::Turn));
        assert_eq!(wanted.choose(&state, &end, 6000, true), None);
        // A question has no duration.
        assert_eq!(wanted.choose(&state, &ask(), 1001, false), Some(Moment::Asking));
        let asked = after(
            true,
            &[(0, Event::Started { plan: plan(true), continues: false }), (1, Event::TurnStarted), (2, ask())],
        );
        assert_eq!(wanted.choose(&asked, &ask(), 1001, false), None, "asked again is not asked anew");
        assert_eq!(only_ends.choose(&state, &end, 6000, true), None);
        let outcome = Outcome { kind: Kind::Failed, ..judge(&state, 0) };
        assert_eq!(only_ends.choose(&state, &Event::Ended { outcome }, 0, true), Some(Moment::Ended));
    }

    #[test]
    fn a_question_is_told_with_its_real_input() {
        assert_eq!(text_of(&ask()), "Bash rm -r build\n  (it says: tidies up)");
    }

    #[test]
    fn every_moment_reads_back_and_one_of_a_newer_version_is_no_error() {
        for moment in Moment::ALL {
            assert_eq!(Moment::parse(moment.word()), Some(moment));
            assert_eq!(serde_json::to_string(&moment).unwrap(), format!("{:?}", moment.word()));
        }
        assert_eq!(serde_json::from_str::<Moment>("\"sunrise\"").unwrap(), Moment::Unknown);
    }
}
