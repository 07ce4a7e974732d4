//! The terminal face: the agent draws its own screen, as real agents do, so that keeping, detaching and attaching such
//! a program can be shown and tested.
//!
//! It uses what makes terminal programs hard to keep: raw mode, the alternate screen, bracketed paste, a window title,
//! redrawing at a new size. On exit it restores the state of the terminal, unless it is killed. It draws only when
//! something changed, and only the rows that did.

mod keys;
mod text;
mod view;

use std::fmt::Write as _;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};
use uuid::Uuid;

use crate::face::{Block, Command, Content, Ending, Face, Message, Prompt, Question, Report, Scene, Verdict};
use crate::leave::{EndSignal, Leave, Trouble};
use crate::output::Output;
use crate::story::gist;

use keys::{Key, Keys};
use view::{Frame, Kind, Size, State, View};

/// Save the window's title, use the alternate screen and bracketed paste, do not wrap at the right edge.
const ENTER: &str = "\x1b[22;0t\x1b[?1049h\x1b[?2004h\x1b[?7l";
const LEAVE: &str = "\x1b[0m\x1b[?7h\x1b[?2004l\x1b[?25h\x1b[?1049l\x1b[23;0t";
/// Between these two a terminal does not show a half-drawn screen.
const BEGIN_UPDATE: &str = "\x1b[?2026h\x1b[?25l";
const END_UPDATE: &str = "\x1b[?25h\x1b[?2026l";

pub struct Terminal {
    stdin: io::Stdin,
    output: Output,
    found: Termios,
    keys: Keys,
    view: View,
    size: Size,
    /// What the terminal shows; `None` when that is unknown.
    shown: Option<Frame>,
    title: String,
}

impl Terminal {
    pub fn open(output: Output, session: Uuid, turns_before: usize) -> Result<Terminal, Trouble> {
        let stdin = io::stdin();
        if !isatty(io::stdout()) {
            return Err(Trouble::NoTerminal(Errno::NOTTY.into()));
        }
        let found = tcgetattr(&stdin).map_err(|error| Trouble::NoTerminal(error.into()))?;
        let mut raw = found.clone();
        raw.make_raw();
        tcsetattr(&stdin, OptionalActions::Now, &raw).map_err(|error| Trouble::NoTerminal(error.into()))?;
        output.write_if_room(ENTER.as_bytes());

        let mut view = View::new(format!("session {}", &session.to_string()[..8]));
        view.add(Kind::Note, "The demo agent: no model, no network, but real tools. Type anything and press Enter.");
        match turns_before {
            0 => {}
            1 => view.add(Kind::Note, "Resumed: one turn came before."),
            turns => view.add(Kind::Note, &format!("Resumed: {turns} turns came before.")),
        }
        let mut terminal = Terminal {
            stdin,
            output,
            found,
            keys: Keys::default(),
            view,
            size: Size::of_terminal(),
            shown: None,
            title: String::new(),
        };
        // If this fails because the reader is slow, the first screen is drawn with the first key.
        let _ = terminal.draw();
        Ok(terminal)
    }

    fn draw(&mut self) -> Result<(), Leave> {
        let frame = self.view.frame(self.size);
        let mut bytes = BEGIN_UPDATE.to_owned();
        let title = self.view.title();
        if title != self.title {
            let _ = write!(bytes, "\x1b]2;{title}\x07");
            self.title = title;
        }
        if self.shown.is_none() {
            bytes.push_str("\x1b[0m\x1b[2J");
        }
        for (index, row) in frame.rows.iter().enumerate() {
            let same = self.shown.as_ref().is_some_and(|shown| shown.rows.get(index) == Some(row));
            if !same {
                // Nothing is erased after the row: a row fills its line, and the cursor is still on the last cell.
                let _ = write!(bytes, "\x1b[{};1H{row}\x1b[0m", index + 1);
            }
        }
        let _ = write!(bytes, "\x1b[{};{}H{END_UPDATE}", frame.cursor.0 + 1, frame.cursor.1 + 1);
        self.shown = Some(frame);
        self.output.write(bytes.as_bytes())
    }

    fn press(&mut self, key: Key) -> Option<Command> {
        match (key, self.view.state()) {
            (Key::Leave, State::Idle | State::Working | State::Asking { .. }) => Some(Command::Quit),
            (Key::Interrupt, State::Working | State::Asking { .. }) => Some(Command::Interrupt),
            (Key::Interrupt, State::Idle) => {
                self.view.input.clear();
                None
            }
            (Key::Character('y' | 'Y'), State::Asking { request_id, .. }) => {
                Some(Command::Answer { request_id: request_id.clone(), verdict: Verdict::Allowed })
            }
            (Key::Character('n' | 'N'), State::Asking { request_id, .. }) => {
                let verdict = Verdict::Denied { reason: "at the keyboard".to_owned() };
                Some(Command::Answer { request_id: request_id.clone(), verdict })
            }
            (
                Key::Character(_) | Key::Pasted(_) | Key::Enter | Key::Backspace | Key::EraseWord | Key::EraseLine,
                State::Asking { .. },
            ) => None,
            (key, State::Idle | State::Working) => self.edit(key),
        }
    }

    /// Applies a key to the input line. A finished line is a command.
    fn edit(&mut self, key: Key) -> Option<Command> {
        let input = &mut self.view.input;
        match key {
            Key::Character(character) => input.push(character),
            Key::Pasted(text) => input.push_str(&text),
            Key::Backspace => drop(input.pop()),
            Key::EraseWord => {
                let kept = input.trim_end().rfind(char::is_whitespace).map_or(0, |space| space + 1);
                input.truncate(kept);
            }
            Key::EraseLine => input.clear(),
            Key::Enter => {
                let text = std::mem::take(input);
                return match text.trim() {
                    "" => None,
                    "/quit" => Some(Command::Quit),
                    _ => {
                        self.view.waiting += 1;
                        Some(Command::Prompt(Prompt { uuid: Uuid::new_v4().to_string(), text }))
                    }
                };
            }
            Key::Interrupt | Key::Leave => {}
        }
        None
    }

    fn add_message(&mut self, message: &Message) {
        self.view.streaming.clear();
        match &message.content {
            Content::Agent { block: Block::Text(text), .. } => self.view.add(Kind::Text, text),
            Content::Agent { block: Block::ToolUse { call, .. }, .. } => {
                self.view.add(Kind::Tool, &format!("{} {}", call.name(), call.gist()));
            }
            Content::ToolResult { text, is_error: false, .. } => self.view.add(Kind::Result, text),
            Content::ToolResult { text, is_error: true, .. } => self.view.add(Kind::Failure, text),
            Content::Interruption => {}
        }
    }

    fn add_report(&mut self, report: &Report) {
        self.view.streaming.clear();
        let seconds = report.duration.as_secs_f64();
        let words = match &report.ending {
            Ending::Done { .. } => format!("done in {seconds:.1} s"),
            Ending::Failed { .. } | Ending::Limited { .. } => format!("failed after {seconds:.1} s"),
            Ending::Interrupted => format!("interrupted after {seconds:.1} s"),
        };
        self.view.add(Kind::Note, &words);
    }

    fn ask(&mut self, question: &Question) {
        let words = format!("Allow {} {}? y/n", question.call.name(), question.call.gist());
        self.view.enter(State::Asking { request_id: question.request_id.clone(), words });
    }
}

impl Face for Terminal {
    fn input(&self) -> BorrowedFd<'_> {
        self.stdin.as_fd()
    }

    fn has_keyboard(&self) -> bool {
        true
    }

    fn hear(&mut self) -> Result<Vec<Command>, Leave> {
        let mut buffer = [0; 4096];
        let length = match rustix::io::read(&self.stdin, &mut buffer) {
            // The other side of the terminal is gone.
            Ok(0) | Err(Errno::IO) => return Err(Leave::Signal(EndSignal::HangUp)),
            Ok(length) => length,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(Vec::new()),
            Err(error) => return Err(Leave::Trouble(Trouble::Input(error.into()))),
        };
        let keys = self.keys.read(&buffer[..length]);
        let commands = keys.into_iter().filter_map(|key| self.press(key)).collect();
        self.draw()?;
        Ok(commands)
    }

    fn show(&mut self, scene: Scene<'_>) -> Result<(), Leave> {
        match scene {
            Scene::TurnBegins { prompt } => {
                self.view.waiting = self.view.waiting.saturating_sub(1);
                self.view.enter(State::Working);
                self.view.subject = gist(prompt);
                self.view.add(Kind::Prompt, prompt);
            }
            Scene::Words(text) => self.view.streaming.push_str(text),
            Scene::Said(message) => self.add_message(message),
            Scene::Asks(question) => self.ask(question),
            Scene::AskedEnough { .. } => self.view.enter(State::Working),
            Scene::TurnEnds(report) => {
                self.view.enter(State::Idle);
                self.add_report(report);
            }
        }
        self.draw()
    }

    fn resized(&mut self) -> Result<(), Leave> {
        self.size = Size::of_terminal();
        self.shown = None;
        self.draw()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.output.write_if_room(LEAVE.as_bytes());
        let _ = tcsetattr(&self.stdin, OptionalActions::Now, &self.found);
    }
}

impl Size {
    fn of_terminal() -> Size {
        match tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_row > 0 && size.ws_col > 0 => {
                Size { rows: size.ws_row.into(), columns: size.ws_col.into() }
            }
            // The size of this terminal was never set.
            Ok(_) | Err(_) => Size { rows: 24, columns: 80 },
        }
    }
}
