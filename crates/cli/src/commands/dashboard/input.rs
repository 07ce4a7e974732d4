//! What is being filled in or asked: a filter, a reply, a new session, an answer, a confirmation.

use super::row::Row;
use super::search::Searching;
use super::state::State;
use ostler_core::asking::{Row as AskRow, Shown};
use ostler_core::fact::Ask;
use ostler_core::id::SessionId;
use ostler_tui::Input;

/// What keys act on.
pub enum Mode {
    /// The list.
    List,
    /// A filter is being typed.
    Filter,
    /// The list of keys, from this row on.
    Keys { first: usize },
    /// A message to these sessions.
    Reply { to: Vec<SessionId>, input: Input },
    /// A question that is about to be answered.
    Answer(Box<Answering>),
    /// A verb that has to be confirmed.
    Confirm { verb: Verb, of: Vec<SessionId> },
    /// A session that is about to be started.
    New(Box<Form>),
    /// Words that are searched in all conversations.
    Search(Box<Searching>),
}

/// The verbs that have to be confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Interrupt,
    Stop,
    Archive,
    Land,
}

impl Verb {
    pub fn word(self) -> &'static str {
        match self {
            Verb::Interrupt => "interrupt",
            Verb::Stop => "stop",
            Verb::Archive => "archive",
            Verb::Land => "land",
        }
    }
}

/// A question, as it was when the person began to answer it: the answer goes to exactly this question.
pub struct Answering {
    pub id: SessionId,
    pub called: String,
    pub ask: Ask,
    pub allow: bool,
    /// The first visible row of the question.
    pub top: usize,
    /// The whole question has been on the screen.
    pub seen: bool,
    /// The question is no longer asked, or another one is. The panel stays until it is closed, so that what is being
    /// typed into it never acts as keys of the list.
    pub settled: bool,
    /// Text: the answer to a question, or the reason for a denial.
    pub input: Input,
    /// The other sessions, whose questions are answered after this one.
    pub further: Vec<SessionId>,
}

impl Answering {
    pub fn of(row: &Row, allow: bool, further: Vec<SessionId>) -> Option<Answering> {
        let ask = row.asking.as_deref()?.clone();
        let called = row.called();
        let input = Input::new("");
        Some(Answering { id: row.id, called, ask, allow, top: 0, seen: false, settled: false, input, further })
    }

    /// Whether it is answered with text.
    pub fn takes_words(&self) -> bool {
        !self.allow || !self.ask.questions().is_empty()
    }

    /// What is shown when the question is no longer asked.
    pub fn is_settled(&self) -> String {
        format!("{} no longer asks this; nothing was answered · Esc leaves", self.called)
    }

    pub fn rows(&self, columns: u16) -> Vec<AskRow> {
        Shown::of(&self.ask).full(usize::from(columns).max(20))
    }
}

/// The fields that describe a new session.
pub struct Form {
    pub agents: Vec<String>,
    pub agent: usize,
    pub folder: Input,
    /// In its own terminal; otherwise headless.
    pub terminal: bool,
    pub prompt: Input,
    pub field: Field,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Prompt,
    Agent,
    Folder,
    Kind,
}

impl Field {
    pub const ALL: [Field; 4] = [Field::Prompt, Field::Agent, Field::Folder, Field::Kind];

    pub fn word(self) -> &'static str {
        match self {
            Field::Prompt => "prompt",
            Field::Agent => "agent",
            Field::Folder => "folder",
            Field::Kind => "kind",
        }
    }
}

impl Form {
    pub fn next_field(&mut self, step: isize) {
        let now = Field::ALL.iter().position(|field| *field == self.field).unwrap_or(0);
        let count = Field::ALL.len();
        self.field = Field::ALL[(now + count).wrapping_add_signed(step) % count];
    }

    pub fn next_agent(&mut self, step: isize) {
        let count = self.agents.len().max(1);
        self.agent = (self.agent + count).wrapping_add_signed(step) % count;
    }
}

impl State {
    /// The columns and rows that the panel of a question has for the question itself.
    pub fn question_room(&self) -> (u16, u16) {
        let (rows, columns) = self.size;
        (columns.saturating_sub(4), rows.saturating_sub(5).max(1))
    }

    /// Notes whether the whole question has been seen.
    pub fn settle_question(&mut self) {
        let (columns, height) = self.question_room();
        if let Mode::Answer(answering) = &mut self.mode {
            let rows = answering.rows(columns).len();
            answering.top = answering.top.min(rows.saturating_sub(usize::from(height)));
            answering.seen |= answering.top + usize::from(height) >= rows;
        }
    }

    /// Marks the question in the panel as settled when the session no longer asks it.
    pub fn notice_question(&mut self, row: &Row) {
        let Mode::Answer(answering) = &mut self.mode else { return };
        let asked = row.asking.as_ref().filter(|_| !row.ended).map(|ask| &ask.request);
        if answering.id == row.id && asked != Some(&answering.ask.request) {
            answering.settled = true;
            let words = answering.is_settled();
            self.complain(words);
        }
    }
}
