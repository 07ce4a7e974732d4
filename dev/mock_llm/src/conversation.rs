//! The contents of a request, for all protocols: messages and answers in their order. The server needs only the last
//! message of the user and the number of answers since, to know which step comes next.

/// One conversation and the user's messages in it, as the model saw them last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// The agent's own name for the conversation where the request has one, else its first user message. A subagent of
    /// claude has a conversation of its own, named `<session>/<agent>`.
    pub id: String,
    /// The user's messages, oldest first.
    pub messages: Vec<String>,
}

/// One entry of the history in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A text in a user message. Agents put notes of their own there too.
    Said(String),
    /// An answer of the model: a text or a tool call.
    Answered,
    /// The result of a tool.
    Returned(String),
}

/// A parsed request to the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    pub entries: Vec<Entry>,
    /// The agent's own name for the conversation.
    pub native_id: Option<String>,
    pub offers_tools: bool,
    /// The JSON schema that the answer must follow, as text.
    pub shape: Option<String>,
    pub streams: bool,
    pub model: String,
}

impl Heard {
    /// The user's messages, without what the agent added.
    pub fn user_messages(&self) -> Vec<String> {
        self.typed().map(|(_, text)| text.to_owned()).collect()
    }

    pub fn tool_results(&self) -> Vec<String> {
        let returned = self.entries.iter().filter_map(|entry| match entry {
            Entry::Returned(text) => Some(text.clone()),
            Entry::Said(_) | Entry::Answered => None,
        });
        returned.collect()
    }

    /// The user's last message.
    pub fn script(&self) -> &str {
        self.typed().last().map(|(_, text)| text).unwrap_or_default()
    }

    /// How many answers came since. Texts and calls next to each other are one answer, because no result separates
    /// them.
    pub fn answers(&self) -> usize {
        let since = self.typed().last().map_or(0, |(index, _)| index + 1);
        let entries = self.entries.get(since..).unwrap_or_default();
        let answered = |entry: Option<&Entry>| matches!(entry, Some(Entry::Answered));
        let begins = |index: usize| answered(entries.get(index)) && !(index > 0 && answered(entries.get(index - 1)));
        (0..entries.len()).filter(|&index| begins(index)).count()
    }

    /// Whether the agent asks for itself: a title, a topic, a routing decision. Its own work needs tools and free text.
    pub fn is_background(&self) -> bool {
        !self.offers_tools || self.shape.is_some()
    }

    pub fn conversation(&self) -> String {
        match &self.native_id {
            Some(id) => id.clone(),
            None => self.typed().next().map(|(_, text)| text.to_owned()).unwrap_or_default(),
        }
    }

    fn typed(&self) -> impl Iterator<Item = (usize, &str)> {
        self.entries.iter().enumerate().filter_map(|(index, entry)| match entry {
            Entry::Said(text) if !is_note(text) => Some((index, text.trim())),
            Entry::Said(_) | Entry::Answered | Entry::Returned(_) => None,
        })
    }
}

/// How notes without a tag begin. Claude's: after an interrupt; when a conversation is resumed whose last turn was cut
/// off after the result of a tool; after an empty answer; and before it guesses the user's next message. Codex's:
/// before a project's instructions. Gemini's: after an empty answer and after repeated calls. Qwen's: before the first
/// message.
const PHRASES: [&str; 8] = [
    "[Request interrupted by user",
    "Continue from where you left off.",
    "[Your previous response had no visible output.",
    "[SUGGESTION MODE:",
    "# AGENTS.md instructions",
    "[System: You previously returned an empty response",
    "System: Potential loop detected.",
    "This is the Qwen Code. We are setting up the context",
];

/// A note that the agent wrote into the user's message: completely inside a tag, or one of its fixed phrases.
fn is_note(text: &str) -> bool {
    let text = text.trim();
    if text.is_empty() || PHRASES.iter().any(|phrase| text.starts_with(phrase)) {
        return true;
    }
    let Some((tag, _)) = text.strip_prefix('<').and_then(|rest| rest.split_once('>')) else { return false };
    let name = tag.split_whitespace().next().unwrap_or_default();
    !name.is_empty() && text.ends_with(&format!("</{name}>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Entry {
        Entry::Said(text.to_owned())
    }

    #[test]
    fn notes_of_the_agent_are_not_the_users_words() {
        let entries = vec![
            said("<environment_context>\n  <cwd>/x</cwd>\n</environment_context>"),
            said("say one"),
            said("<system-reminder>\nBe brief.\n</system-reminder>\n"),
            Entry::Answered,
            said("[Request interrupted by user]"),
            said("say <b>two</b>"),
        ];
        let heard = Heard { entries, ..Heard::default() };
        assert_eq!(heard.user_messages(), ["say one", "say <b>two</b>"]);
        assert_eq!(heard.script(), "say <b>two</b>");
    }

    #[test]
    fn answers_are_counted_since_the_user_spoke_and_calls_side_by_side_are_one() {
        let returned = || Entry::Returned("ok".to_owned());
        let mut entries = vec![said("first"), Entry::Answered, said("tools …")];
        let count = |entries: &[Entry]| Heard { entries: entries.to_vec(), ..Heard::default() }.answers();
        assert_eq!(count(&entries), 0);
        entries.extend([Entry::Answered, Entry::Answered, returned(), returned()]);
        assert_eq!(count(&entries), 1);
        entries.push(said("<system-reminder>note</system-reminder>"));
        assert_eq!(count(&entries), 1);
        entries.extend([Entry::Answered, returned()]);
        assert_eq!(count(&entries), 2);
    }
}
