//! What an agent said, once its own format is understood. Decoders produce these; everything after them is the same for
//! every agent.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing that was found in an agent's output.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// The agent's own name for the conversation.
    Native { id: String },
    /// Where the agent stores this conversation.
    Transcript { path: String },
    /// The agent is past its first dialogs, in which typed keys would not be a message.
    Ready,
    /// The agent behind a program that speaks a protocol, by our name for it: the conversation belongs to that agent.
    Behind { agent: String },
    /// The agent has repeated its conversation. `last` is the last message of a person in it, which came `times` times
    /// in a row.
    Recalled { last: String, times: u64 },
    /// Its conversation is open: from now on the agent takes messages. A new conversation gets its name from the agent.
    Opened { native_id: Option<String> },
    /// Its conversation cannot be opened, and why in one line.
    NotOpened { reason: String },
    /// The agent has reported that a turn has begun.
    TurnStarted,
    /// Text as it is being written; the whole follows as [`Fact::Said`].
    Saying { text: String },
    /// A whole text of the agent.
    Said { text: String },
    /// The agent's reasoning; shown dimmed, never part of the answer.
    Thought { text: String },
    /// The model that answers from now on, by the agent's own name for it.
    Model { name: String },
    /// A tool was called.
    ToolCalled { name: String, detail: String, call: Call },
    /// A tool returned; with the id of its call, where the agent reports it.
    ToolReturned { text: String, failed: bool, call: Option<String> },
    /// A subagent said or did this, in its own conversation below this one. It is shown, and never counts as said by
    /// the agent.
    Subagent(Box<Fact>),
    /// The agent waits for a permission or an answer.
    Asked(Ask),
    /// The agent no longer waits for the answer to this question.
    AskClosed { request: String },
    /// A task that runs beside the agent's turns has started or ended. The agent is notified of its end, and begins a
    /// turn about it.
    Background { task: String, runs: bool },
    /// The model's server did not answer, and the agent tries again.
    Retrying(Retry),
    /// It has reached a usage limit, which ends its turn.
    Limited(UsageLimit),
    /// The agent waits for this line, as its protocol requires. The line is put into its input once, under this name.
    ReplyDue { name: String, line: Vec<u8> },
    /// The agent has reported that the turn is over.
    TurnEnded(TurnEnd),
    /// Something this version does not know.
    Unknown { kind: String },
    /// A line too long to be read.
    LineTooLong { bytes: u64 },
}

/// What else an agent reports about a tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The agent's id for this call; the result carries the same id.
    pub id: Option<String>,
    /// What the call changes in files.
    pub edits: Vec<Edit>,
}

/// A part of a file that is replaced by another text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub path: String,
    /// Empty for a file that is written whole.
    pub old: String,
    pub new: String,
}

/// An agent repeats a request that the model's server did not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// One line: what went wrong.
    pub reason: String,
    /// Which attempt has failed, where the agent counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
}

/// A usage limit that an agent has reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageLimit {
    /// In words for people: `usage limit`, `rate limit`.
    #[serde(rename = "limit")]
    pub what: String,
    /// When it is reset, in seconds since 1970, where the agent says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<i64>,
    /// The same time, where the agent gives it as people write it. At most one of the two is set, and this one is
    /// converted to the other before the limit is written to the journal.
    #[serde(skip)]
    pub local: Option<Local>,
}

/// A time as people say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    pub at: ResetsAt,
    /// The name of its time zone; `None`: the time zone of this machine.
    pub zone: Option<String>,
    /// When it was said, where that is known; `None`: now.
    pub said: Option<Timestamp>,
}

impl From<ResetsAt> for Local {
    fn from(at: ResetsAt) -> Local {
        Local { at, zone: None, said: None }
    }
}

/// A time of day, as people say it: the next such time, or the time on a certain day, with or without the year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetsAt {
    Time(Time),
    Day(DateTime),
    DayOfYear { month: i8, day: i8, time: Time },
}

/// A time that is given to the minute may be up to this many seconds later.
const MINUTE: i64 = 60;

impl UsageLimit {
    /// A limit whose reset time is unknown.
    #[must_use]
    pub fn new(what: &str) -> UsageLimit {
        UsageLimit { what: what.to_owned(), resets_at: None, local: None }
    }

    /// The same limit with its time in seconds since 1970. `now` and `here`: when and in which time zone it was said,
    /// unless it says that itself. If this machine does not know its time zone, the time stays unknown.
    #[must_use]
    pub fn resolved(self, now: Timestamp, here: &TimeZone) -> UsageLimit {
        let Some(Local { at, zone, said }) = self.local else {
            return self;
        };
        let unknown = UsageLimit { local: None, ..self };
        let zone = match zone {
            None => here.clone(),
            Some(name) => match TimeZone::get(&name) {
                Ok(zone) => zone,
                Err(_) => return unknown,
            },
        };
        let now = said.unwrap_or(now);
        let here = now.to_zoned(zone.clone());
        let then = match at {
            ResetsAt::Day(day) => day.to_zoned(zone).ok(),
            // The next such day is meant, as there is no year: in December, January is that of the next year.
            ResetsAt::DayOfYear { month, day, time } => [0, 1].into_iter().find_map(|years| {
                let date = Date::new(here.year() + years, month, day).ok()?;
                let then = date.to_datetime(time).to_zoned(zone.clone()).ok()?;
                (then.timestamp().as_second() + 10 * MINUTE >= now.as_second()).then_some(then)
            }),
            // A time that has passed in the last ten minutes means today, not tomorrow.
            ResetsAt::Time(time) => here.date().to_datetime(time).to_zoned(zone.clone()).ok().and_then(|today| {
                let is_over = today.timestamp().as_second() + 10 * MINUTE < now.as_second();
                if is_over { today.tomorrow().ok() } else { Some(today) }
            }),
        };
        UsageLimit { resets_at: then.map(|then| then.timestamp().as_second() + MINUTE), ..unknown }
    }
}

impl Fact {
    /// The same fact with its times in seconds since 1970.
    #[must_use]
    pub fn resolved(self, now: Timestamp) -> Fact {
        match self {
            Fact::Limited(limit) if limit.local.is_some() => Fact::Limited(limit.resolved(now, &TimeZone::system())),
            other => other,
        }
    }
}

/// What an agent asks a person.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Ask {
    /// The agent's own name for the question.
    pub request: String,
    /// The tool that the agent asks to use, when it asks for a permission.
    pub tool: Option<String>,
    /// The arguments of the tool: all of them, as the agent gave them. Null when the agent did not report them.
    #[serde(default)]
    pub input: Value,
    /// What the agent says about it. Never shown instead of the input.
    pub text: String,
    /// What the agent proposes to allow for longer.
    #[serde(default)]
    pub suggestions: Value,
    /// What else the agent shows of it, where its protocol has that: `title`, `kind`, `locations`, `content`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
}

/// The tool that is itself a question. A field `questions` in the input of any other tool does not make that call a
/// question: an answer in words would then allow the call unseen.
const QUESTION_TOOL: &str = "AskUserQuestion";

/// One question that is answered in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    pub text: &'a str,
    /// The offered choices; other words are accepted as well.
    pub choices: Vec<&'a str>,
}

impl Ask {
    /// A question in words, which is answered in words.
    #[must_use]
    pub fn question(request: String, text: &str) -> Ask {
        Ask {
            request,
            tool: Some(QUESTION_TOOL.to_owned()),
            input: serde_json::json!({ "questions": [{ "question": text }] }),
            text: text.to_owned(),
            suggestions: Value::Null,
            details: Value::Null,
        }
    }

    /// The questions, when it is not a permission that is asked for: the question tool has them as arguments.
    #[must_use]
    pub fn questions(&self) -> Vec<Question<'_>> {
        let list = self.input["questions"].as_array().filter(|_| self.tool.as_deref() == Some(QUESTION_TOOL));
        list.map(Vec::as_slice)
            .unwrap_or_default()
            .iter()
            .filter_map(|one| {
                let options = one["options"].as_array().map(Vec::as_slice).unwrap_or_default();
                let choices = options.iter().filter_map(|option| option["label"].as_str()).collect();
                Some(Question { text: one["question"].as_str()?, choices })
            })
            .collect()
    }
}

/// How a turn went, as the agent reported it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TurnEnd {
    pub verdict: Verdict,
    /// The final answer.
    #[serde(default)]
    pub text: Option<String>,
    /// One line: why it failed or was broken off.
    #[serde(default)]
    pub reason: Option<String>,
    #[serde(default)]
    pub tokens: Option<Tokens>,
    /// The cost of this process so far, as agents count it; [`crate::spending`] computes the cost of each turn from it.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// The agent's own ids of the messages of this turn; the proof that the turn is saved looks for these.
    #[serde(default)]
    pub messages: Vec<String>,
}

impl TurnEnd {
    /// The end of a turn that we interrupted: it counts as interrupted, even if the agent reports a failure. `why`: for
    /// which limit.
    #[must_use]
    pub fn after_interrupt(self, why: Option<&str>) -> TurnEnd {
        match (self.verdict, why) {
            (Verdict::Failed, None) => {
                let reason = Some("the turn was interrupted".to_owned());
                TurnEnd { verdict: Verdict::Interrupted, reason, ..self }
            }
            (Verdict::Failed | Verdict::Interrupted, Some(why)) => {
                TurnEnd { verdict: Verdict::Interrupted, reason: Some(why.to_owned()), ..self }
            }
            (Verdict::Succeeded, _) | (Verdict::Interrupted, None) => self,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Succeeded,
    Failed,
    Interrupted,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
}

impl std::ops::AddAssign for Tokens {
    fn add_assign(&mut self, more: Tokens) {
        // Counts come from foreign processes.
        self.input = self.input.saturating_add(more.input);
        self.output = self.output.saturating_add(more.output);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use jiff::civil::{date, time};

    #[test]
    fn a_time_of_the_day_is_the_next_one_in_the_zone_of_the_agent() {
        let zone = TimeZone::get("Europe/Berlin").unwrap_or(TimeZone::UTC);
        let at = |hour, minute| date(2026, 11, 17).at(hour, minute, 0, 0).to_zoned(zone.clone()).unwrap().timestamp();
        let resets = |local: ResetsAt| UsageLimit { local: Some(local.into()), ..UsageLimit::new("usage limit") };
        let second = |now, local| resets(local).resolved(now, &zone).resets_at.unwrap();
        let noon = ResetsAt::Time(time(12, 0, 0, 0));
        assert_eq!(second(at(9, 30), noon), at(12, 0).as_second() + MINUTE);
        assert_eq!(second(at(12, 1), noon), at(12, 0).as_second() + MINUTE, "it is being reset");
        assert_eq!(second(at(18, 0), noon), at(12, 0).as_second() + 86_400 + MINUTE, "tomorrow");
        let day = ResetsAt::Day(date(2026, 11, 20).at(12, 0, 0, 0));
        assert_eq!(second(at(18, 0), day), at(12, 0).as_second() + 3 * 86_400 + MINUTE);
        assert_eq!(UsageLimit::new("x").resolved(at(1, 0), &zone).resets_at, None);
        let in_days = |month, day| ResetsAt::DayOfYear { month, day, time: time(12, 0, 0, 0) };
        assert_eq!(second(at(18, 0), in_days(11, 20)), at(12, 0).as_second() + 3 * 86_400 + MINUTE);
        let january = date(2027, 1, 3).at(12, 0, 0, 0).to_zoned(zone.clone()).unwrap().timestamp();
        assert_eq!(second(at(18, 0), in_days(1, 3)), january.as_second() + MINUTE, "of the next year");
        assert_eq!(resets(in_days(2, 30)).resolved(at(1, 0), &zone).resets_at, None, "no such day");
    }

    #[test]
    fn what_is_said_with_a_zone_and_a_time_counts_there_and_then() {
        let said: Timestamp = "2026-11-17T17:54:02Z".parse().unwrap();
        let of = |zone: &str| UsageLimit {
            local: Some(Local { at: ResetsAt::Time(time(18, 4, 0, 0)), zone: Some(zone.to_owned()), said: Some(said) }),
            ..UsageLimit::new("usage limit")
        };
        let much_later: Timestamp = "2026-11-20T01:00:00Z".parse().unwrap();
        let resets_at = |zone: &str| of(zone).resolved(much_later, &TimeZone::fixed(jiff::tz::offset(9))).resets_at;
        let expected: Timestamp = "2026-11-17T18:05:00Z".parse().unwrap();
        assert_eq!(resets_at("UTC"), Some(expected.as_second()));
        let in_tokyo: Timestamp = "2026-11-18T09:05:00Z".parse().unwrap();
        assert_eq!(resets_at("Asia/Tokyo"), Some(in_tokyo.as_second()));
        assert_eq!(resets_at("Moon/Tycho"), None);
    }
}
