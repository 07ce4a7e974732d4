//! The input of the player, and whether it is the input that the recorded agent got.

use crate::substitution::Substitution;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Stdin};

pub struct Input(BufReader<Stdin>);

/// What was read where recorded input was expected.
#[derive(Debug)]
pub enum Given {
    Expected,
    /// The input has ended: the session asks the player to exit.
    End,
    Else(String),
}

impl Input {
    pub fn new() -> Input {
        Input(BufReader::new(io::stdin()))
    }

    /// Waits for a line; if the recorded input has no line end, for everything up to the end of input.
    pub fn expect(&mut self, recorded: &crate::Text, names: &mut Substitution) -> io::Result<Given> {
        let mut bytes = Vec::new();
        if recorded.whole {
            self.0.read_until(b'\n', &mut bytes)?;
        } else {
            io::Read::read_to_end(&mut self.0, &mut bytes)?;
        }
        if bytes.is_empty() {
            return Ok(Given::End);
        }
        let text = String::from_utf8_lossy(&bytes);
        let given = text.strip_suffix('\n').filter(|_| recorded.whole).unwrap_or(&text);
        Ok(if agrees(&recorded.text, given, names) { Given::Expected } else { Given::Else(given.to_owned()) })
    }

    /// Waits for the end of input.
    pub fn expect_end(&mut self) -> io::Result<Given> {
        let mut line = String::new();
        Ok(if self.0.read_line(&mut line)? == 0 { Given::End } else { Given::Else(line.trim_end().to_owned()) })
    }
}

/// Whether both have the same meaning. Ids differ every time; the present id of a message is learned.
fn agrees(recorded: &str, given: &str, names: &mut Substitution) -> bool {
    if recorded == given {
        return true;
    }
    let (Ok(recorded), Ok(given)) = (serde_json::from_str::<Value>(recorded), serde_json::from_str::<Value>(given))
    else {
        return false;
    };
    for name in ["uuid", "request_id"] {
        if let (Some(then), Some(now)) = (recorded[name].as_str(), given[name].as_str()) {
            names.learn(then, now);
        }
    }
    gist(&recorded) == gist(&given)
}

/// The meaning of a line of JSON: its kind, the text of a message, yes or no, what kind of control.
fn gist(line: &Value) -> [Option<&Value>; 4] {
    ["/type", "/message/content", "/response/response/behavior", "/request/subtype"].map(|place| line.pointer(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_the_same_under_another_name_and_the_name_is_learned() {
        let message = |uuid: &str, text: &str| {
            format!(r#"{{"type":"user","uuid":"{uuid}","message":{{"role":"user","content":"{text}"}}}}"#)
        };
        let mut names = Substitution::default();
        assert!(agrees(&message("then", "say one"), &message("now", "say one"), &mut names));
        assert_eq!(names.apply("said then"), "said now");
        assert!(!agrees(&message("then", "say one"), &message("now", "say two"), &mut names));
        assert!(!agrees("say one", "say two", &mut names));
    }

    #[test]
    fn yes_is_not_no() {
        let answer = |behavior: &str, message: &str| {
            let response = format!(r#"{{"behavior":"{behavior}","message":"{message}"}}"#);
            format!(r#"{{"type":"control_response","response":{{"request_id":"r","response":{response}}}}}"#)
        };
        let mut names = Substitution::default();
        assert!(agrees(&answer("deny", "no"), &answer("deny", "not today"), &mut names));
        assert!(!agrees(&answer("deny", "no"), &answer("allow", "no"), &mut names));
    }
}
