//! The text about a moment, made safe for every place where it is shown: without escape sequences and control
//! characters, and not longer than a person reads.

use jiff::Timestamp;
use ostler_core::event::Entry;
use ostler_core::moment::{self, Moment};
use ostler_core::record::Session;
use ostler_screen::{printable, printable_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many characters of what an agent said are sent; `ostler logs` has all of it.
const TEXT: usize = 500;

/// How many characters of a name are sent.
const TITLE: usize = 80;

/// One notification. This is also the body of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Message {
    /// The version of this format.
    pub schema: u32,
    /// The same on every attempt, and on no other notification.
    pub id: String,
    /// What has happened.
    pub moment: Moment,
    /// When.
    pub at: Timestamp,
    /// The session's id.
    pub session: String,
    /// What a person called it.
    pub name: Option<String>,
    /// The agent that it keeps.
    pub agent: String,
    /// Where that works.
    pub cwd: String,
    /// One line: which session, and what has happened to it.
    pub title: String,
    /// What is asked, what was answered, or why it ended.
    pub text: String,
}

impl Message {
    /// The notification that an entry of a journal asks for. `position`: where the entry begins in the journal, which
    /// is unique in this session.
    #[must_use]
    pub fn of(session: &Session, position: u64, entry: &Entry) -> Option<Message> {
        let moment = entry.notify?;
        let name = session.name.as_deref().map(|name| cut(&printable(name), TITLE));
        Some(Message {
            schema: ostler_core::SCHEMA,
            id: format!("{}-{position}", session.id),
            moment,
            at: entry.at,
            session: session.id.to_string(),
            name,
            agent: cut(&printable(&session.agent), TITLE),
            cwd: printable(&session.cwd).into_owned(),
            title: format!("{} {}", cut(&printable(&session.title()), TITLE), moment.says()),
            text: cut(printable_text(&moment::text_of(&entry.event)).trim(), TEXT),
        })
    }

    /// A notification that only shows that notifications arrive.
    #[must_use]
    pub fn test(id: String, at: Timestamp) -> Message {
        Message {
            schema: ostler_core::SCHEMA,
            id,
            moment: Moment::Ended,
            at,
            session: "test".to_owned(),
            name: None,
            agent: "test".to_owned(),
            cwd: String::new(),
            title: "ostler: a test".to_owned(),
            text: "This is what a notification looks like.".to_owned(),
        }
    }
}

/// The beginning, with a mark where something is missing.
fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use ostler_core::event::Event;
    use ostler_core::fact::{TurnEnd, Verdict};

    #[test]
    fn what_an_agent_says_reaches_a_screen_clean_and_short() {
        let session: Session = serde_json::from_value(serde_json::json!({
            "schema": 1, "id": "abcd2345", "name": "a\u{1b}]0;owned\u{7}b\nc", "agent": "demo", "cwd": "/\u{1b}[2Jtmp",
            "mode": "headless", "created": "2026-01-01T00:00:00Z",
        }))
        .unwrap();
        let text = format!("one\u{1b}[31m two\u{1b}[0m\nthree\u{8}\u{202e} {}", "x".repeat(1000));
        let end = TurnEnd {
            verdict: Verdict::Succeeded,
            text: Some(text),
            reason: None,
            tokens: None,
            cost_usd: None,
            messages: Vec::new(),
        };
        let entry = Entry {
            at: Timestamp::UNIX_EPOCH,
            ms: 1,
            run: 1,
            out: None,
            request: None,
            inbox: None,
            notify: Some(Moment::Turn),
            event: Event::TurnEnded { end },
        };
        let message = Message::of(&session, 7, &entry).unwrap();
        assert_eq!((message.id.as_str(), message.title.as_str()), ("abcd2345-7", "ab c has finished its turn"));
        assert!(message.text.starts_with("one two\nthree"), "{:?}", message.text);
        assert!(message.text.ends_with("x…") && message.text.chars().count() == TEXT + 1, "{:?}", message.text);
        let shown = [message.name.as_deref().unwrap(), &message.title, &message.cwd, &message.text].concat();
        assert!(shown.chars().all(|c| c == '\n' || !c.is_control() && c != '\u{202e}'), "{shown:?}");
        assert!(Message::of(&session, 7, &Entry { notify: None, ..entry }).is_none());
    }
}
