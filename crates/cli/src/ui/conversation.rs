//! A conversation as a person reads it: the messages to the agent, and what the agent said and did.

use super::asking::in_full;
use super::style::Style;
use super::table::cut;
use super::time::size;
use ostler_core::fact::{Ask, Fact};
use ostler_engine::content::Item;
use ostler_screen::{printable, printable_lines, printable_text};

/// How many lines of a tool's output are shown.
const TOOL_LINES: usize = 6;

/// The mark before the output of a tool that failed.
const FAILED: char = '✘';

/// Turns items into text. Remembers streamed text that was already shown, so that it is not shown again as a whole.
#[derive(Debug)]
pub struct Talk {
    style: Style,
    /// Text of the agent that was shown while the agent wrote it.
    streamed: String,
    /// The last piece of that text ended with a carriage return, which has not been shown yet.
    returned: bool,
    /// Why the last turn failed, when nothing was shown after it.
    ended_with: Option<String>,
    /// The question that was shown last.
    asked: Option<String>,
    /// The width for text that is broken into rows.
    columns: usize,
}

impl Talk {
    pub fn new(style: Style, columns: Option<usize>) -> Talk {
        let columns = columns.unwrap_or(usize::MAX);
        Talk { style, streamed: String::new(), returned: false, ended_with: None, asked: None, columns }
    }

    /// A question in full, unless it was the last one shown: the person who answers must see it.
    pub fn show_again(&mut self, ask: &Ask) -> String {
        if self.asked.as_deref() == Some(ask.request.as_str()) { String::new() } else { self.question(ask) }
    }

    /// A question in full.
    pub fn question(&mut self, ask: &Ask) -> String {
        const MARK: &str = "? asks";
        self.asked = Some(ask.request.clone());
        let room = self.columns.saturating_sub(MARK.len() + 1).max(20);
        format!("{} {}", self.style.yellow(MARK), in_full(ask, self.style, room))
    }

    /// Why the last turn failed, when that was the last thing shown.
    pub fn ended_with(&self) -> Option<&str> {
        self.ended_with.as_deref()
    }

    /// What the agent says goes to `said` (standard output), everything about it to `about`.
    pub fn show(&mut self, item: &Item, said: &mut String, about: &mut String) {
        let style = self.style;
        self.ended_with = None;
        match item {
            Item::Told { text, .. } => {
                self.end_streamed(said);
                for (index, line) in printable_text(text).lines().take(20).enumerate() {
                    let mark = if index == 0 { "›" } else { " " };
                    about.push_str(&format!("{} {}\n", style.cyan(mark), style.bold(&cut(line, 400))));
                }
            }
            Item::Answered { by, allowed, always, .. } => {
                let verdict = if *allowed { style.green("allowed") } else { style.red("denied") };
                let rest = always.as_ref().map(|what| format!("; always {}", printable(what))).unwrap_or_default();
                about.push_str(&format!("  {verdict} by {}{rest}\n", printable(by)));
            }
            Item::Agent(fact) => self.show_fact(fact, said, about),
        }
    }

    fn show_fact(&mut self, fact: &Fact, said: &mut String, about: &mut String) {
        let style = self.style;
        match fact {
            Fact::Saying { text } => {
                let mut text = text.clone();
                if std::mem::take(&mut self.returned) {
                    text.insert(0, '\r');
                }
                // A line feed may follow with the next piece; together they are one line break.
                if text.ends_with('\r') {
                    self.returned = true;
                    text.pop();
                }
                let text = printable_text(&text).into_owned();
                said.push_str(&text);
                self.streamed.push_str(&text);
            }
            Fact::Said { text } => {
                if self.streamed.is_empty() {
                    said.push_str(printable_text(text).trim_end());
                    said.push('\n');
                } else {
                    self.end_streamed(said);
                }
            }
            Fact::Thought { text } => {
                self.end_streamed(said);
                for line in printable_text(text).lines() {
                    about.push_str(&format!("  {}\n", style.dim(line)));
                }
            }
            Fact::ToolCalled { name, detail, .. } => {
                self.end_streamed(said);
                let mut line = format!("{} {}", style.yellow("●"), style.bold(&printable(name)));
                if !detail.is_empty() {
                    line.push_str(&format!(" {}", cut(&printable(detail), 200)));
                }
                about.push_str(&format!("{line}\n"));
            }
            Fact::ToolReturned { text, failed, .. } => {
                let text = printable_lines(text);
                let lines: Vec<&str> = text.lines().collect();
                if *failed && lines.is_empty() {
                    about.push_str(&format!("  {}\n", style.red(&format!("{FAILED} failed"))));
                }
                for (index, line) in lines.iter().take(TOOL_LINES).enumerate() {
                    let line = cut(line, 200);
                    // Also marked by a sign, because a pipe has no colour.
                    let line = if *failed && index == 0 { format!("{FAILED} {line}") } else { line.to_string() };
                    about.push_str(&format!("  {}\n", if *failed { style.red(&line) } else { style.dim(&line) }));
                }
                if lines.len() > TOOL_LINES {
                    about
                        .push_str(&format!("  {}\n", style.dim(&format!("… {} more lines", lines.len() - TOOL_LINES))));
                }
            }
            Fact::Subagent(fact) => {
                self.end_streamed(said);
                self.show_below(fact, about);
            }
            Fact::Asked(ask) => {
                self.end_streamed(said);
                about.push_str(&self.question(ask));
            }
            Fact::TurnEnded(end) => {
                self.end_streamed(said);
                if let Some(reason) = &end.reason {
                    about.push_str(&format!("{}\n", style.red(&printable(reason))));
                }
                self.ended_with.clone_from(&end.reason);
            }
            Fact::LineTooLong { bytes } => {
                self.end_streamed(said);
                let line = format!("a line of {} is too long to show; see ostler logs --raw", size(*bytes));
                about.push_str(&format!("  {}\n", style.dim(&line)));
            }
            Fact::Limited(limit) => {
                self.end_streamed(said);
                about.push_str(&format!("  {}\n", style.dim(&format!("{} reached", printable(&limit.what)))));
            }
            Fact::Retrying(retry) => {
                self.end_streamed(said);
                let line = format!("retrying: {}", printable(&retry.reason));
                about.push_str(&format!("  {}\n", style.dim(&cut(&line, 200))));
            }
            Fact::NotOpened { reason } => about.push_str(&format!("{}\n", style.red(&printable(reason)))),
            Fact::Native { .. }
            | Fact::Model { .. }
            | Fact::Transcript { .. }
            | Fact::Ready
            | Fact::Behind { .. }
            | Fact::Recalled { .. }
            | Fact::Opened { .. }
            | Fact::ReplyDue { .. }
            | Fact::TurnStarted
            | Fact::AskClosed { .. }
            | Fact::Background { .. }
            | Fact::Unknown { .. } => {}
        }
    }

    /// A subagent's conversation is indented, dimmed and marked; none of it is the answer.
    fn show_below(&self, fact: &Fact, about: &mut String) {
        let mut all = String::new();
        let mut text = String::new();
        Talk::new(Style { colour: false }, None).show_fact(fact, &mut text, &mut all);
        all.insert_str(0, &text);
        for line in all.lines().take(TOOL_LINES) {
            about.push_str(&format!("  {}\n", self.style.dim(&format!("│ {}", cut(line, 200)))));
        }
    }

    fn end_streamed(&mut self, said: &mut String) {
        self.returned = false;
        if !self.streamed.is_empty() {
            if !self.streamed.ends_with('\n') {
                said.push('\n');
            }
            self.streamed.clear();
        }
    }
}
