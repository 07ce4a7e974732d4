//! A conversation in a bounded form, for another agent: prompts and answers whole as far as they fit, tool calls as one
//! line each. When not everything fits, the newest part is kept, and of the part before it only the task.

use ostler_core::fact::Fact;
use ostler_view::conversation::Item;

/// How long a conversation may be, in bytes: about 16,000 tokens, which leaves every model enough room for its own
/// work.
pub const LONGEST: usize = 64 << 10;
/// How much of the first prompt is kept when it does not fit any more.
const TASK: usize = 4 << 10;
/// How long the line of a tool call may be.
const TOOL: usize = 200;

/// One thing that was said or done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// By a person, or by another program.
    Person(String),
    /// By the agent.
    Agent(String),
    /// A tool was called.
    Tool(String),
    /// How a turn ended that did not succeed.
    End(String),
}

impl Said {
    /// What an item contributes to the digest. `None` for what is not needed to continue the work: thoughts, results of
    /// tools, parts of texts.
    #[must_use]
    pub fn of(item: &Item) -> Option<Said> {
        match item {
            Item::Told { text, .. } => Some(Said::Person(text.trim().to_owned())),
            Item::Answered { .. } => None,
            Item::Agent(fact) => match fact {
                Fact::Said { text } if !text.trim().is_empty() => Some(Said::Agent(text.trim().to_owned())),
                Fact::ToolCalled { name, detail, .. } => {
                    let line = detail.split_whitespace().collect::<Vec<_>>().join(" ");
                    Some(Said::Tool(beginning(&format!("{name}: {line}"), TOOL)))
                }
                Fact::TurnEnded(end) => match end.verdict {
                    ostler_core::fact::Verdict::Succeeded => None,
                    ostler_core::fact::Verdict::Failed => Some(Said::End(ended("failed", end.reason.as_deref()))),
                    ostler_core::fact::Verdict::Interrupted => {
                        Some(Said::End(ended("was interrupted", end.reason.as_deref())))
                    }
                },
                Fact::Said { .. }
                | Fact::Native { .. }
                | Fact::Transcript { .. }
                | Fact::Behind { .. }
                | Fact::Recalled { .. }
                | Fact::Opened { .. }
                | Fact::NotOpened { .. }
                | Fact::ReplyDue { .. }
                | Fact::Ready
                | Fact::TurnStarted
                | Fact::Saying { .. }
                | Fact::Thought { .. }
                | Fact::Model { .. }
                | Fact::ToolReturned { .. }
                | Fact::Asked(_)
                | Fact::AskClosed { .. }
                | Fact::Retrying(_)
                | Fact::Limited(_)
                | Fact::Background { .. }
                | Fact::Unknown { .. }
                | Fact::LineTooLong { .. }
                | Fact::Subagent(_) => None,
            },
        }
    }

    fn words(&self) -> String {
        match self {
            Said::Person(text) => format!("[person]\n{text}\n\n"),
            Said::Agent(text) => format!("[agent]\n{text}\n\n"),
            Said::Tool(line) => format!("[tool] {line}\n"),
            Said::End(line) => format!("[{line}]\n\n"),
        }
    }
}

fn ended(how: &str, reason: Option<&str>) -> String {
    let reason = reason.map(|reason| format!(": {}", beginning(reason.trim(), TOOL))).unwrap_or_default();
    format!("the turn {how}{}", reason.replace('\n', " "))
}

/// The conversation as text, at most about `longest` bytes.
#[must_use]
pub fn digest(said: &[Said], longest: usize) -> String {
    let task = said.iter().position(|one| matches!(one, Said::Person(_)));
    let room = longest.saturating_sub(TASK.min(longest / 4));
    let mut kept: Vec<String> = Vec::new();
    let mut size = 0;
    let mut first = said.len();
    for (place, one) in said.iter().enumerate().rev() {
        let words = one.words();
        let limit = if first_fits(said, place, size + words.len(), longest) { longest } else { room };
        if size + words.len() > limit {
            // When not even the newest item fits, its end is kept: it contains the result.
            if kept.is_empty() {
                kept.push(format!("[cut]\n…{}", end(&words, room)));
                first = place;
            }
            break;
        }
        size += words.len();
        kept.push(words);
        first = place;
    }
    let mut text = String::new();
    if first > 0 {
        if let Some(Said::Person(words)) = task.filter(|task| *task < first).map(|task| &said[task]) {
            text.push_str(&format!("[person, the first message]\n{}\n\n", beginning(words, TASK.min(longest / 4))));
        }
        text.push_str(&format!("[{first} earlier messages and tool calls are left out]\n\n"));
    }
    kept.iter().rev().for_each(|words| text.push_str(words));
    text.trim_end().to_owned()
}

/// Whether nothing has to be left out: everything before `place` fits too.
fn first_fits(said: &[Said], place: usize, size: usize, longest: usize) -> bool {
    said[..place].iter().map(|one| one.words().len()).sum::<usize>() + size <= longest
}

/// The beginning of a text, with a mark where something is missing.
pub fn beginning(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let end = (0..=longest).rev().find(|&place| text.is_char_boundary(place)).unwrap_or(0);
    format!("{}…", &text[..end])
}

fn end(text: &str, longest: usize) -> &str {
    let from = text.len().saturating_sub(longest);
    let from = (from..=text.len()).find(|&place| text.is_char_boundary(place)).unwrap_or(text.len());
    &text[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation(turns: usize, length: usize) -> Vec<Said> {
        let one = |n: usize| {
            [
                Said::Person(format!("prompt {n} {}", "é".repeat(length))),
                Said::Tool(format!("Bash: command {n}")),
                Said::Agent(format!("answer {n} {}", "x".repeat(length))),
            ]
        };
        (1..=turns).flat_map(one).collect()
    }

    #[test]
    fn what_fits_is_whole_and_in_its_order() {
        let text = digest(&conversation(2, 3), LONGEST);
        assert_eq!(
            text,
            "[person]\nprompt 1 ééé\n\n[tool] Bash: command 1\n[agent]\nanswer 1 xxx\n\n\
             [person]\nprompt 2 ééé\n\n[tool] Bash: command 2\n[agent]\nanswer 2 xxx"
        );
        assert_eq!(digest(&[], LONGEST), "");
    }

    #[test]
    fn what_does_not_fit_loses_its_middle_and_keeps_the_task_and_the_newest() {
        let text = digest(&conversation(500, 300), LONGEST);
        assert!(text.len() <= LONGEST + 200, "{}", text.len());
        assert!(text.starts_with("[person, the first message]\nprompt 1 "), "{}", &text[..80]);
        assert!(text.contains("earlier messages and tool calls are left out]"));
        assert!(text.contains("answer 500") && text.contains("prompt 500"));
        assert!(!text.contains("prompt 2 "));
    }

    #[test]
    fn every_length_is_bounded_and_cut_between_characters() {
        for turns in [1, 2, 7] {
            for length in [0, 1, 10, 1_000, 30_000, 100_000] {
                for longest in [1_000, 5_000, 64 << 10] {
                    let text = digest(&conversation(turns, length), longest);
                    assert!(text.len() <= longest + 200, "{turns} {length} {longest}: {}", text.len());
                    assert!(text.contains(&"x".repeat(length.min(500))), "{turns} {length} {longest}");
                }
            }
        }
    }
}
