//! Normalises what differs by chance: names that agents make up, times, ports, and the paths of the machine.
//!
//! Two things are promised: nothing of the machine that recorded is left, and two recordings of the same agent are the
//! same. What is replaced is recognised by its value wherever possible (this port, this folder, a time during the
//! recording), so that nothing else is replaced. The lines keep their format: they are processed as text, not parsed
//! and printed again.

use crate::words;
use jiff::{Timestamp, Zoned, tz::TimeZone};
use ostler_replay::{Action, Run, Step, Text};
use std::collections::HashMap;
use std::path::Path;

/// Longer texts are the agent's instructions to its model; their beginning is enough to recognise them.
const LONG: usize = 300;
const BEGINNING: usize = 80;

/// By how many seconds a clock may be off.
const AROUND: i64 = 60;

/// A number under such a name is a measurement, and differs every time.
const MEASURES: [&str; 4] = ["_ms", "Ms", "nanos", "duration"];

/// A text under such a name differs every time.
const NUMBERS_OF_PROCESSES: [&str; 2] = ["process_id", "pid"];

/// The text after these words differs every time.
const BEFORE_CHANCE: [&str; 3] = ["Chunk ID: ", "PGID: ", "Wall time: "];

/// What agents complain about only when the machine is busy.
const OF_A_BUSY_MACHINE: [&str; 1] = ["[STARTUP] "];

/// Where and when the recording was made.
pub struct Surroundings {
    root: String,
    port: String,
    began: Timestamp,
    ended: Timestamp,
}

impl Surroundings {
    pub fn begin(root: &Path, port: u16) -> Surroundings {
        let now = Timestamp::now();
        let root = root.to_string_lossy().into_owned();
        Surroundings { root, port: port.to_string(), began: now, ended: now }
    }

    pub fn end(&mut self) {
        self.ended = Timestamp::now();
    }
}

/// The new names of one recording.
pub struct Normal {
    /// Texts that are always replaced by the same text.
    fixed: Vec<(String, String)>,
    /// None of these texts may be in a recording.
    forbidden: Vec<String>,
    port: String,
    /// The day of the recording, and the next day if midnight came meanwhile.
    dates: Vec<String>,
    seconds: std::ops::RangeInclusive<i64>,
    names: HashMap<String, String>,
    /// How many names of each kind exist.
    counts: HashMap<String, usize>,
}

impl Normal {
    /// The conversation gets the first name.
    pub fn new(surroundings: &Surroundings, conversation: &str) -> Normal {
        let agents = ostler_mock_llm::agents::folder();
        let real = agents.canonicalize().unwrap_or_else(|_| agents.clone());
        let mut fixed = vec![
            (surroundings.root.clone(), "/recorded".to_owned()),
            (ostler_agents::stream_json::folder_name(&surroundings.root), "-recorded".to_owned()),
            (agents.to_string_lossy().into_owned(), "/agents".to_owned()),
            (real.to_string_lossy().into_owned(), "/agents".to_owned()),
        ];
        // Names of files may have only the beginning of it.
        if let Some(short) = conversation.get(..8).filter(|_| words::uuid(conversation).is_some()) {
            fixed.push((short.to_owned(), "00000001".to_owned()));
        }
        let home = std::env::home_dir().map(|home| format!("{}/", home.display()));
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().ok();
        let workspace = workspace.map(|path| path.to_string_lossy().into_owned());
        let forbidden = fixed.iter().map(|(place, _)| place.clone()).chain(home).chain(workspace).collect();
        let mut dates = Vec::new();
        for zone in [TimeZone::UTC, TimeZone::system()] {
            for at in [surroundings.began, surroundings.ended] {
                let day: Zoned = at.to_zoned(zone.clone());
                fixed.push((day.strftime("%A, %B %-d, %Y").to_string(), "Thursday, January 1, 2026".to_owned()));
                fixed.push((day.strftime("%Y/%m/%d").to_string(), "2026/01/01".to_owned()));
                dates.push(day.strftime("%Y-%m-%d").to_string());
            }
        }
        Normal {
            fixed,
            forbidden,
            port: surroundings.port.clone(),
            dates,
            seconds: surroundings.began.as_second() - AROUND..=surroundings.ended.as_second() + AROUND,
            names: HashMap::new(),
            counts: HashMap::new(),
        }
    }

    pub fn run(&mut self, run: Run) -> Run {
        Run {
            argv: run.argv.iter().map(|word| self.text(word)).collect(),
            transcript: run.transcript.map(|path| self.text(&path)),
            steps: self.steps(run.steps),
            files: run.files.into_iter().map(|(name, text)| (self.text(&name), self.text(&text))).collect(),
        }
    }

    /// Names are given strand by strand, because the order in which strands are interleaved is random.
    fn steps(&mut self, mut steps: Vec<Step>) -> Vec<Step> {
        steps.retain(|step| !is_of_a_busy_machine(&step.action));
        for place in crate::likeness::strand_by_strand(&steps) {
            steps[place].action = self.action(steps[place].action.clone());
        }
        steps
    }

    fn action(&mut self, action: Action) -> Action {
        let mut line = |text: Text| Text { text: self.line(&text.text), ..text };
        match action {
            Action::Reads(text) => Action::Reads(line(text)),
            Action::Prints(text) => Action::Prints(line(text)),
            Action::PrintsError(text) => Action::PrintsError(line(text)),
            Action::Saves(text) => Action::Saves(line(text)),
            Action::InputEnds | Action::Interrupted | Action::Ends(_) => action,
        }
    }

    /// A text that would reveal where the recording was made, if any is left.
    pub fn leak<'a>(&'a self, text: &str) -> Option<&'a str> {
        self.forbidden.iter().find(|place| text.contains(place.as_str())).map(String::as_str)
    }

    /// Normalises a line: JSON string by string and number by number, anything else as text.
    fn line(&mut self, line: &str) -> String {
        if !line.starts_with('{') {
            return self.text(line);
        }
        let (mut made, mut rest, mut key) = (String::new(), line, "");
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '"' => string_length(rest),
                '0'..='9' => words::number(rest),
                other => other.len_utf8(),
            };
            let (token, after) = rest.split_at(length);
            if first == '"' && after.starts_with(':') {
                key = token.trim_matches('"');
                made.push_str(token);
            } else if first == '"' {
                made.push_str(&self.string(key, token));
            } else if first.is_ascii_digit() {
                made.push_str(&self.number(key, token));
            } else {
                made.push_str(token);
            }
            rest = after;
        }
        made
    }

    fn string(&mut self, key: &str, quoted: &str) -> String {
        if NUMBERS_OF_PROCESSES.contains(&key) {
            return "\"1\"".to_owned();
        }
        shortened(&self.text(quoted))
    }

    fn number(&self, key: &str, number: &str) -> String {
        if MEASURES.iter().any(|end| key.ends_with(end)) {
            return "1".to_owned();
        }
        let whole = number.split('.').next().unwrap_or_default();
        self.time(whole).unwrap_or_else(|| number.to_owned())
    }

    /// Normalises any text.
    pub fn text(&mut self, text: &str) -> String {
        let text = self.fixed.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
        let (mut made, mut rest) = (String::new(), text.as_str());
        while let Some(first) = rest.chars().next() {
            let (length, replaced) = if words::is_boundary(&made) {
                self.recognised(rest).unwrap_or((first.len_utf8(), first.to_string()))
            } else {
                (first.len_utf8(), first.to_string())
            };
            made.push_str(&replaced);
            rest = rest.get(length..).unwrap_or_default();
        }
        made
    }

    /// What is at the beginning of this text: its length, and its replacement.
    fn recognised(&mut self, text: &str) -> Option<(usize, String)> {
        let begins = |length: usize| text.get(..length).map(str::to_owned);
        if let Some(length) = words::uuid(text) {
            return Some((
                length,
                self.name(begins(length)?, "uuid", |n| format!("{n:08x}-0000-4000-8000-000000000000")),
            ));
        }
        if let Some(length) = words::checksum(text) {
            return Some((length, self.name(begins(length)?, "checksum", |n| format!("{n:0length$x}"))));
        }
        if let Some((kind, length)) = words::prefixed_name(text) {
            let kind = begins(kind)?;
            return Some((length, self.name(begins(length)?, &kind, |n| format!("{kind}_{n}"))));
        }
        if let Some(words) = BEFORE_CHANCE.iter().find(|words| text.starts_with(**words)) {
            let value = text.get(words.len()..)?;
            let length = value.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(value.len());
            return Some((words.len() + length, format!("{words}0")));
        }
        if let Some(date) = self.dates.iter().find(|date| text.starts_with(date.as_str())) {
            let time = words::time_of_day(text.get(date.len()..)?);
            let kept: String = text.get(date.len()..date.len() + time)?.chars().map(zero).collect();
            return Some((date.len() + time, format!("2026-01-01{kept}")));
        }
        let length = words::digits(text);
        let number = begins(length).filter(|_| length > 0)?;
        if number == self.port {
            return Some((length, "PORT".to_owned()));
        }
        self.time(&number).map(|time| (length, time))
    }

    /// A number that is a time during the recording, in seconds or milliseconds.
    fn time(&self, digits: &str) -> Option<String> {
        let seconds = match digits.len() {
            10 => digits.parse::<i64>().ok()?,
            13 => digits.parse::<i64>().ok()? / 1000,
            _ => return None,
        };
        let noted = format!("{:0<1$}", "1767225600", digits.len());
        self.seconds.contains(&seconds).then_some(noted)
    }

    /// The same name always gets the same replacement, and two names never get the same.
    fn name(&mut self, name: String, kind: &str, make: impl FnOnce(usize) -> String) -> String {
        let count = self.counts.entry(kind.to_owned()).or_default();
        self.names
            .entry(name)
            .or_insert_with(|| {
                *count += 1;
                make(*count)
            })
            .clone()
    }
}

fn is_of_a_busy_machine(action: &Action) -> bool {
    matches!(action, Action::PrintsError(text) if OF_A_BUSY_MACHINE.iter().any(|words| text.text.starts_with(words)))
}

fn zero(character: char) -> char {
    if character.is_ascii_digit() { '0' } else { character }
}

/// The length of a JSON string with its quotes. A string without an end reaches to the end of the text.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (place, character) in text.char_indices().skip(1) {
        match character {
            '"' if !escaped => return place + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// The beginning of a long JSON string. No character is cut in two.
fn shortened(quoted: &str) -> String {
    if quoted.len() <= LONG {
        return quoted.to_owned();
    }
    let inner = quoted.chars().skip(1).take(BEGINNING).collect::<String>();
    // An escape sequence near the cut is removed.
    let safe =
        inner.rfind('\\').filter(|place| place + 6 > inner.len()).map_or(inner.as_str(), |place| &inner[..place]);
    format!("\"{} […]\"", safe.trim_end_matches('\\'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn normal() -> Normal {
        let mut surroundings = Surroundings::begin(Path::new("/tmp/ostler-record-x"), 40669);
        surroundings.end();
        Normal::new(&surroundings, "")
    }

    #[test]
    fn names_are_the_same_everywhere_and_none_is_given_twice() {
        let mut normal = normal();
        let (a, b) = ("01a1de04-6665-7552-a061-89552b5cca9e", "01a1de04-6675-7dd2-b084-e97856e0f58f");
        let made = normal
            .line(&format!(r#"{{"id":"{a}","turn":"msg_{b}","again":"{a}","s":"ses_e21fb892bffecaS3QOGRzEO6UV"}}"#));
        let name = |n: u32| format!("{n:08x}-0000-4000-8000-000000000000");
        let expected = format!(r#"{{"id":"{0}","turn":"msg_{1}","again":"{0}","s":"ses_1"}}"#, name(1), name(2));
        assert_eq!(made, expected);
    }

    #[test]
    fn times_places_and_ports_of_the_recording_go_and_others_stay() {
        let mut normal = normal();
        let now = Timestamp::now();
        let line = format!(
            r#"{{"at":"{now}","ms":{},"cwd":"/tmp/ostler-record-x/work","folder":"-tmp-ostler-record-x-work","id":"call_40669_1","old":"2024-11-05","n":4066900,"duration_ms":17,"pid":"77"}}"#,
            now.as_millisecond()
        );
        let made = normal.line(&line);
        assert!(made.starts_with(r#"{"at":"2026-01-01T00:00:00."#), "{made}");
        let rest = r#""cwd":"/recorded/work","folder":"-recorded-work","id":"call_PORT_1","old":"2024-11-05","n":4066900,"duration_ms":1,"pid":"1"}"#;
        assert!(made.ends_with(&format!(r#""ms":1767225600000,{rest}"#)), "{made}");
    }

    proptest! {
        #[test]
        fn what_is_json_stays_json(texts in prop::collection::vec(".{0,400}|(\\\\|\"|é|n){0,400}", 1..4), number in any::<f64>()) {
            let mut object = std::collections::BTreeMap::new();
            for (index, text) in texts.iter().enumerate() {
                object.insert(format!("key{index}"), serde_json::json!([text, number, { "duration_ms": number }]));
            }
            let line = serde_json::json!(object).to_string();
            let made = normal().line(&line);
            prop_assert!(serde_json::from_str::<serde_json::Value>(&made).is_ok(), "{line}\n{made}");
        }
    }
}
