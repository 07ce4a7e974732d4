//! Talking with a running agent: what it prints, and what its input or its terminal expects.

use crate::decoder::Decoder;
use crate::prompt;
use ostler_core::fact::Ask;

/// How a running agent is understood and answered.
pub trait Speak {
    /// A reader for its standard output.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// A reader for its standard error, where it tells there that it retries.
    fn error_reader(&self) -> Option<Box<dyn Decoder>> {
        None
    }

    /// A reader for what its hooks tell, where it has any.
    fn hooks(&self) -> Option<Box<dyn Decoder>> {
        None
    }

    /// Whether its hooks only write to their file, which then has to be watched. Others wake the keeper as well.
    fn tells_in_a_file(&self) -> bool {
        false
    }

    /// What opens the conversation, where that has to be done before its first message; the agent's answer to it is
    /// [`ostler_core::fact::Fact::Opened`] or [`ostler_core::fact::Fact::NotOpened`].
    fn opening(&self, request: &Opening<'_>) -> Option<Vec<u8>> {
        let _ = request;
        None
    }

    /// A message as the bytes that its input expects.
    fn message(&self, message: &Message<'_>) -> Vec<u8>;

    /// A message as keys for its terminal. Agents take keys that come fast for a paste, in which a return only breaks the
    /// line; so the message is a paste, and the return that sends it comes by itself.
    fn keys(&self, text: &str) -> Keys {
        Keys { at_once: pasted(text), after_a_pause: b"\r".to_vec() }
    }

    /// What its screen says about its prompt, where it does not tell itself when it takes messages.
    fn prompt(&self) -> Option<fn(&prompt::Screen<'_>) -> prompt::Seen> {
        None
    }

    /// What its input takes as "end this turn" of this conversation; `None` when only a signal does.
    fn interrupt(&self, native_id: &str, id: &str) -> Option<Vec<u8>> {
        let _ = (native_id, id);
        None
    }

    /// What it is told about a question that nobody will answer, because its turn is broken off; `None` when it knows.
    fn withdraw(&self, ask: &Ask) -> Option<Vec<u8>> {
        let _ = ask;
        None
    }

    /// The keys that end a turn in its terminal; `None` when only a signal does.
    fn interrupt_keys(&self) -> Option<Vec<u8>> {
        None
    }

    /// The keys that close a dialog that it has opened by itself, as if a person had changed their mind.
    fn close_dialog_keys(&self) -> Option<Vec<u8>> {
        None
    }

    /// What it does in its terminal, by the record of its own process
    /// ([`Ownership::own_record`](crate::ownership::Ownership::own_record)); `None` when that does not say.
    fn doing(&self, record: &[u8]) -> Option<Doing> {
        let _ = record;
        None
    }

    /// The answer to a question, as its input expects it; `None` when it takes none.
    fn answer(&self, ask: &Ask, answer: &Answer) -> Option<Vec<u8>> {
        let _ = (ask, answer);
        None
    }

    /// What it proposes to allow beside this one thing, for as long as its process runs, in words.
    fn longer(&self, ask: &Ask) -> Option<String> {
        let _ = ask;
        None
    }
}

/// What a conversation is opened with.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    pub cwd: &'a str,
    /// The conversation to go on with.
    pub resume: Option<&'a str>,
}

/// Something that an agent is told.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// In this conversation; empty where the agent does not ask which.
    pub native_id: &'a str,
    /// Our name for it.
    pub id: &'a str,
    pub text: &'a str,
}

/// What an agent does in its terminal, and since when, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doing {
    pub what: What,
    pub since_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It takes messages.
    Rests,
    Works,
    /// It shows a dialog, which keys would answer.
    ShowsDialog,
}

/// What is typed into a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    pub at_once: Vec<u8>,
    /// Empty when that was all.
    pub after_a_pause: Vec<u8>,
}

/// A text as a terminal gives it to a program that has asked to be told of pastes. What would end the paste early is left
/// out of it.
fn pasted(text: &str) -> Vec<u8> {
    let text = typeable(text).replace('\n', "\r");
    format!("\u{1b}[200~{text}\u{1b}[201~").into_bytes()
}

/// What of a text arrives when it is typed.
#[must_use]
pub fn typeable(text: &str) -> String {
    text.replace('\u{1b}', "").replace("\r\n", "\n").replace('\r', "\n")
}

/// What somebody answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub allow: bool,
    /// And what the agent proposes to allow with it ([`Speak::longer`]), for as long as its process runs.
    pub always: bool,
    pub text: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_for_a_terminal_is_one_paste_whatever_is_in_it_and_then_a_return() {
        let keys = crate::claude::Claude.keys("one\ntwo\u{1b}[201~\r\nthree");
        assert_eq!(keys.at_once, b"\x1b[200~one\rtwo[201~\rthree\x1b[201~");
        assert_eq!(keys.after_a_pause, b"\r");
    }
}
