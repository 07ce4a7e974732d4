//! Parses the script language of the crate's documentation into steps. Pure: text in, steps out.

use serde_json::Value;
use std::time::Duration;

use crate::POLITE;

/// Separates a step from the next. With blanks, so that a text or a command may contain a plain semicolon.
const SEPARATOR: &str = " ; ";

/// One tool call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub name: String,
    pub input: Value,
}

/// What the model does in one answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    Say(String),
    Stream {
        words: usize,
        pause: Duration,
    },
    Call(Vec<Call>),
    Fail(u16),
    /// Refuses because of a usage limit that is reset in this many seconds.
    Limit(u64),
    Hang,
    Huge(usize),
    /// Says this many words and hangs up in the middle of the answer.
    Cut(usize),
    /// Answers this text, and reports this many tokens as read.
    Heavy {
        tokens: u64,
        text: String,
    },
    /// Ends its answer without a text.
    Empty,
    /// Calls this tool with arguments that cannot be parsed.
    Malformed(String),
}

/// How a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    Status(u16),
    /// Because of a usage limit that is reset in this many seconds.
    Limit(u64),
}

/// One answer, and the failures that come before it: a failed request is not part of the conversation, so its retry
/// asks for the same turn again.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Turn {
    pub failures: Vec<Failure>,
    pub action: Action,
}

impl Turn {
    fn plain(action: Action) -> Turn {
        Turn { failures: Vec::new(), action }
    }
}

/// What one user message makes the model do, answer by answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Script(Vec<Turn>);

impl Script {
    /// Every text is a script: a text in another language is a script with one polite answer.
    pub fn read(text: &str) -> Script {
        match steps(text.trim()) {
            Ok(Some(steps)) => Script(turns(steps)),
            Ok(None) => Script(vec![Turn::plain(Action::Say(POLITE.to_owned()))]),
            Err(wrong) => Script(vec![Turn::plain(Action::Say(format!("cannot read the script: {wrong}")))]),
        }
    }

    /// The answer that comes after this many answers.
    pub fn turn(&self, answers: usize) -> Turn {
        self.0.get(answers).cloned().unwrap_or_else(|| Turn::plain(Action::Say(POLITE.to_owned())))
    }
}

enum Step {
    Do(Action),
    FailOnce(Failure),
}

fn turns(steps: Vec<Step>) -> Vec<Turn> {
    let mut turns = Vec::new();
    let mut failures = Vec::new();
    for step in steps {
        match step {
            Step::FailOnce(status) => failures.push(status),
            Step::Do(action) => turns.push(Turn { failures: std::mem::take(&mut failures), action }),
        }
    }
    if !failures.is_empty() {
        turns.push(Turn { failures, action: Action::Say(POLITE.to_owned()) });
    }
    turns
}

/// The steps of a script; `None` when the text does not begin like one.
fn steps(text: &str) -> Result<Option<Vec<Step>>, String> {
    let mut rest = text;
    let mut steps = Vec::new();
    loop {
        let (keyword, after) = split_word(rest);
        let (found, left) = match keyword {
            "say" => {
                let (said, left) = until_separator(after);
                (vec![Step::Do(Action::Say(said.to_owned()))], left)
            }
            "stream" => {
                let (arguments, left) = until_separator(after);
                (vec![Step::Do(stream(arguments)?)], left)
            }
            "tool" => {
                let (call, left) = call(after)?;
                (vec![Step::Do(Action::Call(vec![call]))], end_of_step(left)?)
            }
            "tools" => {
                let (calls, left) = calls(after)?;
                (vec![Step::Do(Action::Call(calls))], end_of_step(left)?)
            }
            "ask" => {
                let Some(what) = after.strip_prefix("twice ") else {
                    return Err(format!("`ask` goes on with `twice NAME {{json}}`, not {after:?}"));
                };
                let (call, left) = call(what)?;
                let again = Step::Do(Action::Call(vec![call.clone()]));
                (vec![Step::Do(Action::Call(vec![call])), again], end_of_step(left)?)
            }
            "fail" => {
                let (arguments, left) = until_separator(after);
                (vec![fail(arguments)?], left)
            }
            "limit" => {
                let (arguments, left) = until_separator(after);
                (vec![limit(arguments)?], left)
            }
            "hang" => {
                let (arguments, left) = until_separator(after);
                if !arguments.is_empty() {
                    return Err(format!("`hang` takes nothing, not {arguments:?}"));
                }
                (vec![Step::Do(Action::Hang)], left)
            }
            "huge" => {
                let (arguments, left) = until_separator(after);
                (vec![Step::Do(Action::Huge(number(arguments, "a number of bytes")?))], left)
            }
            "cut" => {
                let (arguments, left) = until_separator(after);
                (vec![Step::Do(Action::Cut(number(arguments, "a number of words")?))], left)
            }
            "heavy" => {
                let (arguments, left) = until_separator(after);
                let (tokens, text) = split_word(arguments);
                let tokens = number(tokens, "a number of tokens")? as u64;
                (vec![Step::Do(Action::Heavy { tokens, text: text.trim().to_owned() })], left)
            }
            "empty" => {
                let (arguments, left) = until_separator(after);
                if !arguments.is_empty() {
                    return Err(format!("`empty` takes nothing, not {arguments:?}"));
                }
                (vec![Step::Do(Action::Empty)], left)
            }
            "malformed" => {
                let (tool, left) = until_separator(after);
                if tool.is_empty() || tool.contains(char::is_whitespace) {
                    return Err(format!("`malformed` goes on with the name of a tool, not {tool:?}"));
                }
                (vec![Step::Do(Action::Malformed(tool.to_owned()))], left)
            }
            // Only the first word decides whether a text is a script; later unknown words are mistakes in it.
            _ if steps.is_empty() => return Ok(None),
            unknown => return Err(format!("no step is called {unknown:?}")),
        };
        steps.extend(found);
        match left {
            Some(more) => rest = more.trim_start(),
            None => return Ok(Some(steps)),
        }
    }
}

fn split_word(text: &str) -> (&str, &str) {
    text.split_once(char::is_whitespace).unwrap_or((text, ""))
}

/// A step's own text, and what follows the separator when there is one.
fn until_separator(text: &str) -> (&str, Option<&str>) {
    // A step without arguments has nothing before the separator, whose first blank was removed with the keyword.
    if let Some(left) = text.strip_prefix("; ") {
        return ("", Some(left));
    }
    match text.split_once(SEPARATOR) {
        Some((step, left)) => (step.trim(), Some(left)),
        None => (text.trim(), None),
    }
}

/// What follows arguments that end by themselves, such as JSON.
fn end_of_step(text: &str) -> Result<Option<&str>, String> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    match text.strip_prefix(SEPARATOR) {
        Some(left) => Ok(Some(left)),
        None => Err(format!("expected `{SEPARATOR}` at {text:?}")),
    }
}

fn stream(arguments: &str) -> Result<Action, String> {
    let (words, pause) = split_word(arguments);
    let words = number(words, "a number of words")?;
    let pause = number(pause.trim(), "milliseconds")?;
    Ok(Action::Stream { words, pause: Duration::from_millis(pause as u64) })
}

fn limit(arguments: &str) -> Result<Step, String> {
    let (seconds, how_often) = split_word(arguments);
    let seconds = seconds.parse().map_err(|_| format!("`limit` needs seconds, not {seconds:?}"))?;
    match how_often.trim() {
        "" => Ok(Step::Do(Action::Limit(seconds))),
        "once" => Ok(Step::FailOnce(Failure::Limit(seconds))),
        other => Err(format!("`limit {seconds}` goes on with `once` or with nothing, not {other:?}")),
    }
}

fn fail(arguments: &str) -> Result<Step, String> {
    let (status, how_often) = split_word(arguments);
    let status = match status.parse::<u16>() {
        Ok(status @ 400..=599) => status,
        Ok(_) | Err(_) => return Err(format!("`fail` needs an HTTP status from 400 to 599, not {status:?}")),
    };
    match how_often.trim() {
        "once" => Ok(Step::FailOnce(Failure::Status(status))),
        "always" => Ok(Step::Do(Action::Fail(status))),
        other => Err(format!("`fail {status}` goes on with `once` or `always`, not {other:?}")),
    }
}

/// A tool's name, its input, and what follows. The JSON ends by itself, so it may contain the separator.
fn call(text: &str) -> Result<(Call, &str), String> {
    let (name, json) = split_word(text.trim_start());
    if name.is_empty() {
        return Err("a tool call needs a name and JSON".to_owned());
    }
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
    match values.next() {
        Some(Ok(input @ Value::Object(_))) => {
            Ok((Call { name: name.to_owned(), input }, json.get(values.byte_offset()..).unwrap_or_default()))
        }
        Some(Ok(other)) => Err(format!("the input of {name} is an object, not {other}")),
        Some(Err(error)) => Err(format!("the input of {name}: {error}")),
        None => Err(format!("{name} has no input, not even {{}}")),
    }
}

fn calls(text: &str) -> Result<(Vec<Call>, &str), String> {
    let (first, mut left) = call(text)?;
    let mut calls = vec![first];
    while !left.trim().is_empty() && !left.starts_with(SEPARATOR) {
        let (next, after) = call(left)?;
        calls.push(next);
        left = after;
    }
    Ok((calls, left))
}

fn number(text: &str, what: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("{text:?} is not {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn actions(text: &str) -> Vec<Action> {
        Script::read(text).0.into_iter().map(|turn| turn.action).collect()
    }

    fn call_of(name: &str, input: Value) -> Call {
        Call { name: name.to_owned(), input }
    }

    #[test]
    fn steps_are_read_in_order() {
        let pause = Duration::from_millis(20);
        assert_eq!(
            actions("stream 3 20 ; huge 4096 ; say a;b, c ; hang"),
            [Action::Stream { words: 3, pause }, Action::Huge(4096), Action::Say("a;b, c".to_owned()), Action::Hang]
        );
    }

    #[test]
    fn json_may_contain_the_separator() {
        let expected = call_of("Bash", json!({"command": "true ; false"}));
        assert_eq!(
            actions(r#"tool Bash {"command":"true ; false"} ; say done"#),
            [Action::Call(vec![expected]), Action::Say("done".to_owned())]
        );
    }

    #[test]
    fn several_tools_are_one_answer() {
        let calls = vec![call_of("A", json!({})), call_of("B", json!({"x": 1}))];
        assert_eq!(
            actions(r#"tools A {} B {"x":1} ; say both"#),
            [Action::Call(calls), Action::Say("both".to_owned())]
        );
    }

    #[test]
    fn asking_twice_is_two_answers_with_the_same_call() {
        let call = || Action::Call(vec![call_of("Bash", json!({"command": "id"}))]);
        assert_eq!(
            actions(r#"ask twice Bash {"command":"id"} ; say ok"#),
            [call(), call(), Action::Say("ok".to_owned())]
        );
    }

    #[test]
    fn a_failure_that_passes_belongs_to_the_answer_after_it() {
        let script = Script::read("fail 529 once ; fail 500 once ; say better");
        assert_eq!(
            script.turn(0),
            Turn {
                failures: vec![Failure::Status(529), Failure::Status(500)],
                action: Action::Say("better".to_owned())
            }
        );
        assert_eq!(Script::read("fail 429 once").turn(0).action, Action::Say(POLITE.to_owned()));
        assert_eq!(Script::read("fail 400 always").turn(0), Turn::plain(Action::Fail(400)));
        assert_eq!(actions("hang ; say x"), [Action::Hang, Action::Say("x".to_owned())]);
    }

    #[test]
    fn broken_answers_are_steps_too() {
        assert_eq!(
            actions("malformed Bash ; cut 3 ; empty ; heavy 7 a b"),
            [
                Action::Malformed("Bash".to_owned()),
                Action::Cut(3),
                Action::Empty,
                Action::Heavy { tokens: 7, text: "a b".to_owned() }
            ]
        );
    }

    #[test]
    fn other_words_get_the_polite_answer_and_so_does_the_end_of_the_script() {
        assert_eq!(actions("What a fine day"), [Action::Say(POLITE.to_owned())]);
        assert_eq!(actions(""), [Action::Say(POLITE.to_owned())]);
        assert_eq!(Script::read("say one").turn(1).action, Action::Say(POLITE.to_owned()));
    }

    #[test]
    fn a_mistake_in_a_script_is_said_aloud() {
        for broken in [
            "tool Bash {\"command\"",
            "tool Bash 7",
            "tool Bash",
            "limit soon",
            "fail 200 once",
            "fail 500",
            "say x ; sya y",
            "stream x 1",
            "cut short",
            "empty words",
            "malformed",
            "heavy words",
        ] {
            let action = Script::read(broken).turn(0).action;
            let aloud = matches!(&action, Action::Say(said) if said.starts_with("cannot read the script: "));
            assert!(aloud, "{broken}: {action:?}");
        }
    }
}
