//! The script language of the crate's documentation, from text to steps. Pure: text in, steps out.

use serde_json::Value;
use std::time::Duration;

use crate::POLITE;

/// A step is separated from the next by this, so that a plain semicolon may stand in a text or a command.
const SEPARATOR: &str = " ; ";

/// One tool call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub name: String,
    pub input: Value,
}

/// What the model does in one answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Deed {
    Say(String),
    Stream {
        words: usize,
        pause: Duration,
    },
    Call(Vec<Call>),
    Fail(u16),
    /// Refuses for a usage limit that is reset in so many seconds.
    Limit(u64),
    Hang,
    Huge(usize),
    /// Says so many words and hangs up in the middle of the answer.
    Cut(usize),
    /// Says this, and that it has read so many tokens for it.
    Heavy {
        tokens: u64,
        text: String,
    },
    /// Ends its answer without having said anything.
    Empty,
    /// Calls this tool with arguments that cannot be read.
    Malformed(String),
}

/// How a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    Status(u16),
    /// For a usage limit that is reset in so many seconds.
    Limit(u64),
}

/// One answer, and the failures that come before it: a failed request leaves no trace in the conversation, so its retry
/// asks for the same turn again.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Turn {
    pub failures: Vec<Failure>,
    pub deed: Deed,
}

impl Turn {
    fn plain(deed: Deed) -> Turn {
        Turn { failures: Vec::new(), deed }
    }
}

/// What one user message makes the model do, answer by answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Script(Vec<Turn>);

impl Script {
    /// Every text is a script: one in another language is a script of one polite answer.
    pub fn read(text: &str) -> Script {
        match steps(text.trim()) {
            Ok(Some(steps)) => Script(turns(steps)),
            Ok(None) => Script(vec![Turn::plain(Deed::Say(POLITE.to_owned()))]),
            Err(wrong) => Script(vec![Turn::plain(Deed::Say(format!("cannot read the script: {wrong}")))]),
        }
    }

    /// The answer that follows after this many answers.
    pub fn turn(&self, answers: usize) -> Turn {
        self.0.get(answers).cloned().unwrap_or_else(|| Turn::plain(Deed::Say(POLITE.to_owned())))
    }
}

enum Step {
    Do(Deed),
    FailOnce(Failure),
}

fn turns(steps: Vec<Step>) -> Vec<Turn> {
    let mut turns = Vec::new();
    let mut failures = Vec::new();
    for step in steps {
        match step {
            Step::FailOnce(status) => failures.push(status),
            Step::Do(deed) => turns.push(Turn { failures: std::mem::take(&mut failures), deed }),
        }
    }
    if !failures.is_empty() {
        turns.push(Turn { failures, deed: Deed::Say(POLITE.to_owned()) });
    }
    turns
}

/// The steps of a script; none when the text does not begin like one.
fn steps(text: &str) -> Result<Option<Vec<Step>>, String> {
    let mut rest = text;
    let mut steps = Vec::new();
    loop {
        let (keyword, after) = split_word(rest);
        let (found, left) = match keyword {
            "say" => {
                let (said, left) = until_separator(after);
                (vec![Step::Do(Deed::Say(said.to_owned()))], left)
            }
            "stream" => {
                let (arguments, left) = until_separator(after);
                (vec![Step::Do(stream(arguments)?)], left)
            }
            "tool" => {
                let (call, left) = call(after)?;
                (vec![Step::Do(Deed::Call(vec![call]))], end_of_step(left)?)
            }
            "tools" => {
                let (calls, left) = calls(after)?;
                (vec![Step::Do(Deed::Call(calls))], end_of_step(left)?)
            }
            "ask" => {
                let Some(what) = after.strip_prefix("twice ") else {
                    return Err(format!("`ask` goes on with `twice NAME {{json}}`, not {after:?}"));
                };
                let (call, left) = call(what)?;
                let again = Step::Do(Deed::Call(vec![call.clone()]));
                (vec![Step::Do(Deed::Call(vec![call])), again], end_of_step(left)?)
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
                (vec![Step::Do(Deed::Hang)], left)
            }
            "huge" => {
                let (arguments, left) = until_separator(after);
                (vec![Step::Do(Deed::Huge(number(arguments, "a number of bytes")?))], left)
            }
            "cut" => {
                let (arguments, left) = until_separator(after);
                (vec![Step::Do(Deed::Cut(number(arguments, "a number of words")?))], left)
            }
            "heavy" => {
                let (arguments, left) = until_separator(after);
                let (tokens, text) = split_word(arguments);
                let tokens = number(tokens, "a number of tokens")? as u64;
                (vec![Step::Do(Deed::Heavy { tokens, text: text.trim().to_owned() })], left)
            }
            "empty" => {
                let (arguments, left) = until_separator(after);
                if !arguments.is_empty() {
                    return Err(format!("`empty` takes nothing, not {arguments:?}"));
                }
                (vec![Step::Do(Deed::Empty)], left)
            }
            "malformed" => {
                let (tool, left) = until_separator(after);
                if tool.is_empty() || tool.contains(char::is_whitespace) {
                    return Err(format!("`malformed` goes on with the name of a tool, not {tool:?}"));
                }
                (vec![Step::Do(Deed::Malformed(tool.to_owned()))], left)
            }
            // Only the first word tells whether a text is a script; later ones are mistakes in it.
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

/// A step's own text, and what comes after the separator when there is one.
fn until_separator(text: &str) -> (&str, Option<&str>) {
    // A step without arguments has nothing before the separator, whose first blank the keyword took.
    if let Some(left) = text.strip_prefix("; ") {
        return ("", Some(left));
    }
    match text.split_once(SEPARATOR) {
        Some((step, left)) => (step.trim(), Some(left)),
        None => (text.trim(), None),
    }
}

/// After arguments that know their own end, such as JSON.
fn end_of_step(text: &str) -> Result<Option<&str>, String> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    match text.strip_prefix(SEPARATOR) {
        Some(left) => Ok(Some(left)),
        None => Err(format!("expected `{SEPARATOR}` at {text:?}")),
    }
}

fn stream(arguments: &str) -> Result<Deed, String> {
    let (words, pause) = split_word(arguments);
    let words = number(words, "a number of words")?;
    let pause = number(pause.trim(), "milliseconds")?;
    Ok(Deed::Stream { words, pause: Duration::from_millis(pause as u64) })
}

fn limit(arguments: &str) -> Result<Step, String> {
    let (seconds, how_often) = split_word(arguments);
    let seconds = seconds.parse().map_err(|_| format!("`limit` wants seconds, not {seconds:?}"))?;
    match how_often.trim() {
        "" => Ok(Step::Do(Deed::Limit(seconds))),
        "once" => Ok(Step::FailOnce(Failure::Limit(seconds))),
        other => Err(format!("`limit {seconds}` goes on with `once` or with nothing, not {other:?}")),
    }
}

fn fail(arguments: &str) -> Result<Step, String> {
    let (status, how_often) = split_word(arguments);
    let status = match status.parse::<u16>() {
        Ok(status @ 400..=599) => status,
        Ok(_) | Err(_) => return Err(format!("`fail` wants an HTTP status from 400 to 599, not {status:?}")),
    };
    match how_often.trim() {
        "once" => Ok(Step::FailOnce(Failure::Status(status))),
        "always" => Ok(Step::Do(Deed::Fail(status))),
        other => Err(format!("`fail {status}` goes on with `once` or `always`, not {other:?}")),
    }
}

/// A tool's name, its input, and what comes after. The JSON decides where it ends, so it may contain the separator.
fn call(text: &str) -> Result<(Call, &str), String> {
    let (name, json) = split_word(text.trim_start());
    if name.is_empty() {
        return Err("a tool call wants a name and JSON".to_owned());
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

    fn deeds(text: &str) -> Vec<Deed> {
        Script::read(text).0.into_iter().map(|turn| turn.deed).collect()
    }

    fn call_of(name: &str, input: Value) -> Call {
        Call { name: name.to_owned(), input }
    }

    #[test]
    fn steps_are_read_in_order() {
        let pause = Duration::from_millis(20);
        assert_eq!(
            deeds("stream 3 20 ; huge 4096 ; say a;b, c ; hang"),
            [Deed::Stream { words: 3, pause }, Deed::Huge(4096), Deed::Say("a;b, c".to_owned()), Deed::Hang]
        );
    }

    #[test]
    fn json_may_contain_the_separator() {
        let expected = call_of("Bash", json!({"command": "true ; false"}));
        assert_eq!(
            deeds(r#"tool Bash {"command":"true ; false"} ; say done"#),
            [Deed::Call(vec![expected]), Deed::Say("done".to_owned())]
        );
    }

    #[test]
    fn several_tools_are_one_answer() {
        let calls = vec![call_of("A", json!({})), call_of("B", json!({"x": 1}))];
        assert_eq!(deeds(r#"tools A {} B {"x":1} ; say both"#), [Deed::Call(calls), Deed::Say("both".to_owned())]);
    }

    #[test]
    fn asking_twice_is_two_answers_with_the_same_call() {
        let call = || Deed::Call(vec![call_of("Bash", json!({"command": "id"}))]);
        assert_eq!(deeds(r#"ask twice Bash {"command":"id"} ; say ok"#), [call(), call(), Deed::Say("ok".to_owned())]);
    }

    #[test]
    fn a_failure_that_passes_belongs_to_the_answer_after_it() {
        let script = Script::read("fail 529 once ; fail 500 once ; say better");
        assert_eq!(
            script.turn(0),
            Turn { failures: vec![Failure::Status(529), Failure::Status(500)], deed: Deed::Say("better".to_owned()) }
        );
        assert_eq!(Script::read("fail 429 once").turn(0).deed, Deed::Say(POLITE.to_owned()));
        assert_eq!(Script::read("fail 400 always").turn(0), Turn::plain(Deed::Fail(400)));
        assert_eq!(deeds("hang ; say x"), [Deed::Hang, Deed::Say("x".to_owned())]);
    }

    #[test]
    fn broken_answers_are_steps_too() {
        assert_eq!(
            deeds("malformed Bash ; cut 3 ; empty ; heavy 7 a b"),
            [
                Deed::Malformed("Bash".to_owned()),
                Deed::Cut(3),
                Deed::Empty,
                Deed::Heavy { tokens: 7, text: "a b".to_owned() }
            ]
        );
    }

    #[test]
    fn other_words_get_the_polite_answer_and_so_does_the_end_of_the_script() {
        assert_eq!(deeds("What a fine day"), [Deed::Say(POLITE.to_owned())]);
        assert_eq!(deeds(""), [Deed::Say(POLITE.to_owned())]);
        assert_eq!(Script::read("say one").turn(1).deed, Deed::Say(POLITE.to_owned()));
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
            let deed = Script::read(broken).turn(0).deed;
            let aloud = matches!(&deed, Deed::Say(said) if said.starts_with("cannot read the script: "));
            assert!(aloud, "{broken}: {deed:?}");
        }
    }
}
