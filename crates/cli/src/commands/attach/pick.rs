//! Which session is meant when none was named: the only one there is, or the one that a person picks from a list, with
//! the arrow keys or by typing a part of its line. Without a terminal it is an error that names the sessions, and
//! nothing is done by accident.

use super::canvas::Canvas;
use crate::commands::ls::state_word;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::ui::style::Style;
use crate::ui::table::{Cell, cut, lay_out};
use ostler_core::view::View;
use ostler_engine::list::{Listed, list};
use ostler_tui::terminal::{Event, Modes, Signal, Terminal, Wait, is_there};

/// How many sessions the error names.
const NAMED: usize = 5;

/// The id of the session that is meant. `verb`: what is to be done with it; `none`: the error when there is no session.
pub fn pick(context: &Context, verb: &str, none: &str, is_candidate: fn(&View) -> bool) -> Result<String> {
    let listed = list(&context.engine, false, |one| one)?;
    let candidates: Vec<View> = listed
        .into_iter()
        .filter_map(|one| match one {
            Listed::Good(view) => Some(*view).filter(is_candidate),
            Listed::Bad(_) => None,
        })
        .collect();
    match &candidates[..] {
        [] => Err(Failure::new(Code::NoSession, none)),
        [only] => Ok(only.id.to_string()),
        several if is_there() => offer(context.style, verb, several),
        several => {
            let named = several.iter().take(NAMED).map(|view| format!("{} ({})", cut(&view.title, 40), view.id));
            let named = ostler_screen::printable(&named.collect::<Vec<_>>().join(", ")).into_owned();
            let more = if several.len() > NAMED { ", …" } else { "" };
            Err(Failure::usage(format!("several sessions are possible: {named}{more}; name one: ostler {verb} ID")))
        }
    }
}

/// The result of a key.
#[derive(Debug, PartialEq, Eq)]
enum Pressed {
    Stay,
    Chosen(usize),
    Left,
}

/// The list, the text that filters it, and the index of the mark among the matching lines.
struct Choice {
    /// What is shown of each session; the typed text is searched in it.
    lines: Vec<String>,
    typed: String,
    mark: usize,
}

impl Choice {
    fn matching(&self) -> Vec<usize> {
        let typed = self.typed.to_lowercase();
        (0..self.lines.len()).filter(|&place| self.lines[place].to_lowercase().contains(&typed)).collect()
    }

    /// Handles what one read of the keyboard returned. An Escape with nothing after it is the key itself.
    fn press(&mut self, mut bytes: &[u8]) -> Pressed {
        while let Some(&first) = bytes.first() {
            let last = self.matching().len().saturating_sub(1);
            let length = match bytes {
                [0x1b] | [0x03 | 0x04, ..] => return Pressed::Left,
                [b'\r' | b'\n', ..] => match self.matching().get(self.mark) {
                    Some(&place) => return Pressed::Chosen(place),
                    None => 1,
                },
                [0x1b, b'[' | b'O', key @ (b'A' | b'B'), ..] => {
                    self.mark = if *key == b'A' { self.mark.saturating_sub(1) } else { (self.mark + 1).min(last) };
                    3
                }
                // Any other sequence is skipped.
                [0x1b, b'[', rest @ ..] => 3 + rest.iter().take_while(|byte| !(0x40..=0x7e).contains(*byte)).count(),
                [0x10, ..] => {
                    self.mark = self.mark.saturating_sub(1);
                    1
                }
                [0x0e, ..] => {
                    self.mark = (self.mark + 1).min(last);
                    1
                }
                _ => self.typed_one(first, bytes),
            };
            bytes = &bytes[length.min(bytes.len())..];
        }
        Pressed::Stay
    }

    /// Handles a character, or a key that changes the typed text. Returns its length in bytes.
    fn typed_one(&mut self, first: u8, bytes: &[u8]) -> usize {
        self.mark = 0;
        match first {
            0x7f | 0x08 => {
                self.typed.pop();
            }
            0x15 => self.typed.clear(),
            0..=0x1f => {}
            _ => {
                // A character has four bytes at most, and what follows it may be cut.
                let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4)]);
                let character = text.chars().next().unwrap_or_default();
                self.typed.push(character);
                return if character == char::REPLACEMENT_CHARACTER { 1 } else { character.len_utf8() };
            }
        }
        1
    }

    /// What is on the screen: as many lines as there is room for around the mark, and the typed text.
    fn rows(&self, style: Style, verb: &str, (rows, columns): (u16, u16)) -> (Vec<String>, usize) {
        let room = usize::from(rows).saturating_sub(3).max(1);
        let columns = usize::from(columns).saturating_sub(1);
        let matching = self.matching();
        let first = self.mark.saturating_sub(room - 1);
        let mut shown = vec![style.dim(&cut("arrows move, typing filters, Enter selects, Ctrl-C cancels", columns))];
        for (place, &index) in matching.iter().enumerate().skip(first).take(room) {
            let line = cut(&self.lines[index], columns.saturating_sub(2));
            shown.push(if place == self.mark { format!("> {}", style.bold(&line)) } else { format!("  {line}") });
        }
        let typed = format!("{verb} which one? {}", self.typed);
        let typed = cut(&typed, columns.saturating_sub(1));
        let cursor = unicode_width::UnicodeWidthStr::width(typed.as_str());
        shown.push(typed);
        (shown, cursor)
    }
}

fn offer(style: Style, verb: &str, candidates: &[View]) -> Result<String> {
    let rows: Vec<Vec<Cell>> = candidates
        .iter()
        .map(|view| {
            let (mark, state) = state_word(view);
            [mark, &cut(&view.title, 40), &state, &view.agent, view.id.as_str()].map(Cell::new).into()
        })
        .collect();
    let lines = lay_out(&rows, None).lines().map(str::to_owned).collect();
    match choose(style, verb, lines)?.and_then(|place| candidates.get(place)) {
        Some(view) => Ok(view.id.to_string()),
        None => Err(Failure::usage("no session was chosen; nothing was done")),
    }
}

/// Offers lines to a person at a terminal; returns the index of the chosen one.
pub fn choose(style: Style, verb: &str, lines: Vec<String>) -> Result<Option<usize>> {
    let mut choice = Choice { lines, typed: String::new(), mark: 0 };
    let mut terminal = Terminal::take(Modes::Keys, &Signal::LEAVING)?;
    let mut canvas = Canvas::new(size(&terminal).1);
    let chosen = loop {
        let (rows, cursor) = choice.rows(style, verb, size(&terminal));
        canvas.put_below(&rows, cursor);
        terminal.show(canvas.take().as_bytes())?;
        let mut pressed = Pressed::Stay;
        for event in terminal.wait(&Wait { keys: true, room: false, others: &[], until: None })?.events {
            pressed = match event {
                Event::Keys(keys) => choice.press(&keys),
                Event::Leave | Event::Gone => Pressed::Left,
                Event::Resized | Event::Continued | Event::Suspend => Pressed::Stay,
            };
            if pressed != Pressed::Stay {
                break;
            }
        }
        match pressed {
            Pressed::Stay => {}
            Pressed::Chosen(place) => break Some(place),
            Pressed::Left => break None,
        }
    };
    canvas.take_away();
    terminal.show(canvas.take().as_bytes())?;
    Ok(chosen)
}

fn size(terminal: &Terminal) -> (u16, u16) {
    terminal.size().unwrap_or((24, 80))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice() -> Choice {
        let lines = ["one alpha", "two beta", "three Alpha"].map(str::to_owned).into();
        Choice { lines, typed: String::new(), mark: 0 }
    }

    #[test]
    fn arrows_move_typing_filters_and_enter_takes_what_is_marked() {
        let mut choice = choice();
        assert_eq!(choice.press(b"\x1b[B"), Pressed::Stay);
        assert_eq!(choice.press(b"\r"), Pressed::Chosen(1));
        choice.press(b"ALP");
        assert_eq!(choice.matching(), [0, 2]);
        choice.press(b"\x1bOB");
        choice.press(b"\x1b[B");
        assert_eq!(choice.press(b"\r"), Pressed::Chosen(2), "the mark stays in the list");
        choice.press(b"\x15beta\x7f\x7f\x7f\x7fz");
        assert_eq!((choice.matching(), choice.press(b"\r")), (vec![], Pressed::Stay), "nothing to take");
        for key in [&b"\x1b"[..], b"\x03", b"\x04"] {
            assert_eq!(choice.press(key), Pressed::Left);
        }
    }

    #[test]
    fn text_and_enter_that_come_at_once_are_both_handled() {
        assert_eq!(choice().press(b"bet\r"), Pressed::Chosen(1));
        assert_eq!(choice().press(b"\x1b[B\x1b[1;5C\x1b[B\x1b[A\r"), Pressed::Chosen(1));
        assert_eq!(choice().press("é\x7f\r".as_bytes()), Pressed::Chosen(0));
    }
}
