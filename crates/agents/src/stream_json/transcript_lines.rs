//! What is stored: where the transcript of a conversation is, and what its lines mean.

use crate::any_json::AnyJson;
use memchr::memmem;
use serde::Deserialize;

/// The transcript of a conversation, below the agent's own folder.
#[must_use]
pub fn transcript(folder: &str, cwd: &str, native_id: &str) -> String {
    format!("{folder}/projects/{}/{native_id}.jsonl", folder_name(cwd))
}

/// The folder of a working directory below `projects`: everything that is not a letter or digit becomes `-`, with
/// characters counted as in JavaScript.
#[must_use]
pub fn folder_name(cwd: &str) -> String {
    cwd.encode_utf16()
        .map(|unit| u8::try_from(unit).ok().filter(u8::is_ascii_alphanumeric).map_or('-', char::from))
        .collect()
}

/// Removes from `wanted` the id that is the `uuid` of this line of a transcript.
pub fn remove_found(line: &[u8], wanted: &mut Vec<&str>) {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Named<'a> {
        #[serde(borrow)]
        uuid: AnyJson<'a>,
    }
    // Most lines belong to other turns: only a line that contains one of the ids is parsed.
    if wanted.iter().any(|id| memmem::find(line, id.as_bytes()).is_some())
        && let Ok(Named { uuid: AnyJson::Text(uuid) }) = serde_json::from_slice::<Named<'_>>(line)
    {
        wanted.retain(|id| *id != uuid);
    }
}

/// Whether this line of a transcript is a message.
#[must_use]
pub fn is_message(line: &[u8]) -> bool {
    kind(line).is_some_and(|kind| matches!(kind, "user" | "assistant"))
}

fn kind(line: &[u8]) -> Option<&str> {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(borrow, rename = "type", default)]
        kind: Option<&'a str>,
    }
    serde_json::from_slice::<Kind<'_>>(line).ok()?.kind
}

/// Whether the newest message of a transcript is the agent's; `None` when it holds no message.
#[must_use]
pub fn ends_with_answer(transcript: &[u8]) -> Option<bool> {
    transcript.split(|&byte| byte == b'\n').rev().find_map(|line| {
        let kind = kind(line)?;
        matches!(kind, "user" | "assistant").then_some(kind == "assistant")
    })
}
