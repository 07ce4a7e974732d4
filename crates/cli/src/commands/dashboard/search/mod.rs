//! `//words`: finds messages with certain words, in every conversation on the machine, while the words are typed.
//!
//! * This file: what was found, and what keys do with it. `searcher`: the search itself, in another thread. `draw`: how
//!   it looks.

mod draw;
mod searcher;

pub use draw::draw;
pub use searcher::{Heard, Searcher};

use super::input::Mode;
use super::keys::{Effect, Work};
use super::state::State;
use ostler_engine::search::{Hit, Hits, Next};
use ostler_tui::{Input, Key};

/// Shorter words are in nearly every message.
const SHORTEST: usize = 2;

/// A search that is being typed, and what was found.
pub struct Searching {
    pub input: Input,
    pub status: Status,
    pub hits: Vec<Hit>,
    pub picked: usize,
    /// The first visible hit.
    pub top: usize,
    /// How many hits are visible at once, as last drawn.
    pub height: usize,
    /// Whether the person is being asked to confirm its command.
    pub confirm: bool,
}

/// How far the search is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// There is no query.
    Nothing,
    Busy,
    /// Conversations are first read into the index: `read` of `all` bytes.
    Reads {
        read: u64,
        all: u64,
    },
    /// `complete`: whether all messages were searched, and not only the newest.
    Found {
        complete: bool,
        updating: bool,
    },
    Failed(String),
}

impl Searching {
    pub fn new() -> Searching {
        Searching {
            input: Input::new(""),
            status: Status::Nothing,
            hits: Vec::new(),
            picked: 0,
            top: 0,
            height: 1,
            confirm: false,
        }
    }

    pub fn hit(&self) -> Option<&Hit> {
        self.hits.get(self.picked)
    }

    fn step(&mut self, by: isize) {
        self.picked = self.picked.saturating_add_signed(by).min(self.hits.len().saturating_sub(1));
        self.settle();
    }

    /// Keeps the selected hit in view.
    pub fn settle(&mut self) {
        let height = self.height.max(1);
        self.top = self.top.min(self.picked).max((self.picked + 1).saturating_sub(height));
        self.top = self.top.min(self.hits.len().saturating_sub(height));
    }

    /// The input has changed: starts a search, if there is enough to search for.
    fn ask(&mut self) -> Vec<Effect> {
        let text = self.input.text().trim().to_owned();
        if text.chars().filter(|c| c.is_alphanumeric()).count() < SHORTEST {
            (self.status, self.hits, self.picked, self.top) = (Status::Nothing, Vec::new(), 0, 0);
            return Vec::new();
        }
        self.status = Status::Busy;
        vec![Effect::Search(self.input.text().to_owned())]
    }

    fn hear(&mut self, heard: Heard) {
        match heard {
            // A message about a search that is no longer wanted.
            Heard::Progress { .. } | Heard::Found { .. } if self.status == Status::Nothing => {}
            Heard::Progress { read, all } => self.status = Status::Reads { read, all },
            Heard::Found { text, .. } if text != self.input.text() => {}
            Heard::Found { found: Ok(Hits { hits, complete, updating, .. }), .. } => {
                self.status = Status::Found { complete, updating };
                (self.hits, self.picked, self.top, self.confirm) = (hits, 0, 0, false);
            }
            Heard::Found { found: Err(words), .. } => {
                (self.hits, self.confirm) = (Vec::new(), false);
                self.status = Status::Failed(words);
            }
        }
    }
}

impl State {
    /// Takes a message of the searcher.
    pub fn hear(&mut self, heard: Heard) {
        if let Mode::Search(searching) = &mut self.mode {
            searching.hear(heard);
        }
    }

    pub fn press_in_search(&mut self, key: Key) -> Vec<Effect> {
        let Mode::Search(searching) = &mut self.mode else { return Vec::new() };
        if searching.confirm {
            match key {
                Key::Text('y') => return self.go_to_hit(),
                Key::Text('n') | Key::Escape | Key::Interrupt => searching.confirm = false,
                _ => {}
            }
            return Vec::new();
        }
        let page = isize::try_from(searching.height).unwrap_or(1).max(1);
        match key {
            Key::Escape | Key::Interrupt => self.mode = Mode::List,
            Key::Backspace if searching.input.is_empty() => self.mode = Mode::List,
            Key::Down | Key::Tab => searching.step(1),
            Key::Up | Key::BackTab => searching.step(-1),
            Key::PageDown => searching.step(page),
            Key::PageUp => searching.step(-page),
            Key::WheelDown { .. } => searching.step(1),
            Key::WheelUp { .. } => searching.step(-1),
            // The hits begin below the header and the line that counts them.
            Key::Click { row, .. } => {
                let place = searching.top + usize::from(row.saturating_sub(2));
                if row >= 2 && place < searching.hits.len().min(searching.top + searching.height) {
                    searching.picked = place;
                }
            }
            Key::Enter => return self.go_to_hit(),
            Key::NewLine | Key::Pasted('\n') => {}
            other => {
                let before = searching.input.text().to_owned();
                searching.input.press(other);
                if searching.input.text() != before {
                    return searching.ask();
                }
            }
        }
        Vec::new()
    }

    /// Continues the selected conversation. What starts or moves something has to be confirmed first, with its command
    /// shown.
    fn go_to_hit(&mut self) -> Vec<Effect> {
        let Mode::Search(searching) = &mut self.mode else { return Vec::new() };
        let work = match searching.hit().map(|hit| hit.next.clone()) {
            None => return Vec::new(),
            Some(Next::Attach(id)) => return vec![Effect::Attach(id)],
            Some(Next::Doctor) => {
                self.complain("its session is damaged; see: ostler doctor");
                return Vec::new();
            }
            Some(Next::Resume(id)) => Work::Resume(vec![id]),
            Some(Next::Restore(id)) => Work::Restore(id),
            Some(Next::Adopt(native_id)) => Work::Adopt(native_id),
        };
        if !searching.confirm {
            searching.confirm = true;
            return Vec::new();
        }
        self.mode = Mode::List;
        self.filter.clear();
        self.list_again();
        vec![Effect::Work(work)]
    }
}
