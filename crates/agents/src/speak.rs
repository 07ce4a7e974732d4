//! Talking with a running agent: what it prints, and what its input or its terminal expects.

use crate::decoder::Decoder;
use crate::prompt;
use ostler_core::fact::Ask;

/// How the output of a running agent is read and its input written.
pub trait Speak {
    /// A reader for its standard output.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// A reader for its standard error, if it reports retries there.
    fn error_reader(&self) -> Option<Box<dyn Decoder>> {
        None
    }

    /// A reader for the reports of its hooks, if it has any.
    fn hooks(&self) -> Option<Box<dyn Decoder>> {
        None
    }

    /// Whether its hooks only write to their file, so that the file has to be watched. Other hooks also wake the
    /// keeper.
    fn reports_in_a_file(&self) -> bool {
        false
    }

    /// What opens the conversation, if that has to be done before the first message. The agent's answer to it is
    /// [`ostler_core::fact::Fact::Opened`] or [`ostler_core::fact::Fact::NotOpened`].
    fn opening(&self, request: &Opening<'_>) -> Option<Vec<u8>> {
        let _ = request;
        None
    }

    /// A message as the bytes that its input expects.
    fn message(&self, message: &Message<'_>) -> Vec<u8>;

    /// A message as keys for its terminal. Agents treat keys that come fast as a paste, in which a return only breaks
    /// the line. So the message is sent as a paste, and the return that sends it comes separately.
    fn keys(&self, text: &str) -> Keys {
        Keys { at_once: pasted(text), after_a_pause: b"\r".to_vec() }
    }

    /// A function that reads its prompt from its screen, if it does not report by itself when it accepts messages.
    fn prompt(&self) -> Option<fn(&prompt::Screen<'_>) -> prompt::Seen> {
        None
    }

    /// What its input accepts as "end this turn" of this conversation; `None` when only a signal ends a turn.
    fn interrupt(&self, native_id: &str, id: &str) -> Option<Vec<u8>> {
        let _ = (native_id, id);
        None
    }

    /// What it is sent about a question that will not be answered, because its turn was interrupted; `None` when it
    /// needs nothing.
    fn withdraw(&self, ask: &Ask) -> Option<Vec<u8>> {
        let _ = ask;
        None
    }

    /// The keys that end a turn in its terminal; `None` when only a signal ends a turn.
    fn interrupt_keys(&self) -> Option<Vec<u8>> {
        None
    }

    /// The keys that close a dialog that it has opened by itself, as if a person had cancelled it.
    fn close_dialog_keys(&self) -> Option<Vec<u8>> {
        None
    }

    /// What it does in its terminal, by the record of its own process
    /// ([`Ownership::own_record`](crate::ownership::Ownership::own_record)); `None` when the record does not show it.
    fn doing(&self, record: &[u8]) -> Option<Doing> {
        let _ = record;
        None
    }

    /// The answer to a question, as its input expects it; `None` when it takes none.
    fn answer(&self, ask: &Ask, answer: &Answer) -> Option<Vec<u8>> {
        let _ = (ask, answer);
        None
    }

    /// What it proposes to allow in addition to this one action, for as long as its process runs, as text.
    fn longer(&self, ask: &Ask) -> Option<String> {
        let _ = ask;
        None
    }
}

/// The input for [`Speak::opening`].
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    pub cwd: &'a str,
    /// The conversation to resume.
    pub resume: Option<&'a str>,
}

/// A message to an agent.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The conversation; empty where the agent does not need it.
    pub native_id: &'a str,
    /// Our id of the message.
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
    /// It accepts messages.
    Rests,
    Works,
    /// It shows a dialog, which keys would answer.
    ShowsDialog,
}

/// What is typed into a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    pub at_once: Vec<u8>,
    /// Empty when there is nothing more to type.
    pub after_a_pause: Vec<u8>,
}

/// A text as a terminal sends it to a program that has enabled bracketed paste. What would end the paste early is
/// removed.
fn pasted(text: &str) -> Vec<u8> {
    let text = typeable(text).replace('\n', "\r");
    format!("\u{1b}[200~{text}\u{1b}[201~").into_bytes()
}

/// The part of a text that arrives when it is typed.
#[must_use]
pub fn typeable(text: &str) -> String {
    text.replace('\u{1b}', "").replace("\r\n", "\n").replace('\r', "\n")
}

/// A person's answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub allow: bool,
    /// Allow also what the agent proposes with it ([`Speak::longer`]), for as long as its process runs.
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
