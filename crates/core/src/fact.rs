//! What an agent said, once its own format is understood. Decoders produce these; everything after them is the same for
//! every agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing that an agent's output tells.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// The agent's own name for the conversation.
    Native { id: String },
    /// Where the agent writes this conversation down.
    Transcript { path: String },
    /// It is past its first dialogs, in which keys mean something else than a message.
    Ready,
    /// The agent behind a program that speaks a protocol has this name of ours: the conversation is one of that agent's.
    Behind { agent: String },
    /// It has told its conversation again, which ended with these words of a person, so many times in a row.
    Recalled { last: String, times: u64 },
    /// Its conversation is open: from now on it takes messages. A new one has its name from the agent.
    Opened { native_id: Option<String> },
    /// Its conversation cannot be opened, and why in one line.
    NotOpened { reason: String },
    /// A turn has begun that nobody saw begin.
    TurnStarted,
    /// Text as it is being written; the whole follows as [`Fact::Said`].
    Saying { text: String },
    /// A whole text of the agent.
    Said { text: String },
    /// The agent thinks aloud; shown dimmed, never part of the answer.
    Thought { text: String },
    /// The model that answers from now on, by the agent's own name for it.
    Model { name: String },
    /// A tool was called.
    ToolCalled { name: String, detail: String, call: Call },
    /// A tool came back; with the name of its call, where the agent tells.
    ToolReturned { text: String, failed: bool, call: Option<String> },
    /// A subagent said or did this, in a conversation of its own below this one: shown, and never the agent's own word.
    Subagent(Box<Fact>),
    /// It wants a permission or an answer and waits.
    Asked(Ask),
    /// It no longer waits for the answer to this.
    AskClosed { request: String },
    /// A task that goes on beside its turns runs, or does so no longer. Of its end it hears, and begins a turn about it.
    Background { task: String, runs: bool },
    /// The model's server did not answer, and the agent tries again.
    Retrying(Retry),
    /// Its protocol has it wait for this line, which is put into its input once under this name.
    ReplyDue { name: String, line: Vec<u8> },
    /// The turn is over, by the agent's own word.
    TurnEnded(TurnEnd),
    /// Something this version does not know.
    Unknown { kind: String },
    /// A line too long to be read.
    LineTooLong { bytes: u64 },
}

/// What else an agent tells about a call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Its name for this call, by which what comes back is known to belong to it.
    pub id: Option<String>,
    /// What the call changes in files.
    pub edits: Vec<Edit>,
}

/// A part of a file that becomes another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub path: String,
    /// Empty for a file that is written whole.
    pub old: String,
    pub new: String,
}

/// An agent tries again what the model's server did not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// One line: what went wrong.
    pub reason: String,
    /// Which attempt has failed, where the agent counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
}

/// What an agent asks a person.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Ask {
    /// The agent's own name for the question.
    pub request: String,
    /// What wants to be used, when it is a permission.
    pub tool: Option<String>,
    /// With which arguments: all of them, as the agent gave them. Null when it did not tell.
    #[serde(default)]
    pub input: Value,
    /// What the agent says about it. Never shown instead of the input.
    pub text: String,
    /// What the agent proposes to allow for longer.
    #[serde(default)]
    pub suggestions: Value,
    /// What else the agent shows of it, where its protocol has that: `title`, `kind`, `locations`, `content`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
}

/// The tool that is a question itself. A field of that name in the input of any other tool makes none of it: what is
/// answered in words would then be allowed unseen.
const QUESTION_TOOL: &str = "AskUserQuestion";

/// One question that wants words for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    pub text: &'a str,
    /// What is offered to choose from; other words will do as well.
    pub choices: Vec<&'a str>,
}

impl Ask {
    /// What is asked where no permission is: such a tool carries its questions as arguments.
    #[must_use]
    pub fn questions(&self) -> Vec<Question<'_>> {
        let list = self.input["questions"].as_array().filter(|_| self.tool.as_deref() == Some(QUESTION_TOOL));
        list.map(Vec::as_slice)
            .unwrap_or_default()
            .iter()
            .filter_map(|one| {
                let options = one["options"].as_array().map(Vec::as_slice).unwrap_or_default();
                let choices = options.iter().filter_map(|option| option["label"].as_str()).collect();
                Some(Question { text: one["question"].as_str()?, choices })
            })
            .collect()
    }
}

/// How a turn went, by the agent's own word.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TurnEnd {
    pub verdict: Verdict,
    /// The final answer.
    #[serde(default)]
    pub text: Option<String>,
    /// One line: why it failed or was broken off.
    #[serde(default)]
    pub reason: Option<String>,
    #[serde(default)]
    pub tokens: Option<Tokens>,
    /// Of this process so far, as agents count it; [`crate::spending`] makes what each turn cost of it.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// The agent's own names of the messages of this turn; the proof that it is saved looks for these.
    #[serde(default)]
    pub messages: Vec<String>,
}

impl TurnEnd {
    /// The same of a turn that we had broken off: it is interrupted, whatever the agent calls that.
    #[must_use]
    pub fn after_interrupt(self) -> TurnEnd {
        match self.verdict {
            Verdict::Failed => {
                let reason = Some("the turn was interrupted".to_owned());
                TurnEnd { verdict: Verdict::Interrupted, reason, ..self }
            }
            Verdict::Succeeded | Verdict::Interrupted => self,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Succeeded,
    Failed,
    Interrupted,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
}

impl std::ops::AddAssign for Tokens {
    fn add_assign(&mut self, more: Tokens) {
        // Counts come from foreign processes.
        self.input = self.input.saturating_add(more.input);
        self.output = self.output.saturating_add(more.output);
    }
}
