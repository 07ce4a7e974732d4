//! The proof that a turn in a terminal is saved. Headless we name our messages and are told claude's names for its own; in a
//! terminal there are only the turn's name (`promptId` in the transcript) and what was said last.

use serde::Deserialize;
use serde_json::Value;

const PROMPT: &str = "prompt:";
const REPLY: &str = "reply:";

/// How much of a reply is looked for: its end, which is written last.
const CHARACTERS: usize = 200;

/// The mark of a prompt.
#[must_use]
pub fn prompt(id: &str) -> String {
    format!("{PROMPT}{id}")
}

/// The mark of the reply that ended a turn. Of its last line only: that one is in one block of the transcript.
#[must_use]
pub fn reply(prompt: &str, text: &str) -> String {
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let skipped = last.chars().count().saturating_sub(CHARACTERS);
    format!("{REPLY}{prompt}:{}", last.chars().skip(skipped).collect::<String>())
}

/// Whether this is a mark of ours and not one of claude's own names.
#[must_use]
pub fn is_mark(mark: &str) -> bool {
    mark.starts_with(PROMPT) || mark.starts_with(REPLY)
}

#[derive(Deserialize)]
struct Line {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default, rename = "promptId")]
    prompt_id: Option<String>,
    #[serde(default)]
    message: Value,
}

/// Whether the prompt, or the reply to it, stands in whole lines of the transcript. A reply stands behind the last line of
/// its prompt (the prompt itself, or what a tool returned in that turn).
#[must_use]
pub fn holds(transcript: &[u8], mark: &str) -> bool {
    let (wanted, said) = match (mark.strip_prefix(PROMPT), mark.strip_prefix(REPLY)) {
        (Some(prompt), _) => (prompt, None),
        (None, Some(rest)) => match rest.split_once(':') {
            Some((prompt, said)) => (prompt, Some(said)),
            None => return false,
        },
        (None, None) => return false,
    };
    for line in transcript.split_inclusive(|&byte| byte == b'\n').rev() {
        if !line.ends_with(b"\n") {
            continue;
        }
        let Ok(line) = serde_json::from_slice::<Line>(line) else { continue };
        match said {
            None if line.prompt_id.as_deref() == Some(wanted) => return true,
            None => {}
            Some(said) if line.kind.as_deref() == Some("assistant") && ends_with(&line.message, said) => return true,
            Some(_) if line.prompt_id.as_deref() == Some(wanted) => return false,
            Some(_) => {}
        }
    }
    false
}

fn ends_with(message: &Value, said: &str) -> bool {
    let mut texts = message["content"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
    texts.any(|text| text.trim_end().ends_with(said))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT_LINE: &str = r#"{"type":"user","promptId":"p","message":{"role":"user","content":"say it"}}"#;
    const REPLY_LINE: &str =
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"first\nlast words\n"}]}}"#;

    #[test]
    fn a_reply_is_saved_when_it_stands_whole_behind_its_prompt() {
        let mark = reply("p", "first\nlast words\n");
        assert!(holds(format!("{PROMPT_LINE}\n{REPLY_LINE}\n").as_bytes(), &mark));
        assert!(!holds(format!("{PROMPT_LINE}\n{REPLY_LINE}").as_bytes(), &mark), "torn");
        assert!(!holds(format!("{REPLY_LINE}\n{PROMPT_LINE}\n").as_bytes(), &mark), "an earlier turn's");
        assert!(!holds(format!("{PROMPT_LINE}\n").as_bytes(), &mark));
    }

    #[test]
    fn a_prompt_is_saved_when_its_line_is_whole() {
        assert!(holds(format!("{PROMPT_LINE}\n").as_bytes(), &prompt("p")));
        assert!(!holds(PROMPT_LINE.as_bytes(), &prompt("p")));
        assert!(!holds(format!("{PROMPT_LINE}\n").as_bytes(), &prompt("q")));
    }
}
