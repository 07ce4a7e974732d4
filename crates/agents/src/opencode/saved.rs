//! What proves that opencode has saved something: the parts of its messages are rows of its database, with the ids that
//! are also in its output.
//!
//! A row is written when a part begins and again as it grows, so its existence proves little: a text must have its full
//! length, a tool its result. (If opencode is killed at the end of a turn, the message has no end time, but its text is
//! complete.)

use crate::any_json::{AnyJson, tolerantly};
use crate::saved::Row;
use serde::Deserialize;

const PROMPT: &str = "prompt ";
const PART: &str = "part ";

/// A message to the agent, whose id we do not know.
pub fn prompt(text: &str) -> String {
    format!("{PROMPT}{}", text.trim())
}

/// A tool, or the end of a step.
pub fn part(id: &str) -> String {
    format!("{PART}{id}")
}

/// A text of this length.
pub fn text(id: &str, text: &str) -> String {
    format!("{PART}{id} {}", text.len())
}

/// The mark of a text of which only the length is known.
pub fn part_of(id: &str, length: u64) -> String {
    format!("{PART}{id} {length}")
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    #[serde(borrow)]
    role: AnyJson<'a>,
    time: AnyJson<'a, Time<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Time<'a> {
    #[serde(borrow)]
    created: AnyJson<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Part<'a> {
    #[serde(rename = "type", borrow)]
    kind: AnyJson<'a>,
    text: AnyJson<'a>,
    state: AnyJson<'a, ToolState<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ToolState<'a> {
    #[serde(borrow)]
    status: AnyJson<'a>,
}

/// Removes from `wanted` the mark of this row.
pub fn remove_found(row: &Row<'_>, wanted: &mut Vec<&str>) {
    tolerantly(row.part_data, |data| {
        let Ok(data) = serde_json::from_slice::<Part<'_>>(data) else {
            return false;
        };
        let message = serde_json::from_slice::<Message<'_>>(row.message_data).unwrap_or_default();
        let written = data.text.text().unwrap_or_default();
        let by_id = text(row.part, written);
        if data.kind.is("text") && wanted.contains(&by_id.as_str()) {
            wanted.retain(|mark| *mark != by_id);
            return true;
        }
        let found = match data.kind.text() {
            Some("text") if is_of_user(&message) && is_older(&message, row.since_ms) => return true,
            Some("text") if is_of_user(&message) => prompt(written),
            Some("text") => return true,
            Some("tool") if is_running(&data) => return true,
            Some(_) | None => part(row.part),
        };
        wanted.retain(|mark| *mark != found);
        true
    });
}

fn is_of_user(message: &Message<'_>) -> bool {
    message.role.is("user")
}

fn is_older(message: &Message<'_>, than_ms: u64) -> bool {
    let created = message.time.object().and_then(|time| time.created.count());
    created.is_some_and(|created| created < than_ms)
}

fn is_running(tool: &Part<'_>) -> bool {
    let status = tool.state.object().and_then(|state| state.status.text());
    !matches!(status, Some("completed" | "error"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left<'a>(part_data: &str, role: &str, wanted: Vec<&'a str>) -> Vec<&'a str> {
        left_of(1000, part_data, role, wanted)
    }

    fn left_of<'a>(created: u64, part_data: &str, role: &str, mut wanted: Vec<&'a str>) -> Vec<&'a str> {
        let message = format!(r#"{{"role":"{role}","time":{{"created":{created}}}}}"#);
        let row =
            Row { part: "prt_1", message_data: message.as_bytes(), part_data: part_data.as_bytes(), since_ms: 1000 };
        remove_found(&row, &mut wanted);
        wanted
    }

    #[test]
    fn a_row_proves_a_text_of_its_whole_length_and_a_tool_with_its_result() {
        let answer = text("prt_1", "all done");
        assert!(left(r#"{"type":"text","text":"all done"}"#, "assistant", vec![&answer]).is_empty());
        assert_eq!(left(r#"{"type":"text","text":"all"}"#, "assistant", vec![&answer]), [&answer]);
        let tool = part("prt_1");
        assert!(left(r#"{"type":"tool","state":{"status":"completed"}}"#, "assistant", vec![&tool]).is_empty());
        assert_eq!(left(r#"{"type":"tool","state":{"status":"running"}}"#, "assistant", vec![&tool]), [&tool]);
        assert!(left(r#"{"type":"step-finish"}"#, "assistant", vec![&tool]).is_empty());
    }

    #[test]
    fn only_a_users_message_is_a_prompt() {
        let wanted = prompt("go on ");
        let row = r#"{"type":"text","text":"go on"}"#;
        assert!(left(row, "user", vec![&wanted]).is_empty());
        assert_eq!(left(row, "assistant", vec![&wanted]), [&wanted]);
        assert_eq!(left_of(999, row, "user", vec![&wanted]), [&wanted], "said before");
    }
}
