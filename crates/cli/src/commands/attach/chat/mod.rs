//! A headless agent as a conversation: what was said above, a line to write below it.
//!
//! Nothing is lost with the terminal: what was sent is durable before it leaves the line, and a line that was not sent
//! is there again at the next attach.

pub mod canvas;
mod draft;
mod editor;
mod keys;
mod status;

use super::ask::Answer;
use super::seat::{Event, Seat};
use super::words;
use crate::client::{Granted, look_and_record, make_lasting_wish, make_wish};
use crate::context::Context;
use crate::exit::{Code, Result};
use crate::ui::conversation::Talk;
use crate::ui::style::Style;
use canvas::Canvas;
use draft::Draft;
use editor::Editor;
use keys::{Key, Keys};
use ostler_core::MESSAGE_LIMIT;
use ostler_core::record::Want;
use ostler_core::view::{Phase, View};
use ostler_store::conversation::Reader;
use ostler_store::home::Place;
use status::Status;

/// How much of what was said before is shown again.
const LINES_BEFORE: usize = 200;
/// The mark before the line.
const PROMPT: &str = "› ";
/// Whoever pastes should not send with the first line; this asks the terminal to mark pastes.
const MARK_PASTES: &[u8] = b"\x1b[?2004h";
const MARK_NO_PASTES: &[u8] = b"\x1b[?2004l";

pub fn run(context: &Context, place: &Place, read_only: bool) -> Result<Code> {
    let folder = place.open()?;
    let view = look_and_record(place)?;
    let seat = Seat::take(context, place)?;
    let draft = Draft::load(&folder);
    let mut chat = Chat {
        place,
        reader: Reader::new(&folder, 1),
        talk: Talk::new(context.style, Some(usize::from(seat.columns()))),
        canvas: Canvas::new(seat.columns()),
        editor: Editor::new(if read_only { "" } else { draft.text() }),
        status: Status::new(place.id, context.config.detach_key, read_only),
        style: context.style,
        keys: Keys::default(),
        interrupted: None,
        read_only,
        draft,
        seat,
        view,
    };
    let why = chat.open().and_then(|()| chat.stay());
    // The terminal is given back first, also when something went wrong.
    chat.close();
    let view = std::mem::replace(&mut chat.view, look_and_record(place)?);
    drop(chat);
    match why? {
        Why::Left => {
            words::say(&words::detached(place.id));
            Ok(Code::Succeeded)
        }
        Why::Ended => {
            words::say(&words::ended(&view));
            Ok(view.outcome.as_ref().map_or(Code::Ours, Code::of))
        }
    }
}

/// Why the conversation is no longer shown.
enum Why {
    Left,
    Ended,
}

struct Chat<'a> {
    place: &'a Place,
    reader: Reader<'a>,
    talk: Talk,
    seat: Seat,
    canvas: Canvas,
    keys: Keys,
    editor: Editor,
    draft: Draft<'a>,
    status: Status,
    style: Style,
    view: View,
    /// The turn that Ctrl-C has ended, by the number of those finished before it.
    interrupted: Option<u32>,
    read_only: bool,
}

impl Chat<'_> {
    /// Shows what was said before.
    fn open(&mut self) -> Result<()> {
        self.seat.show(MARK_PASTES)?;
        let text = self.news()?;
        // What it asks now is shown whole, however long it is.
        let open = self.view.asking.as_ref().map(|ask| self.talk.question(ask)).unwrap_or_default();
        let text = text.strip_suffix(open.as_str()).unwrap_or(&text);
        let lines = text.lines().count();
        if lines > LINES_BEFORE {
            let hint = format!("… {} earlier lines: ostler logs {}\n", lines - LINES_BEFORE, self.place.id);
            self.canvas.write(&self.style.dim(&hint));
        }
        let start = text.match_indices('\n').rev().nth(LINES_BEFORE).map_or(0, |(place, _)| place + 1);
        self.canvas.write(&text[start..]);
        self.canvas.write(&open);
        if !self.editor.is_empty() {
            self.canvas.end_line();
            self.canvas.write(&self.style.dim("your unfinished message is restored\n"));
        }
        Ok(())
    }

    fn stay(&mut self) -> Result<Why> {
        loop {
            if self.view.ended {
                let text = self.news()?;
                self.canvas.write(&text);
                return Ok(Why::Ended);
            }
            self.paint()?;
            for event in self.seat.wait()? {
                match event {
                    Event::Leave => return Ok(Why::Left),
                    Event::Window => {
                        self.canvas.resize(self.seat.columns());
                        self.talk.resize(self.canvas.columns());
                    }
                    Event::Session => {
                        // The view first: when it says "ended", everything that was said is in the files.
                        self.view = look_and_record(self.place)?;
                        let text = self.news()?;
                        self.canvas.write(&text);
                        self.show_question();
                    }
                    Event::Keys(bytes) => {
                        for key in self.keys.read(&bytes) {
                            if self.press(key)? == Pressed::Leave {
                                return Ok(Why::Left);
                            }
                        }
                        if !self.read_only {
                            self.draft.keep(&self.editor.text());
                        }
                    }
                }
            }
        }
    }

    /// Of several questions the oldest is answered first, and has to be the last on the screen.
    fn show_question(&mut self) {
        if let Some(ask) = &self.view.asking {
            let text = self.talk.show_again(ask);
            self.canvas.write(&text);
        }
    }

    /// What was said since the last time, as text.
    fn news(&mut self) -> Result<String> {
        let mut text = String::new();
        self.reader.read_on(|item| -> Result<()> {
            let (mut said, mut about) = (String::new(), String::new());
            self.talk.show(&item, &mut said, &mut about);
            text.push_str(&said);
            text.push_str(&about);
            Ok(())
        })?;
        Ok(text)
    }

    fn paint(&mut self) -> Result<()> {
        // The last column stays free: a terminal may wrap there.
        let columns = self.canvas.columns().saturating_sub(1);
        let status = self.style.dim(&self.status.line(&self.view, columns));
        if self.read_only {
            self.canvas.put_below(&[status], 0);
        } else {
            let visible = self.editor.visible(columns.saturating_sub(2));
            let line = format!("{}{}", self.style.cyan(PROMPT), visible.text);
            self.canvas.put_below(&[status, line], visible.column + 2);
        }
        self.seat.show(self.canvas.take().as_bytes())
    }

    fn press(&mut self, key: Key) -> Result<Pressed> {
        self.status.forget_notice();
        match key {
            Key::Interrupt | Key::EndOfInput if self.read_only => return Ok(Pressed::Leave),
            Key::EndOfInput if self.editor.is_empty() => return Ok(Pressed::Leave),
            Key::Interrupt => self.interrupt()?,
            Key::Enter if !self.read_only => self.enter()?,
            Key::Redraw => self.canvas.resize(self.seat.columns()),
            Key::Enter
            | Key::Text(_)
            | Key::Backspace
            | Key::Delete
            | Key::Left
            | Key::Right
            | Key::WordLeft
            | Key::WordRight
            | Key::Home
            | Key::End
            | Key::DeleteBefore
            | Key::DeleteAfter
            | Key::DeleteWord
            | Key::EndOfInput => {
                if !self.read_only {
                    self.editor.press(key);
                }
            }
        }
        Ok(Pressed::Stay)
    }

    /// Ctrl-C ends the turn once; it never ends the session.
    fn interrupt(&mut self) -> Result<()> {
        let busy = match self.view.state {
            Phase::Working | Phase::Running | Phase::Asking | Phase::Starting => true,
            Phase::Idle | Phase::Stopping | Phase::Ended => false,
        };
        if !busy || self.interrupted == Some(self.view.turns) {
            self.status.notice(format!("to stop the session: ostler stop {}", self.place.id));
            return Ok(());
        }
        if self.wish(Want::Interrupt) {
            self.interrupted = Some(self.view.turns);
            self.status.notice("interrupted".to_owned());
        }
        Ok(())
    }

    /// Sends the line, or answers with it what the session asks.
    fn enter(&mut self) -> Result<()> {
        let text = self.editor.text();
        if text.trim().is_empty() {
            self.editor.clear();
            return Ok(());
        }
        // What it asks may have been answered since we looked. What was typed for one question is no answer to the next.
        let seen = self.view.asking.take().map(|ask| ask.request);
        self.view = look_and_record(self.place)?;
        if self.view.asking.as_ref().is_some_and(|ask| seen.as_ref() != Some(&ask.request)) {
            let text = self.news()?;
            self.canvas.write(&text);
            self.show_question();
            self.status.notice("the question has changed; press Enter again to answer the new one".to_owned());
            return Ok(());
        }
        let want = match &self.view.asking {
            Some(ask) => match Answer::to(ask, &text) {
                Some(answer) => answer.want(&ask.request),
                None => {
                    self.status.notice("it waits for an answer; begin with y or n".to_owned());
                    return Ok(());
                }
            },
            None if text.len() > MESSAGE_LIMIT => {
                self.status.notice("longer than 16 MiB; save it in a file and tell the agent to read that".to_owned());
                return Ok(());
            }
            None => Want::Message { text, now: false },
        };
        if self.wish(want) {
            self.editor.clear();
        }
        Ok(())
    }

    /// `false`: it was not granted, and the person was told why.
    fn wish(&mut self, want: Want) -> bool {
        let lasts = matches!(want, Want::Message { .. });
        let made = if lasts { make_lasting_wish(self.place, want) } else { make_wish(self.place, want) };
        let refused = match made {
            Ok(Granted::Yes) => return true,
            Ok(Granted::Refused(why)) => why,
            Ok(Granted::Ended(view)) => {
                // With what was just written down for its next run.
                self.view = look_and_record(self.place).unwrap_or(*view);
                return lasts;
            }
            Err(failure) => failure.to_string(),
        };
        self.status.notice(refused);
        false
    }

    fn close(&mut self) {
        self.canvas.take_away();
        self.canvas.end_line();
        // A terminal that is gone needs nothing.
        let _ = self.seat.show(self.canvas.take().as_bytes()).and_then(|()| self.seat.show(MARK_NO_PASTES));
    }
}

/// What a key led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pressed {
    Stay,
    Leave,
}
