//! What the dashboard shows and what keys mean, without a terminal and without sessions: events in, effects out.
//!
//! * [`State`]: the sessions, which of them are listed, which one is selected.
//! * `keys`: what a key does. `input`: the lines and panels that are filled in.

use super::input::{Form, Mode};
use super::row::{Need, Row};
use jiff::Timestamp;
use ostler_core::id::SessionId;
use ostler_tui::{Input, Rect, Theme};
use std::collections::{BTreeMap, BTreeSet};

/// Below `LIST_ONLY` columns there is only the list; from `TWO_COLUMNS` on, list and preview are side by side.
const LIST_ONLY: u16 = 50;
const TWO_COLUMNS: u16 = 100;
/// With fewer rows than this the window is not divided.
const ROOM_FOR_TWO: u16 = 12;
/// The lines above a preview that describe its session.
pub const PREVIEW_HEAD: u16 = 2;

/// One line of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    Head(Need, usize),
    Session(SessionId),
    /// The sessions that have ended, folded or not.
    Fold(usize),
    /// Sessions that ended earlier than the list goes back.
    Older(usize),
}

/// What is selected in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    Session(SessionId),
    Fold,
}

/// Shown until the next key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub text: String,
    pub bad: bool,
}

/// Where each part is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Areas {
    pub list: Rect,
    /// The line between list and preview: a column or a row.
    pub rule: Rect,
    /// Including the lines that describe its session.
    pub preview: Rect,
}

/// How many sessions there are of each kind, counted as they change: a frame costs the same with ten sessions and with
/// ten thousand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    needs: [usize; Need::ALL.len()],
    asking: usize,
}

impl Tally {
    fn add(&mut self, row: &Row) {
        self.needs[row.need as usize] += 1;
        self.asking += usize::from(row.is_asking());
    }

    fn take(&mut self, row: &Row) {
        self.needs[row.need as usize] -= 1;
        self.asking -= usize::from(row.is_asking());
    }
}

pub struct State {
    pub rows: BTreeMap<SessionId, Row>,
    tally: Tally,
    pub lines: Vec<Line>,
    pub picked: Option<Pick>,
    /// The first visible line.
    pub top: usize,
    pub older: usize,
    /// Ended sessions that are not read yet, only counted.
    pub unread: usize,
    pub unfolded: bool,
    /// Jobs whose children are listed below them.
    pub open_jobs: BTreeSet<SessionId>,
    /// Only matching sessions are listed.
    pub filter: Input,
    pub marked: BTreeSet<SessionId>,
    pub mode: Mode,
    /// A new session that was described and has not started.
    pub form: Option<Box<Form>>,
    /// Messages that could not be sent.
    pub unsent: BTreeMap<Vec<SessionId>, String>,
    /// Messages that were sent from here, for the up arrow.
    pub sent: Vec<String>,
    /// The preview has the whole window.
    pub peek: bool,
    pub said: Option<Said>,
    /// Rows and columns.
    pub size: (u16, u16),
    pub theme: Theme,
    pub now: Timestamp,
    /// The verbs that are being done.
    pub busy: Vec<String>,
    /// Exits as soon as they are done.
    pub leaving: bool,
}

impl State {
    pub fn new(theme: Theme, size: (u16, u16), now: Timestamp) -> State {
        State {
            rows: BTreeMap::new(),
            tally: Tally::default(),
            lines: Vec::new(),
            picked: None,
            top: 0,
            older: 0,
            unread: 0,
            unfolded: false,
            open_jobs: BTreeSet::new(),
            filter: Input::new(""),
            marked: BTreeSet::new(),
            mode: Mode::List,
            form: None,
            unsent: BTreeMap::new(),
            sent: Vec::new(),
            peek: false,
            said: None,
            size,
            theme,
            now,
            busy: Vec::new(),
            leaving: false,
        }
    }

    // Sessions that appear, change and disappear.

    /// Sets all sessions, except `unread` ended ones, which are only counted.
    pub fn fill(&mut self, rows: impl IntoIterator<Item = Row>, unread: usize, older: usize) {
        self.rows = rows.into_iter().map(|row| (row.id, row)).collect();
        self.tally = Tally::default();
        self.rows.values().for_each(|row| self.tally.add(row));
        (self.unread, self.older) = (unread, older);
        self.list_again();
    }

    /// Adds these sessions, or updates them.
    pub fn put(&mut self, rows: impl IntoIterator<Item = Row>) {
        let mut moved = false;
        for row in rows {
            self.notice_question(&row);
            self.tally.add(&row);
            let (need, since) = (row.need, row.since);
            let before = self.rows.insert(row.id, row);
            before.iter().for_each(|before| self.tally.take(before));
            // Only these fields decide the place in the list, unless the list is filtered.
            moved |=
                !self.filter.is_empty() || before.is_none_or(|before| before.need != need || before.since != since);
        }
        if moved {
            self.list_again();
        }
    }

    /// Adds the sessions that were only counted.
    pub fn put_rest(&mut self, rows: impl IntoIterator<Item = Row>) {
        self.unread = 0;
        self.put(rows);
        self.list_again();
    }

    /// Removes a session that was archived or purged.
    pub fn remove(&mut self, id: SessionId) {
        if let Some(row) = self.rows.remove(&id) {
            self.tally.take(&row);
            self.marked.remove(&id);
            self.list_again();
        }
    }

    pub fn row(&self) -> Option<&Row> {
        match self.picked {
            Some(Pick::Session(id)) => self.rows.get(&id),
            Some(Pick::Fold) | None => None,
        }
    }

    pub fn count(&self, need: Need) -> usize {
        self.tally.needs[need as usize]
    }

    /// How many sessions wait for an answer.
    pub fn asking(&self) -> usize {
        self.tally.asking
    }

    /// The sessions that a verb is applied to: the marked ones, otherwise the selected one.
    pub fn meant(&self) -> Vec<SessionId> {
        if self.marked.is_empty() {
            self.row().map(|row| row.id).into_iter().collect()
        } else {
            self.marked.iter().copied().collect()
        }
    }

    // The list.

    pub fn list_again(&mut self) {
        let place = self.place();
        let words: Vec<String> = self.filter.text().to_lowercase().split_whitespace().map(str::to_owned).collect();
        let filtered = !words.is_empty();
        let mut groups: BTreeMap<Need, Vec<&Row>> = BTreeMap::new();
        let mut children: BTreeMap<SessionId, Vec<&Row>> = BTreeMap::new();
        for row in self.rows.values().filter(|row| !filtered || row.matches(&words)) {
            match row.of.filter(|job| !filtered && !row.is_asking() && self.rows.contains_key(job)) {
                Some(job) => children.entry(job).or_default().push(row),
                None => groups.entry(row.need).or_default().push(row),
            }
        }
        children.values_mut().for_each(|below| below.sort_by_key(|row| (row.created, row.id)));
        if self.unread > 0 && !filtered {
            groups.entry(Need::Ended).or_default();
        }
        let mut lines = Vec::new();
        for (need, mut rows) in groups {
            let folded = need == Need::Ended && !filtered;
            let all = rows.len() + if folded { self.unread } else { 0 };
            lines.push(if folded { Line::Fold(all) } else { Line::Head(need, all) });
            if !folded || self.unfolded {
                rows.sort_by_cached_key(|row| row.order());
                for row in rows {
                    lines.push(Line::Session(row.id));
                    let open = children.get(&row.id).filter(|_| self.open_jobs.contains(&row.id));
                    lines.extend(open.into_iter().flatten().map(|child| Line::Session(child.id)));
                }
            }
        }
        if self.older > 0 && !filtered {
            lines.push(Line::Older(self.older));
        }
        self.lines = lines;
        // The selection stays. If its line is gone, the line that is now in its place is selected.
        if self.place_of(self.picked).is_none() {
            let place = place.unwrap_or(0).min(self.lines.len().saturating_sub(1));
            self.picked = self.pick_at(place, 1).or_else(|| self.pick_at(place, -1));
        }
        self.settle();
    }

    /// Lists the children of the selected job below it, or hides them. On a child, its job is folded.
    pub fn unfold_job(&mut self, open: bool) {
        let Some((id, of, job)) = self.row().map(|row| (row.id, row.of, row.job)) else { return };
        match (job, of, open) {
            (true, _, true) => drop(self.open_jobs.insert(id)),
            (true, _, false) => drop(self.open_jobs.remove(&id)),
            (false, Some(job), false) => {
                self.open_jobs.remove(&job);
                self.picked = Some(Pick::Session(job));
            }
            (false, _, _) => return,
        }
        self.list_again();
    }

    /// Whether a session is listed below its job.
    pub fn is_below(&self, row: &Row) -> bool {
        row.of.is_some_and(|job| self.open_jobs.contains(&job)) && !row.is_asking()
    }

    fn pick_of(line: Line) -> Option<Pick> {
        match line {
            Line::Session(id) => Some(Pick::Session(id)),
            Line::Fold(_) => Some(Pick::Fold),
            Line::Head(..) | Line::Older(_) => None,
        }
    }

    fn place_of(&self, pick: Option<Pick>) -> Option<usize> {
        let pick = pick?;
        self.lines.iter().position(|line| State::pick_of(*line) == Some(pick))
    }

    /// The index of the selected line.
    pub fn place(&self) -> Option<usize> {
        self.place_of(self.picked)
    }

    /// The first line that can be selected, from this line on in this direction.
    fn pick_at(&self, place: usize, step: isize) -> Option<Pick> {
        let mut place = Some(place);
        while let Some(line) = place.and_then(|place| self.lines.get(place)) {
            if let Some(pick) = State::pick_of(*line) {
                return Some(pick);
            }
            place = place.and_then(|place| place.checked_add_signed(step));
        }
        None
    }

    /// Moves the selection by this many lines, at most to the last one.
    pub fn step(&mut self, by: isize) {
        let last = self.lines.len().saturating_sub(1);
        let from = self.place().unwrap_or(0);
        let target = from.saturating_add_signed(by).min(last);
        let direction = by.signum();
        let found = self.pick_at(target, direction).or_else(|| self.pick_at(target, -direction));
        self.picked = found.or(self.picked);
        self.settle();
    }

    pub fn select_first(&mut self) {
        self.picked = self.pick_at(0, 1).or(self.picked);
        self.settle();
    }

    pub fn select_last(&mut self) {
        self.picked = self.pick_at(self.lines.len().saturating_sub(1), -1).or(self.picked);
        self.settle();
    }

    pub fn select(&mut self, pick: Pick) {
        if self.place_of(Some(pick)).is_some() {
            self.picked = Some(pick);
            self.settle();
        }
    }

    /// Selects the next session that needs attention, after the selected one.
    pub fn next_need(&mut self, step: isize) {
        let needs: Vec<SessionId> = self.listed().filter(|row| row.need == Need::You).map(|row| row.id).collect();
        let now = needs.iter().position(|id| Some(Pick::Session(*id)) == self.picked);
        let next = match now {
            Some(now) => (now as isize + step).rem_euclid(needs.len() as isize) as usize,
            None => 0,
        };
        match needs.get(next) {
            Some(id) => self.select(Pick::Session(*id)),
            None => self.say("nothing needs you"),
        }
    }

    /// The sessions of the list, in its order.
    pub fn listed(&self) -> impl Iterator<Item = &Row> {
        self.lines.iter().filter_map(|line| match line {
            Line::Session(id) => self.rows.get(id),
            Line::Head(..) | Line::Fold(_) | Line::Older(_) => None,
        })
    }

    /// The visible lines.
    pub fn seen(&self) -> &[Line] {
        let height = usize::from(self.areas().list.height);
        let end = (self.top + height).min(self.lines.len());
        self.lines.get(self.top..end).unwrap_or_default()
    }

    /// The visible sessions.
    pub fn seen_rows(&self) -> impl Iterator<Item = &Row> {
        self.seen().iter().filter_map(|line| match line {
            Line::Session(id) => self.rows.get(id),
            Line::Head(..) | Line::Fold(_) | Line::Older(_) => None,
        })
    }

    /// Keeps the selected line in view, and the head of its group if that is the line before.
    pub fn settle(&mut self) {
        let height = usize::from(self.areas().list.height);
        if height == 0 {
            return;
        }
        if let Some(place) = self.place() {
            let first = if place > 0 && matches!(self.lines[place - 1], Line::Head(..)) && height > 1 {
                place - 1
            } else {
                place
            };
            self.top = self.top.min(first).max((place + 1).saturating_sub(height));
        }
        self.top = self.top.min(self.lines.len().saturating_sub(height));
    }

    // The window.

    pub fn resize(&mut self, size: (u16, u16)) {
        self.size = size;
        self.settle();
    }

    /// The first row is the header, the last row shows what can be done.
    pub fn areas(&self) -> Areas {
        let (rows, columns) = self.size;
        let body = Rect::new(0, 1.min(rows), columns, rows.saturating_sub(2));
        let nothing = Rect::new(0, 0, 0, 0);
        if self.peek {
            return Areas { list: nothing, rule: nothing, preview: body };
        }
        if columns < LIST_ONLY || (columns < TWO_COLUMNS && body.height < ROOM_FOR_TWO) {
            return Areas { list: body, rule: nothing, preview: nothing };
        }
        if columns < TWO_COLUMNS {
            // The list has the rows that it needs, at most half of them.
            let needed = u16::try_from(self.lines.len()).unwrap_or(u16::MAX).max(3);
            let height = needed.min(body.height / 2);
            let list = Rect { height, ..body };
            let rule = Rect { y: body.y + height, height: 1, ..body };
            let preview = Rect { y: rule.y + 1, height: body.height - height - 1, ..body };
            return Areas { list, rule, preview };
        }
        let width = (columns / 2 - 4).min(96);
        let list = Rect { width, ..body };
        let rule = Rect { x: width, width: 1, ..body };
        let preview = Rect { x: width + 2, width: columns - width - 2, ..body };
        Areas { list, rule, preview }
    }

    /// The part of the preview below its head.
    pub fn preview_body(&self) -> Rect {
        let preview = self.areas().preview;
        let head = PREVIEW_HEAD.min(preview.height);
        Rect { y: preview.y + head, height: preview.height - head, ..preview }
    }

    pub fn say(&mut self, text: impl Into<String>) {
        self.said = Some(Said { text: text.into(), bad: false });
    }

    pub fn complain(&mut self, text: impl Into<String>) {
        self.said = Some(Said { text: text.into(), bad: true });
    }
}
