//! What reached the model according to its own record, to be compared with what the job has reported.

use ostler_mock_llm::Server;
use std::collections::BTreeMap;

/// The beginning of the prompt that a job sends after an interrupt.
const AGAIN: &str = "The last turn was interrupted before it was over.";

/// How often the model was asked with a prompt, that is, not with the result of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paid {
    /// With the original prompt.
    pub first: usize,
    /// With the prompt that a job sends after an interrupt.
    pub again: usize,
}

/// By the word after `say` in the prompt: prompts look like `say WORD (held N)`.
pub fn by_word(server: &Server) -> BTreeMap<String, Paid> {
    let mut paid: BTreeMap<String, Paid> = BTreeMap::new();
    for request in server.requests() {
        let Some(turn) = request.turn().filter(|turn| turn.answers == 0) else { continue };
        let Some(message) = turn.user_messages.last() else { continue };
        if !message.starts_with("say ") && !message.starts_with(AGAIN) {
            continue;
        }
        let Some(word) = message.split("say ").nth(1).and_then(|rest| rest.split(" (held").next()) else { continue };
        let paid = paid.entry(word.to_owned()).or_default();
        if message.starts_with(AGAIN) { paid.again += 1 } else { paid.first += 1 }
    }
    paid
}

/// How often a job has reported each of its parts as interrupted, by the text before that.
pub fn interrupted(said: &[&str]) -> BTreeMap<String, usize> {
    let mut parts: BTreeMap<String, usize> = BTreeMap::new();
    for line in said {
        let part = line.strip_suffix(": was interrupted and is continued");
        let part = part.or(line.strip_suffix(" was interrupted and is not counted"));
        if let Some(part) = part {
            *parts.entry(part.to_owned()).or_default() += 1;
        }
    }
    parts
}

/// Fails when a job has printed the same line twice, except for interrupts, which may repeat.
#[track_caller]
pub fn said_once(said: &[&str]) {
    let mut lines: Vec<&str> = said.iter().filter(|line| !line.contains("was interrupted")).copied().collect();
    lines.sort_unstable();
    let twice = lines.windows(2).find(|two| two[0] == two[1]);
    assert!(twice.is_none(), "said twice: {twice:?} in {said:?}");
}
