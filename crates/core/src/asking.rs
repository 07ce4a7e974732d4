//! How a question is shown. Every face shows it in the same way.
//!
//! A person decides by what is shown here, so it is the tool and its whole input, never only what the agent says about
//! it. If an input has an obvious subject (a command, a file), the subject comes first and every other field after it;
//! any other input is shown as JSON. What the agent says about it comes last and is marked as such. Nothing in it can
//! be hidden: see [`crate::visible`].

use crate::fact::Ask;
use crate::visible::{LINE_BREAK, rows, shortened, visible};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

/// The first of these that an input has as text is its subject.
const SUBJECTS: [&str; 13] = [
    "command",
    "cmd",
    "script",
    "file_path",
    "filePath",
    "filepath",
    "notebook_path",
    "path",
    "url",
    "pattern",
    "query",
    "prompt",
    "text",
];
/// Up to this many blank lines in a row are shown one by one.
const BLANK_LINES: usize = 3;

/// A question, split into its parts for display. The stored texts are as the agent gave them; what the methods return
/// is safe to print.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    tool: Option<String>,
    /// The subject of the input, or the whole input if it has no subject.
    input: String,
    /// The other fields of the input.
    fields: Vec<(String, Value)>,
    /// Our remark when the input is not known.
    note: Option<&'static str>,
    /// What the agent says about it.
    said: Vec<String>,
}

/// One line of a question that is shown in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub kind: RowKind,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// What is asked for.
    Head,
    /// More of its input.
    Input,
    /// What is said about it.
    Said,
}

/// A question in one line: what is asked for, and what is said about it if there is room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub asked: String,
    pub said: String,
}

impl Shown {
    #[must_use]
    pub fn of(ask: &Ask) -> Shown {
        let mut shown =
            Shown { tool: ask.tool.clone(), input: String::new(), fields: Vec::new(), note: None, said: Vec::new() };
        if ask.questions().is_empty() {
            shown.take_input(&ask.input, &ask.details);
        } else {
            shown.take_questions(ask);
        }
        if !ask.questions().iter().any(|question| question.text == ask.text.trim()) {
            shown.take_words(&ask.text);
        }
        shown
    }

    fn take_input(&mut self, input: &Value, details: &Value) {
        match input {
            Value::Null => self.take_details(details),
            Value::Object(fields) => {
                let subject = SUBJECTS.into_iter().find(|name| fields.get(*name).and_then(subject).is_some());
                self.input = match subject {
                    Some(name) => subject_of(&fields[name]),
                    None => input.to_string(),
                };
                for (name, value) in fields.iter().filter(|_| subject.is_some()) {
                    match (name.as_str(), value) {
                        (name, _) if Some(name) == subject => {}
                        // The description of a command is what the model says about it.
                        ("description", Value::String(words)) if subject == Some("command") => {
                            self.said.push(words.clone());
                        }
                        (name, value) => self.fields.push((name.to_owned(), value.clone())),
                    }
                }
            }
            Value::String(_) | Value::Array(_) | Value::Number(_) | Value::Bool(_) => self.input = text_of(input),
        }
    }

    /// The agent did not report the input; what it shows instead is all that is known.
    fn take_details(&mut self, details: &Value) {
        self.note = Some("its input is not known; the agent describes it like this");
        details["title"].as_str().unwrap_or_default().clone_into(&mut self.input);
        for place in details["locations"].as_array().into_iter().flatten() {
            let path = if place["path"].is_string() { &place["path"] } else { place };
            self.fields.push(("location".to_owned(), path.clone()));
        }
        for part in details["content"].as_array().into_iter().flatten() {
            let field = match (part["type"].as_str(), part["newText"].as_str(), part["content"]["text"].as_str()) {
                (Some("diff"), Some(new), _) => {
                    let path = part["path"].as_str().unwrap_or_default();
                    (format!("change of {path}"), change(part["oldText"].as_str().unwrap_or_default(), new).into())
                }
                (Some("content"), _, Some(text)) => ("shows".to_owned(), text.into()),
                _ => ("shows".to_owned(), part.clone()),
            };
            self.fields.push(field);
        }
    }

    fn take_questions(&mut self, ask: &Ask) {
        let questions = ask.questions();
        let lines = questions.iter().map(|question| match question.choices.is_empty() {
            true => question.text.to_owned(),
            false => format!("{} ({})", question.text, question.choices.join(" | ")),
        });
        self.input = lines.collect::<Vec<_>>().join("\n");
        for (name, value) in ask.input.as_object().into_iter().flatten().filter(|(name, _)| *name != "questions") {
            self.fields.push((name.clone(), value.clone()));
        }
        for one in ask.input["questions"].as_array().into_iter().flatten() {
            for option in one["options"].as_array().into_iter().flatten() {
                if let (Some(label), Some(words)) = (option["label"].as_str(), option["description"].as_str()) {
                    self.said.push(format!("{label}: {words}"));
                }
            }
        }
    }

    /// Adds the agent's words, unless the input already has them.
    fn take_words(&mut self, words: &str) {
        let words = words.trim();
        let bare = words.trim_matches('`');
        let with_tool = self.tool.as_ref().map(|tool| format!("{tool} {}", self.input));
        let values = self.fields.iter().filter_map(|(_, value)| value.as_str()).chain([self.input.as_str()]);
        let is_there = values
            .chain(self.said.iter().map(String::as_str))
            .any(|value| value == bare || value.lines().any(|line| line == words));
        if !words.is_empty() && !is_there && with_tool.as_deref() != Some(words) {
            self.said.push(words.to_owned());
        }
    }

    /// In one line of at most so many columns. If there is not enough room, what the agent says is left out first, then
    /// the values of the other fields, then the middle of the input.
    #[must_use]
    pub fn line(&self, columns: usize) -> Line {
        let head = self.head();
        let head = shortened(&head, columns.saturating_sub(8).max(columns / 2));
        let gap = usize::from(!head.is_empty() && !self.input.is_empty());
        let note = if self.note.is_some() { " (input not known)" } else { "" };
        let room = columns.saturating_sub(head.width() + gap + note.width());
        let input = visible(&self.input);
        let fields = self.fields_within(room.saturating_sub(input.width()));
        let input = shortened(&input, room.saturating_sub(fields.width()));
        let asked = format!("{head}{}{input}{note}{fields}", " ".repeat(gap));
        let asked = shortened(&asked, columns).into_owned();
        let left = columns.saturating_sub(asked.width());
        let said = if self.said.is_empty() { String::new() } else { format!(" {}", self.says()) };
        let said = if said.width() <= left || left >= 24 { shortened(&said, left).into_owned() } else { String::new() };
        Line { asked, said }
    }

    /// The other fields, in so many columns if they fit. At least their number is always shown.
    fn fields_within(&self, columns: usize) -> String {
        if self.fields.is_empty() {
            return String::new();
        }
        let whole = Value::Object(self.fields.iter().cloned().collect()).to_string();
        let whole = format!(" {}", visible(&whole));
        let names: Vec<&str> = self.fields.iter().map(|(name, _)| name.as_str()).collect();
        let names = format!(" (with {})", visible(&names.join(", ")));
        [whole, names].into_iter().find(|text| text.width() <= columns).unwrap_or(format!(" (+{})", self.fields.len()))
    }

    /// The whole question, in rows of at most so many columns.
    #[must_use]
    pub fn full(&self, columns: usize) -> Vec<Row> {
        let mut all = Vec::new();
        block(&mut all, RowKind::Head, &self.head(), &self.input, columns);
        for (name, value) in &self.fields {
            block(&mut all, RowKind::Input, &format!("  {}:", visible(name)), &text_of(value), columns);
        }
        let mut say = |text: String| {
            let text = rows(&text, columns.saturating_sub(2).max(1)).map(|row| format!("  {row}")).collect::<Vec<_>>();
            all.extend(text.into_iter().map(|text| Row { kind: RowKind::Said, text }));
        };
        if let Some(note) = self.note {
            say(format!("({note})"));
        }
        if !self.said.is_empty() {
            say(self.says());
        }
        all
    }

    fn head(&self) -> String {
        self.tool.as_deref().map(visible).unwrap_or_default().into_owned()
    }

    fn says(&self) -> String {
        format!("(it says: {})", visible(&self.said.join("; ")))
    }
}

/// A text after its label: in the same row if it is one line that fits, otherwise below the label, line by line behind
/// a bar, so that no line of the text can be mistaken for a line of ours.
fn block(all: &mut Vec<Row>, kind: RowKind, label: &str, text: &str, columns: usize) {
    let gap = if label.is_empty() || text.is_empty() { "" } else { " " };
    if !text.contains('\n') {
        let line = format!("{label}{gap}{}", visible(text));
        if line.width() <= columns {
            all.push(Row { kind, text: line });
            return;
        }
    }
    let lines = text.split('\n').count();
    let counted = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let size = format!("({}, {})", counted(lines, "line"), counted(text.chars().count(), "char"));
    let head = format!("{label}{gap}{size}");
    all.extend(rows(&head, columns.max(1)).map(|row| Row { kind, text: row.to_owned() }));
    for line in visible_lines(text) {
        let bars = rows(&line, columns.saturating_sub(4).max(1)).map(|row| format!("  │ {row}")).collect::<Vec<_>>();
        all.extend(bars.into_iter().map(|text| Row { kind: RowKind::Input, text }));
    }
}

/// The lines of a text, each with a visible sign for its line break. Many blank lines in a row are replaced by their
/// number.
fn visible_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut shown = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let blank = lines[at..].iter().take_while(|line| line.trim().is_empty()).count();
        // There is no further line after the last line break.
        let counted = if at + blank == lines.len() { blank.saturating_sub(1) } else { blank };
        if counted > BLANK_LINES {
            shown.push(format!("⟨{counted} blank lines⟩"));
            at += blank;
            continue;
        }
        let mut line = visible(lines[at]).into_owned();
        if at + 1 < lines.len() {
            line.push(LINE_BREAK);
        }
        shown.push(line);
        at += 1;
    }
    shown
}

/// Whether a value can be the subject of an input: a text, or the words of a command.
fn subject(value: &Value) -> Option<()> {
    match value {
        Value::String(_) => Some(()),
        Value::Array(words) => words.iter().all(Value::is_string).then_some(()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

fn subject_of(value: &Value) -> String {
    let Value::Array(words) = value else {
        return text_of(value);
    };
    let quoted = words.iter().map(|word| match word.as_str() {
        Some(word) if !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || "\"'\\".contains(c)) => {
            word.to_owned()
        }
        Some(_) | None => word.to_string(),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// How a text changes, line by line: all lines between the common beginning and the common end.
fn change(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let begin = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let end = old[begin..].iter().rev().zip(new[begin..].iter().rev()).take_while(|(old, new)| old == new).count();
    let mut text = vec![format!("from line {}", begin + 1)];
    text.extend(old[begin..old.len() - end].iter().map(|line| format!("- {line}")));
    text.extend(new[begin..new.len() - end].iter().map(|line| format!("+ {line}")));
    text.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn ask(tool: &str, input: Value, text: &str) -> Ask {
        Ask {
            request: "r".to_owned(),
            tool: Some(tool.to_owned()),
            input,
            text: text.to_owned(),
            suggestions: Value::Null,
            details: Value::Null,
        }
    }

    fn line(ask: &Ask, columns: usize) -> String {
        let line = Shown::of(ask).line(columns);
        line.asked + &line.said
    }

    fn full(ask: &Ask, columns: usize) -> Vec<String> {
        Shown::of(ask).full(columns).into_iter().map(|row| row.text).collect()
    }

    #[test]
    fn a_command_is_shown_and_what_it_is_called_only_after_it() {
        let input = json!({ "command": "rm -rf precious", "description": "List the files", "timeout": 5 });
        let ask = ask("Bash", input, "List the files");
        assert_eq!(line(&ask, 200), r#"Bash rm -rf precious {"timeout":5} (it says: List the files)"#);
        assert_eq!(line(&ask, 40), r#"Bash rm -rf precious {"timeout":5}"#);
        assert_eq!(line(&ask, 30), "Bash rm -rf precious (+1)");
        assert_eq!(full(&ask, 80), ["Bash rm -rf precious", "  timeout: 5", "  (it says: List the files)"]);
    }

    #[test]
    fn every_line_of_a_command_is_shown() {
        let ask = ask("Bash", json!({ "command": "echo harmless\nrm -rf precious" }), "echo harmless");
        assert_eq!(line(&ask, 80), "Bash echo harmless⏎rm -rf precious");
        assert_eq!(full(&ask, 80), ["Bash (2 lines, 29 chars)", "  │ echo harmless⏎", "  │ rm -rf precious"]);
        assert_eq!(full(&ask, 12)[2..5], ["  │ echo har", "  │ mless⏎", "  │ rm -rf p"]);
    }

    #[test]
    fn the_words_of_a_command_keep_apart() {
        let ask = ask("execute", json!({ "command": ["bash", "-lc", "echo a\nrm b"], "cwd": "/x" }), "");
        assert_eq!(line(&ask, 80), r#"execute bash -lc "echo a\nrm b" {"cwd":"/x"}"#);
    }

    #[test]
    fn an_input_without_a_known_field_is_json_and_none_of_it_is_left_out() {
        let ask = ask("mcp__x__y", json!({ "zone": { "id": 1 }, "description": "harmless", "really": true }), "");
        assert_eq!(line(&ask, 200), r#"mcp__x__y {"description":"harmless","really":true,"zone":{"id":1}}"#);
        assert_eq!(line(&self::ask("T", json!([1, "a\u{202e}b"]), ""), 80), "T [1,\"a⟨U+202E⟩b\"]");
        assert_eq!(line(&self::ask("T", json!({}), ""), 80), "T {}");
    }

    #[test]
    fn a_field_called_questions_makes_no_question_of_a_tool() {
        let input = json!({ "questions": [{ "question": "Which colour?" }], "command": "rm" });
        let ask = ask("mcp__x__y", input, "");
        assert!(ask.questions().is_empty());
        assert_eq!(line(&ask, 200), r#"mcp__x__y rm {"questions":[{"question":"Which colour?"}]}"#);
    }

    #[test]
    fn a_question_shows_its_choices_and_what_they_mean() {
        let options = json!([{ "label": "Red", "description": "r" }, { "label": "Blue", "description": "b" }]);
        let ask =
            ask("AskUserQuestion", json!({ "questions": [{ "question": "Which?", "options": options }] }), "Which?");
        assert_eq!(line(&ask, 80), "AskUserQuestion Which? (Red | Blue) (it says: Red: r; Blue: b)");
    }

    #[test]
    fn an_input_that_was_not_told_is_said_to_be_missing() {
        let mut ask = ask("edit", Value::Null, "Writing to xx");
        ask.details = json!({ "title": "Writing to xx", "kind": "edit", "locations": [{ "path": "/w/xx" }],
            "content": [{ "type": "diff", "path": "/w/xx", "oldText": "a\nb\nc\n", "newText": "a\nB\nc\n" }] });
        assert_eq!(
            full(&ask, 80),
            [
                "edit Writing to xx",
                "  location: /w/xx",
                "  change of /w/xx: (3 lines, 19 chars)",
                "  │ from line 2⏎",
                "  │ - b⏎",
                "  │ + B",
                "  (its input is not known; the agent describes it like this)",
            ]
        );
        assert_eq!(line(&ask, 60), "edit Writing to xx (input not known) (+2)");
    }

    #[test]
    fn blank_lines_do_not_push_the_rest_out_of_sight() {
        let ask = ask("Bash", json!({ "command": format!("ls{}rm", "\n \n".repeat(200)) }), "");
        assert_eq!(full(&ask, 80), ["Bash (401 lines, 604 chars)", "  │ ls⏎", "  │ ⟨399 blank lines⟩", "  │ rm"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn no_input_breaks_a_line_or_exceeds_its_columns(
            tool in any::<String>(), command in any::<String>(), name in any::<String>(), other in any::<String>(),
            text in any::<String>(), columns in 24usize..130,
        ) {
            let ask = ask(&tool, json!({ "command": command, name: other }), &text);
            let line = line(&ask, columns);
            prop_assert!(line.width() <= columns, "{}", line.width());
            prop_assert!(!line.chars().any(char::is_control));
            for row in full(&ask, columns) {
                prop_assert!(!row.chars().any(char::is_control));
            }
        }
    }
}
