//! One pass over a transcript of claude: a few numbers for every message of the main conversation.
//!
//! Thirty-two bytes for a message, sixteen for a tool call and for a result: a gigabyte of messages of one kilobyte
//! each fits into memory. Messages of subagents are on side chains, which are not part of the conversation.

use ostler_transcript::fields::{Flag, Items, Known, Moment, Name, Object, Words};
use ostler_transcript::record_lines::Records;
use serde::Deserialize;

/// The position of a message among the messages.
pub type Index = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A user's text, or text that claude puts in its place.
    Prompt,
    /// What tools returned.
    Result,
    Assistant,
    /// Attachments and notes of the program, which are between messages.
    Other,
}

/// What a pass finds, in file order.
#[derive(Debug, Default)]
pub struct Scan {
    pub ids: Vec<Name>,
    pub parents: Vec<Name>,
    /// Where each message begins, with its role in the low bits.
    places: Vec<u64>,
    /// Which answer of the model each message is part of; 0 for none. Each block of an answer has its own line.
    pub answers: Vec<u32>,
    /// The time of each message, in steps of [`STEP_MS`] since the first; for a prompt, the time at which it was
    /// queued.
    pub times: Vec<u32>,
    /// Messages of a kind that claude does not know, in file order. A conversation does not end with such a message.
    pub strange: Vec<Index>,
    pub calls: Vec<(Name, Index)>,
    pub results: Vec<(Name, Index)>,
    /// Where the conversation continues, by the newest note about it.
    pub leaf: Option<Leaf>,
    /// The newest compaction: the messages before it are only history.
    pub boundary: Option<Index>,
    first_ms: u64,
    /// When a prompt was queued whose message has not come yet.
    handed_in: Option<Moment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    pub message: Name,
    /// The person went back to this message, and no message followed since.
    pub chosen: bool,
}

/// The precision of times: more than a year fits.
const STEP_MS: u64 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    User,
    Assistant,
    Metadata,
    LastPrompt,
    Queue,
}

impl Words for Kind {
    fn of(text: &str) -> Option<Kind> {
        match text {
            "user" => Some(Kind::User),
            "assistant" => Some(Kind::Assistant),
            "attachment" | "system" => Some(Kind::Metadata),
            "last-prompt" => Some(Kind::LastPrompt),
            "queue-operation" => Some(Kind::Queue),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HandedIn;

impl Words for HandedIn {
    fn of(text: &str) -> Option<HandedIn> {
        (text == "enqueue").then_some(HandedIn)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Boundary;

impl Words for Boundary {
    fn of(text: &str) -> Option<Boundary> {
        (text == "compact_boundary").then_some(Boundary)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(rename = "type", default)]
    kind: Known<Kind>,
    #[serde(default)]
    uuid: Name,
    /// `null` at the beginning of a conversation; a message without this field has lost its parent.
    #[serde(default = "Name::unset")]
    parent_uuid: Name,
    #[serde(default)]
    is_sidechain: Flag,
    #[serde(default)]
    subtype: Known<Boundary>,
    #[serde(default)]
    timestamp: Moment,
    #[serde(default)]
    message: Object<Body>,
    #[serde(default)]
    leaf_uuid: Name,
    #[serde(default)]
    explicit: Flag,
    #[serde(default)]
    operation: Known<HandedIn>,
}

#[derive(Default, Deserialize)]
struct Body {
    #[serde(default)]
    id: Name,
    #[serde(default)]
    content: Items<Object<Block>>,
}

#[derive(Default, Deserialize)]
struct Block {
    #[serde(rename = "type", default)]
    kind: Known<BlockKind>,
    #[serde(default)]
    id: Name,
    #[serde(default)]
    tool_use_id: Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Call,
    Result,
}

impl Words for BlockKind {
    fn of(text: &str) -> Option<BlockKind> {
        match text {
            "tool_use" => Some(BlockKind::Call),
            "tool_result" => Some(BlockKind::Result),
            _ => None,
        }
    }
}

impl Scan {
    #[must_use]
    pub fn len(&self) -> Index {
        Index::try_from(self.ids.len()).unwrap_or(Index::MAX)
    }

    #[must_use]
    pub fn start(&self, of: Index) -> u64 {
        self.places[of as usize] >> 2
    }

    #[must_use]
    pub fn role(&self, of: Index) -> Role {
        match self.places[of as usize] & 3 {
            0 => Role::Prompt,
            1 => Role::Result,
            2 => Role::Assistant,
            _ => Role::Other,
        }
    }

    fn message(&mut self, start: u64, line: &Line, role: Role) {
        let index = self.len();
        for Object(block) in &line.message.0.content.items {
            match block.kind.0 {
                Some(BlockKind::Call) if role == Role::Assistant && block.id.is_some() => {
                    self.calls.push((block.id, index));
                }
                Some(BlockKind::Result) if role == Role::Result => {
                    let call = block.tool_use_id;
                    self.results.push((if call.is_some() { call } else { Name::unset() }, index));
                }
                Some(BlockKind::Call | BlockKind::Result) | None => {}
            }
        }
        if self.ids.is_empty() {
            self.first_ms = line.timestamp.0;
        }
        let began = match (self.handed_in.take(), role) {
            (Some(handed_in), Role::Prompt) => handed_in.min(line.timestamp),
            (Some(_) | None, Role::Prompt | Role::Result | Role::Assistant | Role::Other) => line.timestamp,
        };
        let since = began.0.saturating_sub(self.first_ms) / STEP_MS;
        self.ids.push(line.uuid);
        self.parents.push(line.parent_uuid);
        self.places.push((start << 2) | role as u64);
        self.answers.push(match role {
            // Half of the number is enough to tell neighbours apart.
            Role::Assistant if line.message.0.id.is_some() => (line.message.0.id.0 as u32).max(1),
            Role::Assistant | Role::Prompt | Role::Result | Role::Other => 0,
        });
        self.times.push(u32::try_from(since).unwrap_or(u32::MAX));
        if line.subtype.0.is_some() {
            self.boundary = Some(index);
        }
        if line.kind.0.is_none() {
            self.strange.push(index);
        } else if let Some(leaf) = &mut self.leaf {
            leaf.chosen = false;
        }
    }
}

impl Records for Scan {
    const OPENINGS: &'static [&'static str] = &[r#"{"parentUuid":"#, r#"{"type":"#, r#"{"uuid":"#];

    fn take(&mut self, start: u64, bytes: &[u8]) -> bool {
        let Ok(line) = serde_json::from_slice::<Line>(bytes) else {
            return false;
        };
        let is_result = |Object(block): &Object<Block>| block.kind.0 == Some(BlockKind::Result);
        let role = match line.kind.0 {
            Some(Kind::User) if line.message.0.content.items.iter().any(is_result) => Role::Result,
            Some(Kind::User) => Role::Prompt,
            Some(Kind::Assistant) => Role::Assistant,
            Some(Kind::Metadata) => Role::Other,
            Some(Kind::LastPrompt) => {
                if line.leaf_uuid.is_some() {
                    self.leaf = Some(Leaf { message: line.leaf_uuid, chosen: line.explicit.0 });
                }
                return true;
            }
            Some(Kind::Queue) => {
                if line.operation.0.is_some() {
                    self.handed_in = Some(line.timestamp);
                }
                return true;
            }
            // Other versions use records of other kinds as parents; every record with an id may be a parent.
            None => Role::Other,
        };
        if line.uuid.is_some() && !line.is_sidechain.0 {
            self.message(start, &line, role);
        }
        true
    }
}
