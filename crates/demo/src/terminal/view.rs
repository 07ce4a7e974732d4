//! What the screen shows, and its layout at a given size. Pure: state in, rows of text out.
//!
//! From 40 by 10 cells up there is a title, the conversation in a frame, an input line and a line of hints. Smaller
//! screens have no frame; the input line is shown at any size.

use std::collections::VecDeque;

use super::text::{end, fit, harmless, text_width, wrap};

/// Older parts of the conversation are only in the transcript.
const MOST_ENTRIES: usize = 200;
/// An entry is cut to this many characters.
const LONGEST_ENTRY: usize = 20_000;
/// No more lines of a tool's output than this are shown.
const LONGEST_RESULT: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub rows: usize,
    pub columns: usize,
}

/// What a terminal shows: one string per row, with colours, and the position of the cursor (row, column, from 0).
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    pub rows: Vec<String>,
    pub cursor: (usize, usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Idle,
    Working,
    Asking { request_id: String, words: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Prompt,
    Text,
    Tool,
    Result,
    Failure,
    Note,
}

impl Kind {
    fn colour(self) -> &'static str {
        match self {
            Kind::Prompt => "\x1b[1;36m",
            Kind::Text => "",
            Kind::Tool => "\x1b[33m",
            Kind::Result | Kind::Note => "\x1b[2m",
            Kind::Failure => "\x1b[31m",
        }
    }

    /// The margin of the first line, and of the others.
    fn margins(self) -> (&'static str, &'static str) {
        match self {
            Kind::Prompt => ("› ", "  "),
            Kind::Text | Kind::Note => ("", ""),
            Kind::Tool => ("● ", "  "),
            Kind::Result | Kind::Failure => ("  ", "  "),
        }
    }
}

struct Entry {
    kind: Kind,
    text: String,
}

pub struct View {
    entries: VecDeque<Entry>,
    /// A text of which only a part has come.
    pub streaming: String,
    pub input: String,
    /// Prompts that wait for the running turn to end.
    pub waiting: usize,
    /// The subject of the running turn.
    pub subject: String,
    name: String,
    state: State,
}

impl View {
    pub fn new(name: String) -> View {
        View {
            entries: VecDeque::new(),
            streaming: String::new(),
            input: String::new(),
            waiting: 0,
            subject: String::new(),
            name,
            state: State::Idle,
        }
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn enter(&mut self, state: State) {
        self.state = state;
    }

    pub fn add(&mut self, kind: Kind, text: &str) {
        if kind == Kind::Prompt && !self.entries.is_empty() {
            self.entries.push_back(Entry { kind: Kind::Note, text: String::new() });
        }
        let mut text: String = text.chars().take(LONGEST_ENTRY).collect();
        if matches!(kind, Kind::Result | Kind::Failure) {
            let mut lines: Vec<&str> = text.lines().take(LONGEST_RESULT + 1).collect();
            if lines.len() > LONGEST_RESULT {
                lines[LONGEST_RESULT] = "…";
            }
            text = lines.join("\n");
        }
        self.entries.push_back(Entry { kind, text });
        let surplus = self.entries.len().saturating_sub(MOST_ENTRIES);
        self.entries.drain(..surplus);
    }

    /// The title of the terminal's window.
    pub fn title(&self) -> String {
        match self.state {
            State::Idle => "ostler demo".to_owned(),
            State::Working => format!("ostler demo: {}", self.subject),
            State::Asking { .. } => format!("ostler demo asks: {}", self.subject),
        }
    }

    pub fn frame(&self, size: Size) -> Frame {
        let (rows, cursor_column) = (size.rows.max(1), self.input_width(size.columns));
        if rows < 6 || size.columns < 12 {
            let mut shown = self.conversation(rows - 1, size.columns);
            shown.push(self.input_row(size.columns));
            return Frame { rows: shown, cursor: (rows - 1, cursor_column) };
        }
        let inner = size.columns - 4;
        let mut shown = vec![self.title_row(size.columns), format!("\x1b[2m┌{}┐", "─".repeat(size.columns - 2))];
        for line in self.conversation(rows - 5, inner) {
            shown.push(format!("\x1b[2m│\x1b[0m {line}\x1b[0m \x1b[2m│"));
        }
        shown.push(format!("\x1b[2m└{}┘", "─".repeat(size.columns - 2)));
        shown.push(self.input_row(size.columns));
        shown.push(format!("\x1b[2m{}", fit(self.hints(), size.columns)));
        Frame { rows: shown, cursor: (rows - 2, cursor_column) }
    }

    fn title_row(&self, columns: usize) -> String {
        let state = match self.state {
            State::Idle => "idle",
            State::Working => "working",
            State::Asking { .. } => "asking",
        };
        let right = match self.waiting {
            0 => format!("{} · {state} ", self.name),
            waiting => format!("{} · {state} · {waiting} waiting ", self.name),
        };
        let left = fit(" ostler demo", columns.saturating_sub(text_width(&right)));
        format!("\x1b[7m{}", fit(&format!("{left}{right}"), columns))
    }

    fn hints(&self) -> &'static str {
        match self.state {
            State::Idle => " Enter send · Ctrl-D leave",
            State::Working => " Ctrl-C interrupt · Ctrl-D leave",
            State::Asking { .. } => " y allow · n deny · Ctrl-C interrupt",
        }
    }

    fn input_text(&self, columns: usize) -> String {
        match &self.state {
            State::Asking { words, .. } => words.chars().map(harmless).collect(),
            State::Idle | State::Working => {
                let shown: String = self
                    .input
                    .chars()
                    .map(|character| if character == '\n' { '⏎' } else { harmless(character) })
                    .collect();
                // The last cell is left for the cursor.
                format!("› {}", end(&shown, columns.saturating_sub(3)))
            }
        }
    }

    fn input_width(&self, columns: usize) -> usize {
        text_width(&self.input_text(columns)).min(columns.saturating_sub(1))
    }

    fn input_row(&self, columns: usize) -> String {
        let colour = match self.state {
            State::Asking { .. } => "\x1b[1;33m",
            State::Idle | State::Working => "",
        };
        format!("{colour}{}", fit(&self.input_text(columns), columns))
    }

    /// The newest lines of the conversation: exactly `rows` of them, each exactly `columns` wide.
    fn conversation(&self, rows: usize, columns: usize) -> Vec<String> {
        let mut newest_first: Vec<String> = Vec::new();
        let streaming = (!self.streaming.is_empty()).then_some((Kind::Text, self.streaming.as_str()));
        let entries = self.entries.iter().map(|entry| (entry.kind, entry.text.as_str()));
        for (kind, text) in entries.chain(streaming).rev() {
            if newest_first.len() >= rows {
                break;
            }
            newest_first.extend(lines(kind, text, rows, columns).into_iter().rev());
        }
        newest_first.truncate(rows);
        newest_first.reverse();
        newest_first.resize(rows, " ".repeat(columns));
        newest_first
    }
}

/// The last lines of one entry, in colour.
fn lines(kind: Kind, text: &str, rows: usize, columns: usize) -> Vec<String> {
    let (first, others) = kind.margins();
    // Only what can be seen is laid out, because a text that is still coming is laid out again with every word.
    let text = if text.chars().count() > 2 * rows * columns { end(text, rows * columns) } else { text };
    let wrapped = wrap(text, columns.saturating_sub(text_width(first)));
    let margins = std::iter::once(first).chain(std::iter::repeat(others));
    wrapped
        .iter()
        .zip(margins)
        .map(|(line, margin)| format!("{}{}", kind.colour(), fit(&format!("{margin}{line}"), columns)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows without their colours.
    fn plain(frame: &Frame) -> Vec<String> {
        let without_colours = |row: &String| {
            let mut parts = row.split('\x1b');
            let mut text = parts.next().unwrap_or_default().to_owned();
            text.extend(parts.filter_map(|part| part.split_once('m')).map(|(_, rest)| rest));
            text
        };
        frame.rows.iter().map(without_colours).collect()
    }

    fn busy() -> View {
        let mut view = View::new("session 1234abcd".into());
        view.add(Kind::Prompt, "fix the login bug, please, and be quick about it");
        view.add(Kind::Tool, "Bash sh test.sh");
        view.add(Kind::Failure, "Exit code 1\nFAIL  wanted 'Hello, world!', got 'Hello, !'");
        view.streaming.push_str("It fails: the name is");
        view.input.push_str("日本語 and more");
        view.enter(State::Working);
        view
    }

    #[test]
    fn the_smallest_proper_screen_has_everything() {
        let frame = busy().frame(Size { rows: 10, columns: 40 });
        assert_eq!(
            plain(&frame),
            [
                " ostler demo session 1234abcd · working ",
                "┌──────────────────────────────────────┐",
                "│ ● Bash sh test.sh                    │",
                "│   Exit code 1                        │",
                "│   FAIL  wanted 'Hello, world!', got  │",
                "│   'Hello, !'                         │",
                "│ It fails: the name is                │",
                "└──────────────────────────────────────┘",
                "› 日本語 and more                       ",
                " Ctrl-C interrupt · Ctrl-D leave        ",
            ]
        );
        assert_eq!(frame.cursor, (8, 17));
    }

    #[test]
    fn every_row_is_as_wide_as_the_screen_and_the_cursor_is_on_it() {
        let mut asking = busy();
        asking.enter(State::Asking { request_id: "r".into(), words: "Allow Edit greet.sh? y/n".into() });
        for view in [busy(), asking, View::new("s".into())] {
            for rows in 1..30 {
                for columns in 1..90 {
                    let frame = view.frame(Size { rows, columns });
                    assert_eq!(frame.rows.len(), rows);
                    assert!(plain(&frame).iter().all(|row| text_width(row) == columns), "{rows}x{columns}");
                    assert!(frame.cursor.0 < rows && frame.cursor.1 < columns);
                }
            }
        }
    }

    #[test]
    fn a_long_result_is_cut_and_says_so() {
        let mut view = View::new("s".into());
        view.add(Kind::Result, &"line\n".repeat(100));
        let frame = view.frame(Size { rows: 40, columns: 40 });
        let shown = plain(&frame);
        assert_eq!(shown.iter().filter(|row| row.contains("line")).count(), LONGEST_RESULT);
        assert!(shown.iter().any(|row| row.contains('…')));
    }
}
