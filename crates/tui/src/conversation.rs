//! A conversation as a widget: it takes facts as they come, and draws its visible part.
//!
//! The cost follows what has changed. The rows of an entry are made when they are first visible and kept until the
//! entry, the width or its fold changes. The position of the view is an entry and a row in it, so that nothing above or
//! below has to be measured.

use crate::entry::{Entry, Returned, Tone, Tool};
use crate::text_pieces::Piece;
use crate::theme::Theme;
use ostler_core::fact::{Ask, Fact};
use ostler_core::limits::size;
use ratatui_core::text::Line;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

mod view;

/// The rows of this many entries are kept.
const KEPT: usize = 512;
/// At most this many calls with an id are remembered while their result may still come.
const OPEN_CALLS: usize = 1024;

/// Whether to choose the entry before or after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choose {
    Before,
    Behind,
}

/// The first visible row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    entry: usize,
    row: usize,
}

struct Kept {
    entry: Entry,
    /// Whether the person has unfolded or folded it.
    open: Option<bool>,
    rows: Option<Rc<[Line<'static>]>>,
}

pub struct Conversation {
    entries: Vec<Kept>,
    theme: Theme,
    folder: String,
    model: Option<String>,
    /// Everything is unfolded unless the person has folded it.
    all_open: bool,
    chosen: Option<usize>,
    /// The end is in view, and the view follows it.
    follows: bool,
    top: Place,
    /// Something has been added below the view.
    news: bool,
    /// The entry whose first row is to be brought into view.
    reveal: Option<usize>,
    /// The first entry of the text that is still being written.
    writing: Option<usize>,
    /// Calls without a result so far: with an id, and without.
    calls: HashMap<String, usize>,
    nameless: VecDeque<usize>,
    /// The question that was shown last, and its entry.
    asked: Option<(String, usize)>,
    /// The questions that have no answer in the conversation yet.
    unanswered: Vec<String>,
    /// The question that waits for an answer now.
    open_question: Option<usize>,
    /// The whole question has been in view; otherwise, how many of its first rows have been.
    question_seen: bool,
    question_rows_seen: usize,
    /// While the view follows the end, it does not move past the first row of the open question.
    held: bool,
    /// There is more below a view that is held.
    held_above_end: bool,
    columns: usize,
    height: usize,
    /// Entries whose rows are kept, the oldest first.
    kept: VecDeque<usize>,
    /// The entry in each drawn row.
    drawn: Vec<Option<usize>>,
}

impl Conversation {
    /// `folder`: where the session works; paths are shown relative to it.
    #[must_use]
    pub fn new(theme: Theme, folder: &str) -> Conversation {
        Conversation {
            entries: Vec::new(),
            theme,
            folder: folder.to_owned(),
            model: None,
            all_open: false,
            chosen: None,
            follows: true,
            top: Place::default(),
            news: false,
            reveal: None,
            writing: None,
            calls: HashMap::new(),
            nameless: VecDeque::new(),
            asked: None,
            unanswered: Vec::new(),
            open_question: None,
            question_seen: false,
            question_rows_seen: 0,
            held: false,
            held_above_end: false,
            columns: 0,
            height: 0,
            kept: VecDeque::new(),
            drawn: Vec::new(),
        }
    }

    /// The model that answers, where the agent has named it.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a message of a person.
    pub fn told(&mut self, text: &str) {
        self.writing = None;
        self.push(Entry::Told(text.to_owned()));
    }

    /// Adds an answer to a question.
    pub fn answered(&mut self, request: &str, by: &str, allowed: bool, always: Option<&str>) {
        self.unanswered.retain(|other| other != request);
        let always = always.map(str::to_owned);
        self.push(Entry::Answered { by: by.to_owned(), allowed, always });
    }

    /// Adds what the agent said or did.
    pub fn fact(&mut self, fact: &Fact) {
        match fact {
            Fact::Saying { text } => self.write(text),
            Fact::Said { text } => self.said(text),
            Fact::Thought { text } => self.end_with(Entry::Thought(text.clone()), !text.trim().is_empty()),
            Fact::Model { name } => self.model = Some(name.clone()),
            Fact::ToolCalled { .. } | Fact::ToolReturned { .. } => {
                self.writing = None;
                self.tool(fact, false);
            }
            Fact::Subagent(fact) => {
                self.writing = None;
                self.below(fact);
            }
            Fact::Asked(ask) => {
                self.writing = None;
                self.unanswered.push(ask.request.clone());
                _ = self.question(ask);
            }
            Fact::TurnEnded(end) => {
                self.writing = None;
                self.calls.clear();
                self.nameless.clear();
                if !std::mem::take(&mut self.unanswered).is_empty() {
                    self.note("not answered: the turn has ended");
                }
                if let Some(reason) = &end.reason {
                    self.push(Entry::Note(Tone::Bad, reason.clone()));
                }
            }
            Fact::LineTooLong { bytes } => {
                let text = format!("a line of {} is too long to show; ostler logs --raw has it", size(*bytes));
                self.end_with(Entry::Note(Tone::Quiet, text), true);
            }
            Fact::AskClosed { request } => {
                if self.unanswered.contains(request) {
                    self.unanswered.retain(|other| other != request);
                    self.end_with(Entry::Note(Tone::Quiet, "not answered: no longer asked".to_owned()), true);
                }
            }
            Fact::Retrying(retry) => {
                self.end_with(Entry::Note(Tone::Quiet, format!("retrying: {}", retry.reason)), true);
            }
            Fact::Limited(limit) => {
                self.end_with(Entry::Note(Tone::Quiet, format!("{} reached", limit.what)), true);
            }
            Fact::NotOpened { reason } => self.end_with(Entry::Note(Tone::Bad, reason.clone()), true),
            Fact::Native { .. }
            | Fact::Transcript { .. }
            | Fact::Ready
            | Fact::Behind { .. }
            | Fact::Recalled { .. }
            | Fact::Opened { .. }
            | Fact::ReplyDue { .. }
            | Fact::TurnStarted
            | Fact::Background { .. }
            | Fact::Unknown { .. } => {}
        }
    }

    /// Adds a line of ours to the conversation.
    pub fn note(&mut self, text: &str) {
        self.push(Entry::Note(Tone::Quiet, text.to_owned()));
    }

    /// Sets what the session asks now. The question is shown in full, unless it was the last question shown: the person
    /// who answers must see it. Only this decides what is kept in view; an earlier question is part of the text.
    pub fn asks(&mut self, ask: Option<&Ask>) {
        let Some(ask) = ask else {
            (self.open_question, self.held) = (None, false);
            return;
        };
        let shown = self.asked.as_ref().filter(|(request, _)| *request == ask.request).map(|(_, place)| *place);
        let place = shown.unwrap_or_else(|| {
            self.writing = None;
            self.question(ask)
        });
        if self.open_question != Some(place) {
            (self.open_question, self.held) = (Some(place), self.follows);
            (self.question_seen, self.question_rows_seen) = (false, 0);
        }
    }

    /// Whether the whole open question has been in view: a person must not allow what they cannot see.
    #[must_use]
    pub fn question_is_seen(&self) -> bool {
        self.open_question.is_none() || self.question_seen
    }

    fn question(&mut self, ask: &Ask) -> usize {
        self.push(Entry::Question(Box::new(ask.clone())));
        let place = self.entries.len() - 1;
        self.asked = Some((ask.request.clone(), place));
        place
    }

    fn end_with(&mut self, entry: Entry, wanted: bool) {
        self.writing = None;
        if wanted {
            self.push(entry);
        }
    }

    fn push(&mut self, entry: Entry) {
        self.entries.push(Kept { entry, open: None, rows: None });
        self.news |= !self.follows;
    }

    /// Adds text that is still being written.
    fn write(&mut self, text: &str) {
        if self.writing.is_none() {
            self.push(Entry::Said { piece: Piece::default(), below: false });
            self.writing = Some(self.entries.len() - 1);
        }
        if let Some(Kept { entry: Entry::Said { piece, .. }, rows, .. }) = self.entries.last_mut() {
            piece.text.push_str(text);
            *rows = None;
        }
        self.news |= !self.follows;
        // A block can end only at a line end; a single line is split when it is complete.
        if text.contains('\n') {
            self.split_last();
        }
    }

    /// Adds a complete text. It replaces what was shown while it was being written.
    fn said(&mut self, text: &str) {
        if let Some(start) = self.writing.take() {
            self.entries.truncate(start);
            self.top = self.top.min(Place { entry: start, row: 0 });
        }
        if !text.trim().is_empty() {
            let piece = Piece { text: text.trim_end().to_owned(), ..Piece::default() };
            self.push(Entry::Said { piece, below: false });
            self.split_last();
        }
    }

    fn split_last(&mut self) {
        while let Some(Kept { entry: Entry::Said { piece, below }, rows, .. }) = self.entries.last_mut()
            && let Some(done) = piece.finished_part()
        {
            let (rest, below) = (std::mem::replace(piece, done), *below);
            *rows = None;
            self.push(Entry::Said { piece: rest, below });
        }
    }

    fn tool(&mut self, fact: &Fact, below: bool) {
        match fact {
            Fact::ToolCalled { name, detail, call } => {
                let (name, detail, edits) = (name.clone(), detail.clone(), call.edits.clone());
                self.push(Entry::Tool(Box::new(Tool { name, detail, edits, result: None, below })));
                let place = self.entries.len() - 1;
                match &call.id {
                    Some(id) if self.calls.len() < OPEN_CALLS => {
                        self.calls.insert(id.clone(), place);
                    }
                    Some(_) => {}
                    None => self.nameless.push_back(place),
                }
            }
            Fact::ToolReturned { text, failed, call } => {
                let result = Returned { text: text.clone(), failed: *failed };
                let place = match call {
                    Some(id) => self.calls.remove(id),
                    // Of calls without an id, the oldest returns first.
                    None => self.nameless.pop_front(),
                };
                match place.and_then(|place| self.entries.get_mut(place)) {
                    Some(Kept { entry: Entry::Tool(tool), rows, .. }) => {
                        tool.result = Some(result);
                        *rows = None;
                    }
                    Some(_) | None => {
                        let name = "result".to_owned();
                        let result = Some(result);
                        self.push(Entry::Tool(Box::new(Tool { name, result, below, ..Tool::default() })));
                    }
                }
            }
            _ => {}
        }
    }

    /// A subagent's conversation is indented; none of it is the answer.
    fn below(&mut self, fact: &Fact) {
        match fact {
            Fact::ToolCalled { .. } | Fact::ToolReturned { .. } => self.tool(fact, true),
            Fact::Said { text } if !text.trim().is_empty() => {
                let piece = Piece { text: text.trim_end().to_owned(), ..Piece::default() };
                self.push(Entry::Said { piece, below: true });
                self.split_last();
            }
            other => self.fact(other),
        }
    }
}

#[cfg(test)]
mod tests;
