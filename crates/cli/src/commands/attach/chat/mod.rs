//! A headless agent as a conversation: what was said, and below it a line to write on.
//!
//! Nothing is lost with the terminal: a message is durable before it is removed from the line, and a line that was not
//! sent is there again at the next attach.

mod status;

use super::ask::Answer;
use super::chat_terminal::{Event, Seat};
use super::detach_key;
use super::words;
use super::{Leaves, Left};
use crate::context::{Context, variable};
use crate::exit::{Code, Result};
use jiff::Timestamp;
use ostler_core::MESSAGE_LIMIT;
use ostler_core::fact::Ask;
use ostler_core::record::RequestKind;
use ostler_core::view::{Phase, View};
use ostler_engine::content::{self, Item, Runs};
use ostler_engine::draft::Draft;
use ostler_engine::request::{self, Answered};
use ostler_engine::{Engine, Place};
use ostler_tui::frame::{self, Frames};
use ostler_tui::{Buffer, Choose, Conversation, Input, Key, Keys, Rect, Theme, cut};
use status::Status;
use std::time::Instant;

/// At most this many rows of the input are shown, and never more than a third of the window.
const INPUT_ROWS: u16 = 8;
/// How many queued messages are shown.
const QUEUED_ROWS: usize = 3;
/// Reading more than this takes noticeable time, so a notice is shown.
const LONG: u64 = 16 << 20;
/// How far the mouse wheel moves.
const WHEEL_ROWS: usize = 3;

pub fn run(context: &Context, place: &Place, read_only: bool, leaves: Leaves) -> Result<Left> {
    let engine = &context.engine;
    let session = engine.record(place)?;
    let view = engine.view(place)?;
    let seat = Seat::take(context, place)?;
    let draft = engine.draft(place)?;
    let theme = Theme { colour: context.style.colour };
    let key = detach_key::name(context.engine.config.detach_key);
    let inside = variable("OSTLER_SESSION").is_some();
    let mut chat = Chat {
        engine,
        place,
        reader: engine.conversation(place, Runs::All)?,
        conversation: Conversation::new(theme, &session.cwd),
        input: Input::new(if read_only { "" } else { draft.text() }),
        status: Status::new(&key, inside, read_only),
        frames: Frames::default(),
        keys: Keys::default(),
        model: session.model,
        conversation_rows: 0,
        interrupted: None,
        typed_for: None,
        answered: None,
        read_only,
        theme,
        draft,
        seat,
        view,
        queued: (Vec::new(), 0, 0),
    };
    let why = chat.open().and_then(|()| chat.stay());
    // The terminal is restored first, also when something went wrong.
    chat.close(leaves);
    let view = engine.view(place)?;
    match why? {
        Why::Left => {
            leaves.say(&words::detached(place.id));
            Ok(Left::with(Code::Succeeded))
        }
        Why::Exits => {
            leaves.say(&words::detached(place.id));
            Ok(Left::exiting())
        }
        Why::Ended => {
            words::tell_of_end(engine, &view);
            leaves.say(&words::ended(&view));
            Ok(Left::with(view.outcome.as_ref().map_or(Code::Ours, Code::of)))
        }
    }
}

/// Why the conversation is no longer shown.
enum Why {
    Left,
    /// The process is asked to exit, or its terminal is gone.
    Exits,
    Ended,
}

struct Chat<'a> {
    engine: &'a Engine,
    place: &'a Place,
    reader: content::Conversation,
    conversation: Conversation,
    seat: Seat,
    frames: Frames,
    keys: Keys,
    input: Input,
    draft: Draft,
    status: Status,
    theme: Theme,
    view: View,
    /// The queued messages, and how many were queued and how many turns had ended when they were read.
    queued: (Vec<String>, u32, u32),
    /// The model that was asked for, until the agent names its model.
    model: Option<String>,
    /// How many rows of the window the conversation has.
    conversation_rows: u16,
    /// The turn that Ctrl-C has interrupted, as the number of turns that ended before it.
    interrupted: Option<u32>,
    /// The question that was open when the line was last edited.
    typed_for: Option<Ask>,
    /// The question that was answered last, and by whom.
    answered: Option<(String, String)>,
    read_only: bool,
}

impl Chat<'_> {
    /// Shows what was said before.
    fn open(&mut self) -> Result<()> {
        self.seat.put(frame::ENTER.as_bytes())?;
        if self.reader.size() > LONG {
            self.seat.put(b"\x1b[HReading the conversation...")?;
        }
        self.news()?;
        self.show_question();
        if !self.input.is_empty() {
            self.status.notice("your unfinished message is restored");
        }
        Ok(())
    }

    fn stay(&mut self) -> Result<Why> {
        loop {
            if self.view.ended {
                self.news()?;
                return Ok(Why::Ended);
            }
            let due = self.paint()?;
            for event in self.seat.wait(due)? {
                match event {
                    Event::Leave => return Ok(Why::Left),
                    Event::Exit => return Ok(Why::Exits),
                    Event::Window | Event::Due => {}
                    Event::Back => self.enter_screen()?,
                    Event::Stop => self.stop()?,
                    Event::Output => self.news()?,
                    Event::Session => {
                        // The view is read first: when it says "ended", everything that was said is in the files.
                        self.view = self.engine.view(self.place)?;
                        self.news()?;
                        self.show_question();
                    }
                    Event::Keys(bytes) => {
                        for key in self.keys.read(&bytes) {
                            if self.press(key)? == Pressed::Leave {
                                return Ok(Why::Left);
                            }
                        }
                        if !self.read_only {
                            self.draft.keep(self.input.text());
                        }
                    }
                }
            }
        }
    }

    /// The oldest of several questions is answered first, so it has to be the last on the screen.
    fn show_question(&mut self) {
        self.conversation.asks(self.view.asking.as_ref());
    }

    /// Reads what was said since the last call.
    fn news(&mut self) -> Result<()> {
        let (conversation, input, answered) = (&mut self.conversation, &mut self.input, &mut self.answered);
        self.reader.read(|item, _| -> Result<()> {
            match &item {
                Item::Told { text, .. } => {
                    conversation.told(text);
                    input.remember(text);
                }
                Item::Answered { request, by, allowed, always } => {
                    conversation.answered(request, by, *allowed, always.as_deref());
                    *answered = Some((request.clone(), by.clone()));
                }
                Item::Agent(fact) => conversation.fact(fact),
            }
            Ok(())
        })
    }

    /// Reads the queued messages again when they have changed.
    fn read_queued(&mut self) -> Result<()> {
        let (queued, turns) = (self.view.queued, self.view.turns);
        if (queued, turns) != (self.queued.1, self.queued.2) {
            let texts = if queued > 0 { self.engine.queued(self.place)? } else { Vec::new() };
            self.queued = (texts, queued, turns);
        }
        Ok(())
    }

    /// Draws what has changed. Returns when the screen becomes outdated without an event, because a duration is shown.
    fn paint(&mut self) -> Result<Option<Instant>> {
        if self.seat.is_busy() {
            return Ok(None);
        }
        let now = Timestamp::now();
        self.read_queued()?;
        let (rows, columns) = self.seat.size();
        let area = Rect::new(0, 0, columns, rows);
        let mut buffer = Buffer::empty(area);
        let notices = self.status.notices(&self.view);
        let input_rows = if self.read_only {
            0
        } else {
            let most = INPUT_ROWS.min((rows / 3).max(1));
            u16::try_from(self.input.height(usize::from(columns), usize::from(most))).unwrap_or(most)
        };
        // From the bottom up: hints, input, state of the session, notices.
        let mut bottom = rows;
        let mut take = |height: u16| {
            bottom = bottom.saturating_sub(height);
            Rect::new(0, bottom, columns, height.min(rows - bottom))
        };
        let (hints, input, state) = (take(1), take(input_rows), take(1));
        let notice_areas: Vec<Rect> = notices.iter().map(|_| take(1)).collect();
        let queued = status::queued_lines(&self.queued.0, QUEUED_ROWS.min(usize::from(rows / 6)));
        let queued_areas: Vec<Rect> = queued.iter().map(|_| take(1)).collect();
        self.conversation_rows = bottom;
        self.conversation.render(Rect::new(0, 0, columns, bottom), &mut buffer);
        let wide = usize::from(columns);
        // Drawn over the last row of the conversation, so that the conversation has as many rows as at its end.
        if !self.conversation.follows() {
            let words = if self.conversation.has_news() { " ↓ new text below" } else { " ↓ more below" };
            let line = format!("{:<wide$}", cut(&format!("{words} · Ctrl-End goes there"), wide));
            buffer.set_stringn(0, bottom.saturating_sub(1), line, wide, self.theme.chosen());
        }
        for (notice, place) in notices.iter().zip(notice_areas.iter().rev()) {
            buffer.set_stringn(0, place.y, cut(notice, wide), wide, self.theme.bold());
        }
        for (line, place) in queued.iter().zip(queued_areas.iter().rev()) {
            buffer.set_stringn(0, place.y, cut(line, wide), wide, self.theme.dim());
        }
        let model = self.conversation.model().or(self.model.as_deref());
        buffer.set_line(0, state.y, &self.status.state(&self.view, model, now, wide, self.theme), columns);
        buffer.set_line(0, hints.y, &self.status.hints(&self.view, now, wide, self.theme), columns);
        let cursor = (input.height > 0).then(|| self.input.render(input, &mut buffer, self.theme));
        let bytes = self.frames.next(buffer, cursor);
        self.seat.put(bytes.as_bytes())?;
        Ok(Status::lasts(&self.view, now).map(|time| Instant::now() + time))
    }

    /// Takes over the terminal. What it shows is unknown, so the next frame is drawn in full.
    fn enter_screen(&mut self) -> Result<()> {
        self.frames.forget();
        self.seat.put(frame::ENTER.as_bytes())
    }

    /// Suspends the process as a shell expects it of a program, and draws again when the process continues.
    fn stop(&mut self) -> Result<()> {
        self.seat.stop(frame::LEAVE.as_bytes())?;
        self.enter_screen()
    }

    fn press(&mut self, key: Key) -> Result<Pressed> {
        self.status.forget_notice();
        let empty = self.read_only || self.input.is_empty();
        match key {
            Key::Interrupt | Key::EndOfInput if self.read_only => return Ok(Pressed::Leave),
            Key::EndOfInput if empty => return Ok(Pressed::Leave),
            Key::Interrupt if empty => self.interrupt()?,
            // The line is not lost: the up arrow brings it back.
            Key::Interrupt => self.input.give_up(),
            Key::Enter if !self.read_only => self.enter()?,
            Key::Redraw => self.frames.forget(),
            Key::Suspend => self.stop()?,
            Key::PageUp => self.conversation.page_up(),
            Key::PageDown => self.conversation.page_down(),
            Key::RowUp => self.conversation.scroll_up(1),
            Key::RowDown => self.conversation.scroll_down(1),
            Key::Up if self.read_only => self.conversation.scroll_up(1),
            Key::Down if self.read_only => self.conversation.scroll_down(1),
            Key::WheelUp { .. } => self.conversation.scroll_up(WHEEL_ROWS),
            Key::WheelDown { .. } => self.conversation.scroll_down(WHEEL_ROWS),
            Key::Top => self.conversation.to_start(),
            Key::Bottom => self.conversation.to_end(),
            Key::Home if empty => self.conversation.to_start(),
            Key::End if empty => self.conversation.to_end(),
            Key::Unfold => self.conversation.toggle(),
            Key::UnfoldAll => self.conversation.toggle_all(),
            Key::ChooseBefore => self.conversation.choose(Choose::Before),
            Key::ChooseAfter => self.conversation.choose(Choose::Behind),
            Key::Click { row, .. } if row + 1 == self.conversation_rows && !self.conversation.follows() => {
                self.conversation.to_end();
            }
            Key::Click { row, .. } if row < self.conversation_rows => _ = self.conversation.click(usize::from(row)),
            Key::Click { .. } | Key::BackTab | Key::Escape => {}
            Key::Enter
            | Key::Text(_)
            | Key::Pasted(_)
            | Key::NewLine
            | Key::Backspace
            | Key::Delete
            | Key::Left
            | Key::Right
            | Key::Up
            | Key::Down
            | Key::WordLeft
            | Key::WordRight
            | Key::Home
            | Key::End
            | Key::DeleteBefore
            | Key::DeleteAfter
            | Key::DeleteWord
            | Key::DeleteWordAfter
            | Key::Yank
            | Key::HistoryBefore
            | Key::HistoryAfter
            | Key::Tab
            | Key::EndOfInput => {
                if !self.read_only {
                    self.input.press(key);
                    if let Some(ask) = &self.view.asking {
                        self.typed_for = Some(ask.clone());
                    }
                }
            }
        }
        if self.input.is_empty() {
            self.typed_for = None;
        }
        Ok(Pressed::Stay)
    }

    /// Ctrl-C interrupts the turn once; it never ends the session.
    fn interrupt(&mut self) -> Result<()> {
        let busy = match self.view.state {
            Phase::Working | Phase::Running | Phase::Asking | Phase::Starting => true,
            Phase::Queued | Phase::Idle | Phase::Waiting | Phase::Stopping | Phase::Ended => false,
        };
        if !busy || self.interrupted == Some(self.view.turns) {
            self.status.notice(format!("to stop the session: ostler stop {}", self.place.id));
            return Ok(());
        }
        if self.request(RequestKind::Interrupt) {
            self.interrupted = Some(self.view.turns);
            self.status.notice("interrupted");
        }
        Ok(())
    }

    /// Sends the line, or answers the session's question with it.
    fn enter(&mut self) -> Result<()> {
        let text = self.input.text().to_owned();
        if text.trim().is_empty() {
            self.input.clear();
            self.conversation.to_end();
            return Ok(());
        }
        // The question may have been answered since the line was typed. What was typed for one question is not an
        // answer to the next, and not a message either.
        let typed_for = self.typed_for.take();
        self.view = self.engine.view(self.place)?;
        match (&self.view.asking, &typed_for) {
            (Some(ask), typed_for) if typed_for.as_ref().is_none_or(|typed| typed.request != ask.request) => {
                self.typed_for = Some(ask.clone());
                self.news()?;
                self.show_question();
                self.status.notice("it asks something new; press Enter again to answer that");
                return Ok(());
            }
            (None, Some(typed)) if Answer::is_meant_for(typed, &text) => {
                self.news()?;
                self.show_question();
                let by = self.answered.as_ref().filter(|(request, _)| *request == typed.request);
                let gone = by.map_or("no longer asked".to_owned(), |(_, by)| format!("already answered by {by}"));
                self.status.notice(format!("{gone}; not sent; press Enter again to send it as a message"));
                return Ok(());
            }
            (Some(_), _) => self.typed_for = typed_for,
            (None, _) => {}
        }
        let kind = match &self.view.asking {
            Some(ask) => match Answer::to(ask, &text) {
                Some(answer) if answer.allow && !self.conversation.question_is_seen() => {
                    self.status.notice("read all of it first: PgUp, PgDn");
                    return Ok(());
                }
                Some(answer) => answer.kind(&ask.request),
                None => {
                    self.status.notice("it waits for an answer: y, n, or n and why not");
                    return Ok(());
                }
            },
            None if text.len() > MESSAGE_LIMIT => {
                self.status.notice("longer than 16 MiB; save it in a file and tell the agent to read that");
                return Ok(());
            }
            None => RequestKind::Message { text, now: false },
        };
        if self.request(kind) {
            self.input.clear();
            self.conversation.to_end();
        }
        Ok(())
    }

    /// `false`: the request was refused, and the person was told why.
    fn request(&mut self, kind: RequestKind) -> bool {
        let lasts = matches!(kind, RequestKind::Message { .. });
        let made = if lasts {
            request::make_lasting(self.engine, self.place, kind)
        } else {
            request::make(self.engine, self.place, kind)
        };
        let refused = match made {
            Ok(Answered::Accepted) => return true,
            Ok(Answered::Refused(why)) => why,
            Ok(Answered::Ended(view)) => {
                // Read again, because the message was just stored for the next run.
                self.view = self.engine.view(self.place).unwrap_or(*view);
                return lasts;
            }
            Err(failure) => failure.to_string(),
        };
        self.status.notice(refused);
        false
    }

    /// Restores the terminal, with the end of the conversation on it: it can still be read and copied after this
    /// process has exited.
    fn close(self, leaves: Leaves) {
        if leaves == Leaves::Nothing {
            return self.seat.close(frame::LEAVE.as_bytes());
        }
        let (rows, columns) = self.seat.size();
        let area = Rect::new(0, 0, columns, rows.saturating_sub(3));
        let mut buffer = Buffer::empty(area);
        let mut conversation = self.conversation;
        conversation.to_end();
        conversation.render(area, &mut buffer);
        self.seat.close(format!("{}{}", frame::LEAVE, frame::lines(&buffer)).as_bytes());
    }
}

/// The result of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pressed {
    Stay,
    Leave,
}
