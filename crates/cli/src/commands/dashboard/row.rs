//! One session in the list: only what a row needs. The full view is not kept, because there may be ten thousand ended
//! sessions.

use crate::commands::ls::{Doing, agent_name, doing, is_retrying, place, state_word};
use crate::ui::time::{age, clock, duration, stays_true};
use jiff::Timestamp;
use ostler_core::asking::Shown;
use ostler_core::fact::{Ask, Tokens, Verdict};
use ostler_core::id::SessionId;
use ostler_core::outcome::Kind;
use ostler_core::record::Mode;
use ostler_core::view::{Damaged, Phase, View};
use ostler_engine::launch::COMMAND;
use ostler_engine::list::Listed;
use ostler_tui::clean::clean_line;
use ostler_tui::cut;
use std::time::Duration;

/// How many columns of a session's last output are kept.
const DOING: usize = 240;

/// What a session needs, in the order of the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    You,
    Working,
    Waiting,
    Idle,
    Ended,
}

impl Need {
    pub const ALL: [Need; 5] = [Need::You, Need::Working, Need::Waiting, Need::Idle, Need::Ended];

    pub fn word(self) -> &'static str {
        match self {
            Need::You => "needs you",
            Need::Working => "working",
            Need::Waiting => "waiting",
            Need::Idle => "idle",
            Need::Ended => "ended",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub id: SessionId,
    /// Its name, or its title.
    pub name: String,
    /// It has a name of its own.
    pub named: bool,
    pub need: Need,
    /// Sessions that ask come before sessions that failed.
    urgency: u8,
    pub mark: &'static str,
    pub status: &'static str,
    pub state: Phase,
    pub since: Timestamp,
    pub created: Timestamp,
    pub ended: bool,
    pub damaged: bool,
    pub agent: String,
    /// The folder as it is shown, with the branch.
    pub place: String,
    pub cwd: String,
    /// It is a command: it takes no messages, and its end is final.
    pub command: bool,
    pub mode: Option<Mode>,
    pub run: u32,
    pub cost_usd: Option<f64>,
    pub tokens: Option<Tokens>,
    pub queued: u32,
    pub asking: Option<Box<Ask>>,
    /// What it asked, said or printed last, in one line.
    pub doing: String,
    /// It drives other sessions.
    pub job: bool,
    /// The job that launched it.
    pub of: Option<SessionId>,
}

impl Row {
    /// `None` for a folder whose name is not a session id.
    pub fn of(listed: &Listed) -> Option<Row> {
        match listed {
            Listed::Good(view) => Some(Row::of_view(view)),
            Listed::Bad(damaged) => Row::of_damaged(damaged),
        }
    }

    pub fn of_view(view: &View) -> Row {
        let (need, urgency) = need(view);
        let doing = match doing(view) {
            Doing::Asks(shown) => shown.line(DOING).asked,
            Doing::Says(text) if !text.is_empty() => text,
            Doing::Says(_) => match &view.outcome {
                Some(outcome) if view.ended && need == Need::You => outcome.cause.replace('\n', " "),
                Some(_) | None => String::new(),
            },
        };
        Row {
            id: view.id,
            name: cut(&clean_line(view.name.as_deref().unwrap_or(&view.title)), DOING),
            named: view.name.is_some(),
            need,
            urgency,
            mark: state_word(view).0,
            status: view.status,
            state: view.state,
            since: view.since,
            created: view.created,
            ended: view.ended,
            damaged: false,
            agent: clean_line(&agent_name(view)),
            place: clean_line(&place(view)),
            cwd: view.cwd.clone(),
            command: view.agent == COMMAND || view.job.is_some(),
            mode: Some(view.mode),
            run: view.run,
            cost_usd: view.cost_usd,
            tokens: view.tokens,
            queued: view.queued,
            asking: view.asking.clone().map(Box::new),
            doing: cut(&clean_line(&doing), DOING),
            job: view.job.is_some(),
            of: view.parent.filter(|_| view.driven),
        }
    }

    fn of_damaged(damaged: &Damaged) -> Option<Row> {
        Some(Row {
            id: SessionId::parse(&damaged.id)?,
            name: clean_line(&damaged.id),
            named: false,
            need: Need::You,
            urgency: 3,
            mark: "!",
            status: "damaged",
            state: Phase::Ended,
            since: Timestamp::UNIX_EPOCH,
            created: Timestamp::UNIX_EPOCH,
            ended: !damaged.alive,
            damaged: true,
            agent: String::new(),
            place: String::new(),
            cwd: String::new(),
            command: true,
            mode: None,
            run: 0,
            cost_usd: None,
            tokens: None,
            queued: 0,
            asking: None,
            doing: cut(&clean_line(&damaged.damage), DOING),
            job: false,
            of: None,
        })
    }

    /// The state, and for how long or since when.
    pub fn state_words(&self, now: Timestamp) -> String {
        if self.damaged {
            return self.status.to_owned();
        }
        let seconds = now.duration_since(self.since).as_secs().max(0);
        let time = match self.state {
            Phase::Idle | Phase::Waiting | Phase::Ended => clock(self.since, now),
            Phase::Queued | Phase::Asking => age(seconds),
            Phase::Starting | Phase::Working | Phase::Running | Phase::Stopping => match u64::try_from(seconds) {
                Ok(few @ 0..10) => format!("{few}s"),
                Ok(seconds) => duration(seconds.saturating_mul(1000)),
                Err(_) => String::new(),
            },
        };
        format!("{} {time}", self.status)
    }

    /// How long those words stay correct.
    pub fn stays_true(&self, now: Timestamp) -> Option<Duration> {
        if self.damaged { None } else { stays_true(self.state, self.since, now) }
    }

    /// Whether it waits for an answer.
    pub fn is_asking(&self) -> bool {
        self.asking.is_some() && !self.ended
    }

    /// Whether it may print or draw at any time.
    pub fn is_busy(&self) -> bool {
        match self.state {
            Phase::Starting | Phase::Working | Phase::Running | Phase::Stopping => true,
            Phase::Queued | Phase::Idle | Phase::Waiting | Phase::Asking | Phase::Ended => false,
        }
    }

    /// What it asks or says, in at most this many columns.
    pub fn doing(&self, columns: usize) -> String {
        match &self.asking {
            Some(ask) if !self.ended => Shown::of(ask).line(columns).asked,
            Some(_) | None => cut(&self.doing, columns),
        }
    }

    /// Its name in a sentence, as the commands write it.
    pub fn called(&self) -> String {
        if self.named { format!("{} ({})", self.name, self.id) } else { self.id.to_string() }
    }

    /// Whether it contains each of these lower-case words.
    pub fn matches(&self, words: &[String]) -> bool {
        let fields = [&self.name, &self.agent, &self.place, self.status, self.need.word(), &self.doing];
        let small: Vec<String> = fields.iter().map(|field| field.to_lowercase()).collect();
        // An id matches only from its beginning: a match of two letters in the middle would be an accident.
        words.iter().all(|word| self.id.as_str().starts_with(word) || small.iter().any(|field| field.contains(word)))
    }

    /// Its order in the group: by urgency. Then, of the running sessions that need a person, the one that has waited
    /// longest comes first; of all others the newest.
    pub fn order(&self) -> impl Ord + use<> {
        let time = match self.need {
            Need::You => self.since.as_microsecond(),
            Need::Working | Need::Waiting | Need::Idle => -self.created.as_microsecond(),
            Need::Ended => -self.since.as_microsecond(),
        };
        (self.urgency, if self.state == Phase::Ended { -self.since.as_microsecond() } else { time }, self.id)
    }
}

fn need(view: &View) -> (Need, u8) {
    let failed_turn = view.last_turn.as_ref().is_some_and(|turn| turn.verdict == Verdict::Failed);
    // A job decides what the end of its child means.
    if view.ended && view.driven {
        return (Need::Ended, 0);
    }
    if view.ended {
        return match view.outcome.as_ref().map(|outcome| outcome.kind) {
            Some(Kind::Failed | Kind::Lost) => (Need::You, 2),
            Some(Kind::Succeeded | Kind::Interrupted | Kind::Stopped) | None => (Need::Ended, 0),
        };
    }
    if view.state == Phase::Asking {
        return (Need::You, 0);
    }
    if view.alarm.is_some() || view.message_waits.is_some() || !view.maybe_delivered.is_empty() {
        return (Need::You, 1);
    }
    match view.state {
        _ if is_retrying(view) => (Need::Waiting, 0),
        Phase::Starting | Phase::Working | Phase::Running | Phase::Stopping => (Need::Working, 0),
        Phase::Queued | Phase::Waiting => (Need::Waiting, 0),
        Phase::Idle if view.queued > 0 => (Need::Waiting, 0),
        Phase::Idle if failed_turn => (Need::You, 2),
        Phase::Idle => (Need::Idle, 0),
        Phase::Asking => (Need::You, 0),
        Phase::Ended => (Need::Ended, 0),
    }
}
