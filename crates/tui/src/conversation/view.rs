//! The view of a conversation: what is unfolded and chosen, the position, and drawing.

use super::{Choose, Conversation, KEPT, Place};
use crate::entry::Entry;
use crate::layout::{Look, rows};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::text::Line;
use std::rc::Rc;

impl Conversation {
    /// Unfolds or folds the chosen entry, or the last visible one that can be folded.
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

    /// Unfolds or folds the entry in this row of the drawn area. Returns whether there was one.
    pub fn click(&mut self, row: usize) -> bool {
        let target = self.drawn.get(row).copied().flatten().filter(|entry| self.folds(*entry));
        if let Some(target) = target {
            self.toggle_entry(target);
        }
        target.is_some()
    }

    pub(super) fn toggle_entry(&mut self, target: usize) {
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
            // After the last tool call nothing is chosen.
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

    /// Two rows stay visible: one of them may be covered by the line that there is more below.
    pub(super) fn page(&self) -> usize {
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

    /// Whether something has been added below the view.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.news
    }

    // Drawing.

    /// Draws the visible part. If it is smaller than the area, it is at the bottom.
    pub fn render(&mut self, area: Rect, buffer: &mut Buffer) {
        self.measure(area);
        if let Some(reveal) = self.reveal.take().filter(|place| *place < self.entries.len()) {
            let gap = usize::from(self.has_gap(reveal));
            let first = Place { entry: reveal, row: gap };
            if self.end_place() > first {
                (self.top, self.follows) = (first, false);
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
        // The last row of a view that is not at the end may be covered by the line that there is more below.
        let clear = if self.follows() { self.height } else { self.height.saturating_sub(1) };
        while lines.len() < self.height && place.entry < self.entries.len() {
            let rows = self.rows_of(place.entry);
            let room = self.height - lines.len();
            // The blank row before an entry is not part of it, so a click there unfolds nothing.
            let gap = usize::from(self.has_gap(place.entry));
            if self.open_question == Some(place.entry) {
                let end = rows.len().min(place.row + clear.saturating_sub(lines.len()));
                self.note_seen(place.row, end, gap, rows.len());
            }
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

    /// Notes that these rows of the open question are in view. They count only if no row before them was skipped.
    fn note_seen(&mut self, start: usize, end: usize, gap: usize, all: usize) {
        if start <= self.question_rows_seen.max(gap) {
            self.question_rows_seen = self.question_rows_seen.max(end);
        }
        self.question_seen |= self.question_rows_seen >= all;
    }

    pub(super) fn measure(&mut self, area: Rect) {
        self.height = usize::from(area.height);
        if self.columns != usize::from(area.width) {
            self.columns = usize::from(area.width);
            // With another width the rows are different.
            self.question_rows_seen = 0;
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
    pub(super) fn end_place(&mut self) -> Place {
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
    pub(super) fn first_row(&mut self) -> Place {
        if !self.follows {
            return self.top;
        }
        let end = self.end_place();
        self.question_row().filter(|_| self.held).map_or(end, |question| question.min(end))
    }

    /// The first row of the open question.
    pub(super) fn question_row(&self) -> Option<Place> {
        let entry = self.open_question?;
        Some(Place { entry, row: usize::from(self.has_gap(entry)) })
    }

    pub(super) fn follow_at_the_end(&mut self) {
        let end = self.end_place();
        if self.top >= end {
            (self.follows, self.news, self.held) = (true, false, false);
        }
    }

    pub(super) fn folds(&self, place: usize) -> bool {
        self.entries.get(place).is_some_and(|kept| kept.entry.folds())
    }

    pub(super) fn is_open(&self, place: usize) -> bool {
        self.entries.get(place).and_then(|kept| kept.open).unwrap_or(self.all_open)
    }

    pub(super) fn has_gap(&self, place: usize) -> bool {
        let before = place.checked_sub(1).and_then(|before| self.entries.get(before));
        match (before, self.entries.get(place)) {
            (Some(before), Some(kept)) => kept.entry.needs_gap_after(&before.entry),
            (None, _) | (_, None) => false,
        }
    }

    pub(super) fn rows_of(&mut self, place: usize) -> Rc<[Line<'static>]> {
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
    pub(super) fn forget_far(&mut self) {
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
