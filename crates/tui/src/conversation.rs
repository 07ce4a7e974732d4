//! A conversation as a widget: it takes facts as they come, and draws the part of itself that is seen.
//!
//! Cost follows change. The rows of an entry are made when they are first seen and kept until the entry, the width or its
//! fold changes; where the view stands is an entry and a row in it, so that nothing above or below has to be measured.

use crate::entry::{Entry, Returned, Tone, Tool};
use crate::layout::{Look, rows};
use crate::pieces::Piece;
use crate::theme::Theme;
use ostler_core::fact::{Ask, Fact};
use ostler_core::limits::size;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::text::Line;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

/// The rows of so many entries are kept.
const KEPT: usize = 512;
/// A call whose result may still come; more than this are not open at once.
const OPEN_CALLS: usize = 1024;

/// Whether the chosen entry is the one before or behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choose {
    Before,
    Behind,
}

/// The first row that is seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    entry: usize,
    row: usize,
}

struct Kept {
    entry: Entry,
    /// Unfolded or folded by the person.
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
    /// The end is in view and stays there.
    follows: bool,
    top: Place,
    /// Something has come below what is seen.
    news: bool,
    /// To be brought into view with its first row.
    reveal: Option<usize>,
    /// Where the text begins that is still being written.
    writing: Option<usize>,
    /// Calls that have not come back: with a name, and without.
    calls: HashMap<String, usize>,
    nameless: VecDeque<usize>,
    /// The question that was shown last, and where it stands.
    asked: Option<(String, usize)>,
    /// The questions below which no answer stands yet.
    unanswered: Vec<String>,
    /// The question that waits for an answer now.
    open_question: Option<usize>,
    /// While the view follows the end, it does not move past the first row of the open question.
    held: bool,
    /// There is more below a view that is held.
    held_above_end: bool,
    columns: usize,
    height: usize,
    /// Entries whose rows are kept, the oldest first.
    kept: VecDeque<usize>,
    /// The entry in each row that was drawn.
    drawn: Vec<Option<usize>>,
}

impl Conversation {
    /// `folder`: where the session works; paths are shown from there.
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

    /// A person said this.
    pub fn told(&mut self, text: &str) {
        self.writing = None;
        self.push(Entry::Told(text.to_owned()));
    }

    /// A person answered a question.
    pub fn answered(&mut self, request: &str, by: &str, allowed: bool, always: Option<&str>) {
        self.unanswered.retain(|other| other != request);
        let always = always.map(str::to_owned);
        self.push(Entry::Answered { by: by.to_owned(), allowed, always });
    }

    /// The agent said or did this.
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
            Fact::Below(fact) => {
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
            Fact::PassedOver { bytes } => {
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
            Fact::NotOpened { reason } => self.end_with(Entry::Note(Tone::Bad, reason.clone()), true),
            Fact::Native { .. }
            | Fact::Transcript { .. }
            | Fact::Ready
            | Fact::Behind { .. }
            | Fact::Recalled { .. }
            | Fact::Opened { .. }
            | Fact::Owed { .. }
            | Fact::TurnStarted
            | Fact::Background { .. }
            | Fact::Unknown { .. } => {}
        }
    }

    /// A line of ours, as the agent's would stand there.
    pub fn note(&mut self, text: &str) {
        self.push(Entry::Note(Tone::Quiet, text.to_owned()));
    }

    /// What the session asks now. It is shown in full, unless it is the last question that was shown: the person who
    /// answers must see it. Only this decides what is kept in view; a question of the past is a part of the text.
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
        }
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

    /// Text that is still being written.
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
        // A block can only have ended where a line has; one line alone is cut when it is whole.
        if text.contains('\n') {
            self.split_last();
        }
    }

    /// A whole text. What was shown of it while it was being written is replaced by it.
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
                    // Of calls without a name the oldest comes back first.
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

    /// A subagent's conversation stands at the side; none of it is the answer.
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

    // What the person does to it.

    /// Unfolds or folds the chosen entry, or the last one that is seen and can be.
    pub fn toggle(&mut self) {
        let seen = self.drawn.iter().rev().flatten().copied().find(|entry| self.folds(*entry));
        let target = self.chosen.or(seen).or_else(|| (0..self.entries.len()).rev().find(|entry| self.folds(*entry)));
        if let Some(target) = target {
            self.toggle_entry(target);
        }
    }

    /// Unfolds everything, or folds it again.
    pub fn toggle_all(&mut self) {
        self.all_open = !self.all_open;
        for kept in &mut self.entries {
            kept.open = None;
            if kept.entry.folds() {
                kept.rows = None;
            }
        }
    }

    /// Unfolds or folds what stands in this row of the area it was drawn in. Says whether there was anything.
    pub fn click(&mut self, row: usize) -> bool {
        let target = self.drawn.get(row).copied().flatten().filter(|entry| self.folds(*entry));
        if let Some(target) = target {
            self.toggle_entry(target);
        }
        target.is_some()
    }

    fn toggle_entry(&mut self, target: usize) {
        let open = self.is_open(target);
        if let Some(kept) = self.entries.get_mut(target) {
            kept.open = Some(!open);
            kept.rows = None;
        }
        if !open && self.follows {
            self.reveal = Some(target);
        }
    }

    /// Chooses another tool call.
    pub fn choose(&mut self, which: Choose) {
        let is_tool = |place: &usize| matches!(self.entries[*place].entry, Entry::Tool(_));
        let last_seen = self.drawn.iter().rev().flatten().copied().next();
        let next = match (which, self.chosen) {
            (Choose::Before, Some(chosen)) => (0..chosen).rev().find(is_tool),
            (Choose::Before, None) => (0..last_seen.map_or(0, |seen| seen + 1)).rev().find(is_tool),
            (Choose::Behind, Some(chosen)) => (chosen + 1..self.entries.len()).find(is_tool),
            (Choose::Behind, None) => None,
        };
        let before = self.chosen;
        match which {
            Choose::Before => self.chosen = next.or(before),
            // Behind the last one nothing is chosen.
            Choose::Behind => self.chosen = next,
        }
        for place in [before, self.chosen].into_iter().flatten() {
            self.entries[place].rows = None;
        }
        match self.chosen {
            Some(chosen) if !self.drawn.contains(&Some(chosen)) => {
                (self.top, self.follows) = (Place { entry: chosen, row: 0 }, false);
            }
            Some(_) => {}
            None => self.to_end(),
        }
    }

    pub fn scroll_up(&mut self, rows: usize) {
        let start = self.first_row();
        let mut place = start;
        let mut left = rows;
        while left > 0 {
            if place.row >= left {
                place.row -= left;
                break;
            }
            left -= place.row;
            if place.entry == 0 {
                place.row = 0;
                break;
            }
            place.entry -= 1;
            place.row = self.rows_of(place.entry).len();
        }
        if self.follows && place == start {
            return;
        }
        (self.top, self.follows, self.held, self.reveal) = (place, false, false, None);
    }

    pub fn scroll_down(&mut self, rows: usize) {
        let mut place = self.first_row();
        if self.follows && place == self.end_place() {
            return;
        }
        (self.follows, self.held) = (false, false);
        let mut left = rows;
        while left > 0 && place.entry < self.entries.len() {
            let below = self.rows_of(place.entry).len() - place.row;
            if below > left {
                place.row += left;
                break;
            }
            left -= below;
            place = Place { entry: place.entry + 1, row: 0 };
        }
        self.top = place;
        self.follow_at_the_end();
    }

    pub fn page_up(&mut self) {
        self.scroll_up(self.page());
    }

    pub fn page_down(&mut self) {
        self.scroll_down(self.page());
    }

    /// Two rows are seen before and after: over one of them may stand that there is more below.
    fn page(&self) -> usize {
        self.height.saturating_sub(2).max(1)
    }

    pub fn to_start(&mut self) {
        if self.end_place() > Place::default() {
            (self.top, self.follows, self.held, self.reveal) = (Place::default(), false, false, None);
        }
    }

    pub fn to_end(&mut self) {
        (self.follows, self.news, self.held, self.held_above_end, self.reveal) = (true, false, false, false, None);
    }

    /// Whether the end is in view.
    #[must_use]
    pub fn follows(&self) -> bool {
        self.follows && !self.held_above_end
    }

    /// Whether something has come below what is seen.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.news
    }

    // How it is drawn.

    /// Draws the part that is seen. Where there is less than the area has room for, it stands at the bottom.
    pub fn render(&mut self, area: Rect, buffer: &mut Buffer) {
        self.measure(area);
        if let Some(reveal) = self.reveal.take().filter(|place| *place < self.entries.len()) {
            let gap = usize::from(self.has_gap(reveal));
            let first = Place { entry: reveal, row: gap };
            if self.end_place() > first {
                (self.top, self.follows, self.news) = (first, false, true);
            }
        }
        if !self.follows {
            self.follow_at_the_end();
        }
        let mut place = self.first_row();
        let end = self.end_place();
        self.held_above_end = self.follows && place < end;
        // A question that is in view at the end stays in view when more comes below it.
        self.held |= self.follows && self.question_row().is_some_and(|question| question >= end);
        let mut lines: Vec<(Option<usize>, Line<'static>)> = Vec::with_capacity(self.height);
        while lines.len() < self.height && place.entry < self.entries.len() {
            let rows = self.rows_of(place.entry);
            let room = self.height - lines.len();
            // The free row before an entry belongs to nothing that could be unfolded.
            let gap = usize::from(self.has_gap(place.entry));
            let seen = rows.iter().enumerate().skip(place.row).take(room);
            lines.extend(seen.map(|(row, line)| ((row >= gap).then_some(place.entry), line.clone())));
            place = Place { entry: place.entry + 1, row: 0 };
        }
        let free = self.height - lines.len();
        self.drawn = vec![None; free];
        for (number, (entry, line)) in lines.into_iter().enumerate() {
            self.drawn.push(entry);
            // Both are less than the height of the area.
            let y = area.y + u16::try_from(free + number).unwrap_or(u16::MAX);
            buffer.set_line(area.x, y, &line, area.width);
        }
        self.forget_far();
    }

    fn measure(&mut self, area: Rect) {
        self.height = usize::from(area.height);
        if self.columns != usize::from(area.width) {
            self.columns = usize::from(area.width);
            for place in self.kept.drain(..) {
                if let Some(kept) = self.entries.get_mut(place) {
                    kept.rows = None;
                }
            }
        }
        self.top.entry = self.top.entry.min(self.entries.len());
        if self.top.entry < self.entries.len() {
            let last = self.rows_of(self.top.entry).len().saturating_sub(1);
            self.top.row = self.top.row.min(last);
        }
    }

    /// The first row of a view that shows the end.
    fn end_place(&mut self) -> Place {
        let (mut entry, mut left) = (self.entries.len(), self.height);
        while left > 0 && entry > 0 {
            entry -= 1;
            let rows = self.rows_of(entry).len();
            if rows >= left {
                return Place { entry, row: rows - left };
            }
            left -= rows;
        }
        Place { entry, row: 0 }
    }

    /// The first row of the view.
    fn first_row(&mut self) -> Place {
        if !self.follows {
            return self.top;
        }
        let end = self.end_place();
        self.question_row().filter(|_| self.held).map_or(end, |question| question.min(end))
    }

    /// The first row of the open question.
    fn question_row(&self) -> Option<Place> {
        let entry = self.open_question?;
        Some(Place { entry, row: usize::from(self.has_gap(entry)) })
    }

    fn follow_at_the_end(&mut self) {
        let end = self.end_place();
        if self.top >= end {
            (self.follows, self.news, self.held) = (true, false, false);
        }
    }

    fn folds(&self, place: usize) -> bool {
        self.entries.get(place).is_some_and(|kept| kept.entry.folds())
    }

    fn is_open(&self, place: usize) -> bool {
        self.entries.get(place).and_then(|kept| kept.open).unwrap_or(self.all_open)
    }

    fn has_gap(&self, place: usize) -> bool {
        let before = place.checked_sub(1).and_then(|before| self.entries.get(before));
        match (before, self.entries.get(place)) {
            (Some(before), Some(kept)) => kept.entry.stands_apart_from(&before.entry),
            (None, _) | (_, None) => false,
        }
    }

    fn rows_of(&mut self, place: usize) -> Rc<[Line<'static>]> {
        let open = self.is_open(place);
        let gap = self.has_gap(place);
        let Some(kept) = self.entries.get_mut(place) else {
            return Rc::from([]);
        };
        if let Some(rows) = &kept.rows {
            return Rc::clone(rows);
        }
        let chosen = self.chosen == Some(place);
        let look = Look { columns: self.columns.max(1), theme: self.theme, open, chosen, folder: &self.folder };
        let mut lines = if gap { vec![Line::default()] } else { Vec::new() };
        lines.extend(rows(&kept.entry, &look));
        let lines: Rc<[Line<'static>]> = Rc::from(lines);
        kept.rows = Some(Rc::clone(&lines));
        if self.kept.back() != Some(&place) {
            self.kept.push_back(place);
        }
        lines
    }

    /// Of a long conversation only the rows around the view are kept.
    fn forget_far(&mut self) {
        while self.kept.len() > KEPT {
            let Some(place) = self.kept.pop_front() else { return };
            if !self.drawn.contains(&Some(place))
                && let Some(kept) = self.entries.get_mut(place)
            {
                kept.rows = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_core::fact::{Call, Edit};
    use proptest::prelude::*;

    fn new() -> Conversation {
        Conversation::new(Theme { colour: true }, "/work")
    }

    fn said(text: &str) -> Fact {
        Fact::Said { text: text.to_owned() }
    }

    fn saying(text: &str) -> Fact {
        Fact::Saying { text: text.to_owned() }
    }

    fn called(id: &str, detail: &str) -> Fact {
        let call = Call { id: Some(id.to_owned()), edits: Vec::new() };
        Fact::ToolCalled { name: "Bash".to_owned(), detail: detail.to_owned(), call }
    }

    fn returned(id: &str, text: &str) -> Fact {
        Fact::ToolReturned { text: text.to_owned(), failed: false, call: Some(id.to_owned()) }
    }

    /// The rows that are seen, without the free ones above.
    fn seen(conversation: &mut Conversation, columns: u16, rows: u16) -> Vec<String> {
        let area = Rect::new(0, 0, columns, rows);
        let mut buffer = Buffer::empty(area);
        conversation.render(area, &mut buffer);
        let text = |y: u16| (0..columns).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        let rows: Vec<String> = (0..rows).map(text).collect();
        let begin = rows.iter().position(|row| !row.is_empty()).unwrap_or(rows.len());
        rows[begin..].to_vec()
    }

    #[test]
    fn text_that_is_written_piece_by_piece_becomes_the_whole_text_once() {
        let mut conversation = new();
        conversation.told("hi");
        ["Some ", "**bo", "ld** wor"].iter().for_each(|text| conversation.fact(&saying(text)));
        assert_eq!(seen(&mut conversation, 40, 9), ["› hi", "", "Some bold wor"]);
        conversation.fact(&said("Some **bold** words"));
        assert_eq!(seen(&mut conversation, 40, 9), ["› hi", "", "Some bold words"]);
        conversation.fact(&said("More"));
        assert_eq!(seen(&mut conversation, 40, 9), ["› hi", "", "Some bold words", "", "More"]);
    }

    #[test]
    fn a_result_belongs_to_the_call_that_it_names() {
        let mut conversation = new();
        conversation.fact(&called("a", "first"));
        conversation.fact(&called("b", "cat /work/second"));
        conversation.fact(&returned("b", "one\ntwo"));
        assert_eq!(seen(&mut conversation, 40, 9), ["● Bash first …", "● Bash cat second ▸ 2 lines"]);
        conversation.toggle();
        assert_eq!(seen(&mut conversation, 40, 9)[1..], ["● Bash cat second ▾ 2 lines", "  │ one", "  │ two"]);
        conversation.fact(&returned("a", "done"));
        assert_eq!(seen(&mut conversation, 40, 9)[0], "● Bash first ▸ 1 line");
        conversation.toggle_all();
        assert_eq!(seen(&mut conversation, 40, 9).len(), 5);
    }

    #[test]
    fn an_edit_is_shown_as_what_it_changes_and_a_long_one_in_part() {
        let mut conversation = new();
        let new: String = (0..30).map(|n| format!("line {n}\n")).collect();
        let edits = vec![Edit { path: "/work/src/x.rs".to_owned(), old: String::new(), new }];
        let call = Call { id: None, edits };
        let (name, detail) = ("Write".to_owned(), "/work/src/x.rs".to_owned());
        conversation.fact(&Fact::ToolCalled { name, detail, call });
        let rows = seen(&mut conversation, 40, 50);
        assert_eq!((rows[0].as_str(), rows[1].as_str()), ("● Write src/x.rs +30 -0 …", "  + line 0"));
        assert_eq!((rows.len(), rows[13].as_str()), (14, "  … 18 more lines"));
        conversation.toggle();
        assert_eq!(seen(&mut conversation, 40, 50).len(), 31);
    }

    #[test]
    fn the_view_stays_where_it_is_while_text_comes_and_follows_at_the_end() {
        let mut conversation = new();
        (0..50).for_each(|n| conversation.fact(&said(&format!("text {n}"))));
        assert_eq!(seen(&mut conversation, 40, 5).last().map(String::as_str), Some("text 49"));
        conversation.page_up();
        let before = seen(&mut conversation, 40, 5);
        conversation.fact(&said("news"));
        assert_eq!(seen(&mut conversation, 40, 5), before);
        assert!(conversation.has_news() && !conversation.follows());
        conversation.scroll_down(100);
        assert_eq!(seen(&mut conversation, 40, 5).last().map(String::as_str), Some("news"));
        assert!(!conversation.has_news() && conversation.follows());
        conversation.to_start();
        assert_eq!(seen(&mut conversation, 40, 5)[0], "text 0");
        // Every row is passed on the way down, in any window.
        let mut passed = std::collections::BTreeSet::new();
        while !conversation.follows() {
            passed.extend(seen(&mut conversation, 9, 4));
            conversation.page_down();
        }
        passed.extend(seen(&mut conversation, 9, 4));
        assert_eq!(passed.iter().filter(|row| row.starts_with("text")).count(), 50);
    }

    #[test]
    fn a_question_that_does_not_fit_is_shown_from_its_beginning() {
        let mut conversation = new();
        conversation.fact(&said("before"));
        let command: String = (0..40).map(|n| format!("command {n}\n")).collect();
        let ask: Ask = serde_json::from_value(serde_json::json!({
            "request": "r", "tool": "Bash", "input": { "command": command }, "text": "",
        }))
        .unwrap_or_else(|error| unreachable!("{error}"));
        conversation.fact(&Fact::Asked(ask.clone()));
        conversation.asks(Some(&ask));
        let rows = seen(&mut conversation, 60, 10);
        assert!(rows[0].starts_with("? asks Bash (41 lines"), "{rows:?}");
        assert!(rows[1].contains("command 0") && !conversation.follows());
        conversation.asks(Some(&ask));
        conversation.to_end();
        assert!(seen(&mut conversation, 60, 10).iter().any(|row| row.contains("command 39")));
        assert!(conversation.follows());
    }

    #[test]
    fn a_question_that_ends_without_an_answer_says_so_and_an_answered_one_does_not() {
        let mut conversation = new();
        let end = || {
            let end = serde_json::from_value(serde_json::json!({ "verdict": "interrupted" }));
            Fact::TurnEnded(end.unwrap_or_else(|error| unreachable!("{error}")))
        };
        conversation.fact(&Fact::Asked(ask("a")));
        conversation.answered("a", "root", true, None);
        conversation.fact(&end());
        let unanswered = |conversation: &mut Conversation| {
            seen(conversation, 60, 30).iter().filter(|row| row.contains("not answered")).count()
        };
        assert_eq!(unanswered(&mut conversation), 0);
        conversation.fact(&Fact::Asked(ask("b")));
        conversation.fact(&end());
        conversation.fact(&end());
        assert_eq!(unanswered(&mut conversation), 1);
        conversation.fact(&Fact::Asked(ask("c")));
        conversation.fact(&Fact::AskClosed { request: "c".to_owned() });
        conversation.fact(&end());
        assert_eq!(unanswered(&mut conversation), 2);
    }

    #[test]
    fn a_call_that_has_not_come_back_is_unfolded_too() {
        let mut conversation = new();
        conversation.fact(&called("a", "a long command that does not fit"));
        seen(&mut conversation, 20, 9);
        conversation.toggle();
        let rows = seen(&mut conversation, 20, 9);
        assert!(rows.len() > 2 && rows.last().is_some_and(|row| row == "  no result yet"), "{rows:?}");
        assert!(rows.iter().any(|row| row.contains("fit")), "{rows:?}");
    }

    #[test]
    fn why_an_edit_failed_stands_apart_from_what_it_would_have_changed() {
        let mut conversation = new();
        let edits = vec![Edit { path: "/work/x".to_owned(), old: String::new(), new: "one\n".to_owned() }];
        let call = Call { id: None, edits };
        conversation.fact(&Fact::ToolCalled { name: "Write".to_owned(), detail: "/work/x".to_owned(), call });
        let text = "Permission denied: read-only".to_owned();
        conversation.fact(&Fact::ToolReturned { text, failed: true, call: None });
        assert_eq!(seen(&mut conversation, 90, 9)[0], "✘ Write x +1 -0 Permission denied: read-only");
    }

    fn ask(request: &str) -> Ask {
        let command = format!("run {request}");
        serde_json::from_value(serde_json::json!({
            "request": request, "tool": "Bash", "input": { "command": command }, "text": "",
        }))
        .unwrap_or_else(|error| unreachable!("{error}"))
    }

    #[test]
    fn a_view_that_nobody_scrolled_shows_the_end_behind_a_question_of_the_past() {
        let mut conversation = new();
        conversation.fact(&Fact::Asked(ask("old")));
        conversation.answered("old", "root", true, None);
        (0..50).for_each(|n| conversation.fact(&said(&format!("text {n}"))));
        conversation.asks(None);
        assert_eq!(seen(&mut conversation, 40, 5).last().map(String::as_str), Some("text 49"));
        assert!(conversation.follows() && !conversation.has_news());
    }

    #[test]
    fn the_open_question_stays_in_view_until_it_is_answered_or_the_person_scrolls() {
        let mut conversation = new();
        let asked = |rows: &[String]| rows.iter().any(|row| row.contains("run now"));
        (0..50).for_each(|n| conversation.fact(&said(&format!("text {n}"))));
        conversation.fact(&Fact::Asked(ask("now")));
        conversation.asks(Some(&ask("now")));
        assert!(asked(&seen(&mut conversation, 40, 5)) && conversation.follows());
        (0..9).for_each(|n| conversation.fact(&Fact::Below(Box::new(said(&format!("below {n}"))))));
        conversation.asks(Some(&ask("now")));
        assert!(asked(&seen(&mut conversation, 40, 5)) && !conversation.follows());
        conversation.page_down();
        assert!(!asked(&seen(&mut conversation, 40, 5)));
        conversation.to_end();
        assert_eq!(seen(&mut conversation, 40, 5).last().map(String::as_str), Some("  │ below 8"));
        // The person who comes back to it has it in view again, and the end once it is answered.
        conversation.scroll_up(20);
        conversation.asks(Some(&ask("next")));
        assert!(!seen(&mut conversation, 40, 5).iter().any(|row| row.contains("run next")));
        conversation.to_end();
        assert!(seen(&mut conversation, 40, 5).iter().any(|row| row.contains("run next")));
        (0..9).for_each(|n| conversation.fact(&Fact::Below(Box::new(said(&format!("more {n}"))))));
        assert!(seen(&mut conversation, 40, 5).iter().any(|row| row.contains("run next")));
        conversation.asks(None);
        assert_eq!(seen(&mut conversation, 40, 5).last().map(String::as_str), Some("  │ more 8"));
        assert!(conversation.follows());
    }

    #[test]
    fn only_what_is_seen_of_a_long_conversation_is_laid_out() {
        let mut conversation = new();
        for n in 0..20_000 {
            conversation.fact(&called(&n.to_string(), "work"));
            conversation.fact(&returned(&n.to_string(), &"output\n".repeat(100)));
            conversation.fact(&said("A *text* of some words."));
        }
        seen(&mut conversation, 80, 50);
        let laid_out = |conversation: &Conversation| conversation.entries.iter().filter(|e| e.rows.is_some()).count();
        assert!(laid_out(&conversation) <= 60, "{}", laid_out(&conversation));
        for _ in 0..100 {
            conversation.page_up();
            seen(&mut conversation, 80, 50);
        }
        assert!(laid_out(&conversation) <= KEPT + 60, "{}", laid_out(&conversation));
    }

    fn facts() -> impl Strategy<Value = Vec<Fact>> {
        let text = prop_oneof![
            any::<String>(),
            "([a-z #*`>|\\-\\[\\]()!_~\n]|```|\\| a \\|\n|\\|-\\|\n|    ){0,60}",
            prop::sample::select(vec![
                "\x1b[2J",
                "\u{9b}31m",
                "a\u{202e}b",
                "\u{200d}",
                "e\u{301}",
                "👩‍👩‍👧",
                "表\t\r\n\0"
            ])
            .prop_map(str::to_owned),
        ];
        let fact = (0..7u8, text).prop_map(|(kind, text)| match kind {
            0 => saying(&text),
            1 => said(&text),
            2 => called("x", &text),
            3 => returned("x", &text),
            4 => Fact::Thought { text },
            5 => Fact::Below(Box::new(said(&text))),
            _ => Fact::NotOpened { reason: text },
        });
        prop::collection::vec(fact, 0..12)
    }

    proptest! {
        #[test]
        fn no_text_of_an_agent_breaks_the_view_or_gets_out_unclean(facts in facts(), columns in 1u16..100, rows in 0u16..30) {
            let mut conversation = new();
            for fact in &facts {
                conversation.fact(fact);
                conversation.toggle_all();
                let area = Rect::new(0, 0, columns, rows);
                let mut buffer = Buffer::empty(area);
                conversation.render(area, &mut buffer);
                conversation.scroll_up(3);
                conversation.scroll_down(1);
                for cell in &buffer.content {
                    let harmful = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
                    prop_assert!(!cell.symbol().chars().any(harmful), "{:?}", cell.symbol());
                }
            }
        }
    }
}
