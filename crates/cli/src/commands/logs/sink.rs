//! Where the lines of a log go: to the screen at once, or first through what was asked for. `--grep` leaves lines out,
//! a time is put before each line, and of the past only the last lines are kept.

use crate::exit::{Failure, Result};
use crate::follow::{err, out};
use jiff::Timestamp;
use ostler_engine::logs::{All, Side};
use ostler_screen::printable;
use regex_lite::{Regex, RegexBuilder};
use serde_json::Value;
use std::collections::VecDeque;

/// What was asked for.
#[derive(Debug, Default)]
pub struct Wanted {
    pub pattern: Option<Regex>,
    pub timestamps: bool,
    /// Entries from before this time are left out, as far as their time is known.
    pub since: Option<Timestamp>,
}

/// The pattern of `--grep`.
pub fn pattern(text: &str, ignore_case: bool) -> Result<Regex> {
    RegexBuilder::new(text).case_insensitive(ignore_case).build().map_err(|error| {
        Failure::usage(format!("--grep {text:?} is not a regular expression: {}", printable(&error.to_string())))
    })
}

pub struct Sink {
    pub wanted: Wanted,
    /// Keeps only the last lines of what comes; `None`: everything is printed.
    tail: Option<Tail>,
    /// The unfinished lines of both streams.
    begun: [Begun; 2],
    /// The last time that was known.
    at: Option<Timestamp>,
}

/// The last lines, separately for each stream.
struct Tail {
    most: usize,
    lines: [VecDeque<Vec<u8>>; 2],
    seen: [usize; 2],
}

#[derive(Default)]
struct Begun {
    text: Vec<u8>,
    at: Option<Timestamp>,
}

impl Sink {
    pub fn new(wanted: Wanted) -> Sink {
        Sink { wanted, tail: None, begun: <[Begun; 2]>::default(), at: None }
    }

    /// From now on only the last `most` lines are kept, until [`Sink::print_tail`]. What was kept so far is dropped.
    pub fn keep_last(&mut self, most: usize) {
        self.tail = Some(Tail { most, lines: <[VecDeque<Vec<u8>>; 2]>::default(), seen: [0, 0] });
        self.begun = <[Begun; 2]>::default();
        self.at = None;
    }

    /// Whether what is kept is the end of the log: of each stream everything was read, or more lines than are kept.
    /// Then the first kept line is complete, too.
    pub fn has_the_end(&self, all: All) -> bool {
        let Some(Tail { most, seen: [out, err], .. }) = &self.tail else {
            return true;
        };
        (all.out || out > most) && (all.err || err > most)
    }

    /// Prints what was kept; from here on everything is printed.
    pub fn print_tail(&mut self) -> Result<()> {
        let Some(tail) = self.tail.take() else {
            return Ok(());
        };
        for (side, lines) in [Side::Out, Side::Err].into_iter().zip(tail.lines) {
            for line in lines {
                write(side, &line)?;
            }
        }
        if self.is_plain() {
            for side in [Side::Out, Side::Err] {
                write(side, &std::mem::take(&mut self.begun[side as usize].text))?;
            }
        }
        Ok(())
    }

    /// Whether text can be printed as it is, even when a line is not complete.
    pub fn is_plain(&self) -> bool {
        self.tail.is_none() && self.wanted.pattern.is_none() && !self.wanted.timestamps
    }

    /// Whether an entry of this time was asked for. An entry without a time counts as old as the one before it.
    pub fn accepts(&mut self, at: Option<Timestamp>) -> bool {
        self.at = at.or(self.at);
        match (self.wanted.since, self.at) {
            (Some(since), Some(at)) => at >= since,
            (Some(_), None) => false,
            (None, _) => true,
        }
    }

    /// Text of this time, in lines; the last line may be unfinished.
    pub fn text(&mut self, side: Side, at: Option<Timestamp>, text: &[u8]) -> Result<()> {
        if self.is_plain() {
            return write(side, text);
        }
        for part in text.split_inclusive(|&byte| byte == b'\n') {
            let begun = &mut self.begun[side as usize];
            if begun.text.is_empty() {
                begun.at = at;
            }
            begun.text.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.end_line(side)?;
            }
        }
        Ok(())
    }

    /// Ends the unfinished lines: nothing more will come.
    pub fn end_lines(&mut self) -> Result<()> {
        for side in [Side::Out, Side::Err] {
            if !self.begun[side as usize].text.is_empty() {
                self.end_line(side)?;
            }
        }
        Ok(())
    }

    fn end_line(&mut self, side: Side) -> Result<()> {
        let Begun { text, at } = std::mem::take(&mut self.begun[side as usize]);
        if let Some(pattern) = &self.wanted.pattern
            && !pattern.is_match(plain(&String::from_utf8_lossy(&text)).trim_end_matches('\n'))
        {
            return Ok(());
        }
        if !self.wanted.timestamps {
            return self.line(side, text);
        }
        let mut line = prefix(at).into_bytes();
        line.extend(text);
        self.line(side, line)
    }

    /// An object, which is a line of its own. The pattern is searched in its texts.
    pub fn object(&mut self, mut object: Value, at: Option<Timestamp>) -> Result<()> {
        if let Some(pattern) = &self.wanted.pattern
            && !any_text(&object, &|text| pattern.is_match(text))
        {
            return Ok(());
        }
        if let (Some(at), Some(fields)) = (at, object.as_object_mut()) {
            fields.insert("at".to_owned(), Value::from(at.to_string()));
        }
        self.line(Side::Out, format!("{object}\n").into_bytes())
    }

    fn line(&mut self, side: Side, line: Vec<u8>) -> Result<()> {
        let Some(tail) = &mut self.tail else {
            return write(side, &line);
        };
        tail.seen[side as usize] += 1;
        let lines = &mut tail.lines[side as usize];
        lines.push_back(line);
        if lines.len() > tail.most {
            lines.pop_front();
        }
        Ok(())
    }
}

fn write(side: Side, text: &[u8]) -> Result<()> {
    match side {
        Side::Out => out(text),
        Side::Err => err(text),
    }
}

/// The time before a line: in UTC, to the second.
fn prefix(at: Option<Timestamp>) -> String {
    match at {
        Some(at) => at.strftime("%Y-%m-%dT%H:%M:%SZ ").to_string(),
        None => " ".repeat("2026-11-16T06:07:46Z ".len()),
    }
}

/// A line without our own colours: a pattern is matched with the text that a person reads.
fn plain(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        text.push_str(before);
        rest = after.split_once('m').map_or("", |(_, behind)| behind);
    }
    text.push_str(rest);
    text
}

fn any_text(value: &Value, matches: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => matches(text),
        Value::Array(list) => list.iter().any(|one| any_text(one, matches)),
        Value::Object(fields) => fields.values().any(|one| any_text(one, matches)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn kept(sink: &Sink) -> Vec<String> {
        let lines = &sink.tail.as_ref().unwrap().lines;
        lines.iter().flatten().map(|line| String::from_utf8_lossy(line).into_owned()).collect()
    }

    #[test]
    fn the_last_lines_that_match_are_kept_with_their_times_and_without_looking_at_colours() {
        let wanted = Wanted { pattern: Some(pattern("^one [0-9]$", true).unwrap()), timestamps: true, since: None };
        let mut sink = Sink::new(wanted);
        sink.keep_last(2);
        let at = Timestamp::from_second(0).ok();
        for text in ["one 1\none 2\ntwo 3\n\x1b[1mOn", "e\x1b[0m 4\n", "one 5"] {
            sink.text(Side::Out, at, text.as_bytes()).unwrap();
        }
        assert!(sink.has_the_end(All::of_out(false)));
        assert_eq!(kept(&sink), ["1970-01-01T00:00:00Z one 2\n", "1970-01-01T00:00:00Z \x1b[1mOne\x1b[0m 4\n"]);
        sink.end_lines().unwrap();
        assert_eq!(kept(&sink)[1], "1970-01-01T00:00:00Z one 5");
    }

    #[test]
    fn each_stream_keeps_its_own_last_lines() {
        let mut sink = Sink::new(Wanted::default());
        sink.keep_last(1);
        sink.text(Side::Err, None, b"e1\n").unwrap();
        sink.text(Side::Out, None, b"o1\no2\n").unwrap();
        assert_eq!(kept(&sink), ["o2\n", "e1\n"]);
        assert!(sink.has_the_end(All { out: false, err: true }) && !sink.has_the_end(All { out: true, err: false }));
    }

    #[test]
    fn a_pattern_is_looked_for_in_the_texts_of_an_object() {
        let mut sink = Sink::new(Wanted { pattern: Some(pattern("a\"b", false).unwrap()), ..Wanted::default() });
        sink.keep_last(9);
        sink.object(serde_json::json!({ "text": "a\"b" }), Timestamp::from_second(0).ok()).unwrap();
        sink.object(serde_json::json!({ "text": ["ab"], "n": 1 }), None).unwrap();
        assert_eq!(kept(&sink), ["{\"at\":\"1970-01-01T00:00:00Z\",\"text\":\"a\\\"b\"}\n"]);
        assert!(pattern("(", false).is_err());
    }
}
