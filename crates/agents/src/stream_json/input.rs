//! The input lines: messages, interrupts, and answers to questions.

use crate::speak::Answer;
use ostler_core::fact::Ask;
use serde_json::{Value, json};

/// A message for the agent's input.
#[must_use]
pub fn message(id: &str, text: &str) -> Vec<u8> {
    line(&json!({ "type": "user", "uuid": id, "message": { "role": "user", "content": text } }))
}

#[must_use]
pub fn interrupt(id: &str) -> Vec<u8> {
    line(&json!({ "type": "control_request", "request_id": id, "request": { "subtype": "interrupt" } }))
}

#[must_use]
pub fn answer(ask: &Ask, answer: &Answer) -> Vec<u8> {
    let response = if answer.allow {
        let mut response = json!({ "behavior": "allow", "updatedInput": answered(ask, answer.text.as_deref()) });
        if answer.always {
            response["updatedPermissions"] = for_this_process(&ask.suggestions);
        }
        response
    } else {
        json!({ "behavior": "deny", "message": answer.text.as_deref().unwrap_or("The user said no.") })
    };
    line(&json!({
        "type": "control_response",
        "response": { "subtype": "success", "request_id": ask.request, "response": response },
    }))
}

/// The arguments of a question with the answers added. With several questions each line answers one; with a single
/// question all lines are its answer.
fn answered(ask: &Ask, text: Option<&str>) -> Value {
    let (mut input, questions) = (ask.input.clone(), ask.questions());
    if let (Some(text), false) = (text, questions.is_empty()) {
        let answers: Vec<&str> = if questions.len() == 1 { vec![text] } else { text.lines().collect() };
        input["answers"] =
            questions.iter().zip(answers).map(|(one, words)| (one.text.to_owned(), json!(words))).collect();
    }
    input
}

/// What an agent proposes to allow for longer, limited to its own process whatever it proposes: nothing is stored, and
/// the next process asks again.
fn for_this_process(suggestions: &Value) -> Value {
    let mut suggestions = suggestions.clone();
    for fields in suggestions.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        fields.insert("destination".to_owned(), json!("session"));
    }
    suggestions
}

/// The proposal as text; `None` when the agent proposes nothing.
#[must_use]
pub fn longer(ask: &Ask) -> Option<String> {
    let words: Vec<String> = ask.suggestions.as_array()?.iter().filter_map(suggested).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn suggested(suggestion: &Value) -> Option<String> {
    let list = |name: &str| suggestion[name].as_array().into_iter().flatten();
    match suggestion["type"].as_str()? {
        "addRules" => {
            let rules = list("rules").filter_map(|rule| {
                let tool = rule["toolName"].as_str()?;
                Some(rule["ruleContent"].as_str().map_or(tool.to_owned(), |content| format!("{tool}({content})")))
            });
            Some(rules.collect::<Vec<_>>().join(", ")).filter(|rules| !rules.is_empty())
        }
        "addDirectories" => {
            let folders: Vec<&str> = list("directories").filter_map(Value::as_str).collect();
            Some(format!("work in {}", folders.join(", ")))
        }
        "setMode" if suggestion["mode"] == "acceptEdits" => Some("every edit in the working directory".to_owned()),
        "setMode" => Some(format!("permission mode {}", suggestion["mode"].as_str().unwrap_or("unknown"))),
        other => Some(other.to_owned()),
    }
}

fn line(value: &Value) -> Vec<u8> {
    let mut bytes = value.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn always_is_what_was_proposed_and_never_outlives_the_process() {
        let suggestions = json!([
            {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "touch *"}], "behavior": "allow", "destination": "localSettings"},
            {"type": "setMode", "mode": "acceptEdits", "destination": "userSettings"},
        ]);
        let (request, text, details) = ("r".to_owned(), String::new(), Value::Null);
        let mut ask = Ask { request, tool: None, input: json!({}), text, suggestions, details };
        assert_eq!(longer(&ask).as_deref(), Some("Bash(touch *), every edit in the working directory"));
        let said = |always| {
            let line = answer(&ask, &Answer { allow: true, always, text: None });
            serde_json::from_slice::<Value>(&line).unwrap_or_default()["response"]["response"].take()
        };
        assert_eq!(said(false).get("updatedPermissions"), None);
        let allowed = &said(true)["updatedPermissions"];
        assert_eq!((&allowed[0]["destination"], &allowed[1]["destination"]), (&json!("session"), &json!("session")));
        assert_eq!(allowed[0]["rules"][0]["ruleContent"], "touch *");
        ask.suggestions = json!([]);
        assert_eq!(longer(&ask), None);
    }
}
