//! One entry of a conversation, as it is kept for drawing.

use crate::text_pieces::Piece;
use ostler_core::fact::{Ask, Edit};

#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A message of a person.
    Told(String),
    /// Text of the agent, or a part of it. `below`: of a subagent.
    Said {
        piece: Piece,
        below: bool,
    },
    Thought(String),
    Tool(Box<Tool>),
    /// What it asks, in full.
    Question(Box<Ask>),
    Answered {
        by: String,
        allowed: bool,
        always: Option<String>,
    },
    /// A line of ours.
    Note(Tone, String),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tool {
    pub name: String,
    pub detail: String,
    pub edits: Vec<Edit>,
    pub result: Option<Returned>,
    /// Whether a subagent called it.
    pub below: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    pub text: String,
    pub failed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Quiet,
    Bad,
}

impl Entry {
    /// Whether it can have more than is shown at first.
    pub fn folds(&self) -> bool {
        match self {
            Entry::Tool(_) | Entry::Told(_) => true,
            Entry::Said { .. } | Entry::Thought(_) | Entry::Question(_) | Entry::Answered { .. } | Entry::Note(..) => {
                false
            }
        }
    }

    /// Whether a blank row is drawn between the two.
    pub fn needs_gap_after(&self, before: &Entry) -> bool {
        match (before, self) {
            (Entry::Tool(_), Entry::Tool(_) | Entry::Answered { .. })
            | (Entry::Question(_), Entry::Answered { .. })
            | (Entry::Answered { .. }, Entry::Tool(_))
            | (Entry::Note(..), Entry::Note(..)) => false,
            (Entry::Said { below: true, .. }, Entry::Tool(tool)) => !tool.below,
            (Entry::Tool(tool), Entry::Said { below: true, .. }) => !tool.below,
            (_, Entry::Said { piece, .. }) => !piece.joined,
            (_, Entry::Told(_) | Entry::Thought(_) | Entry::Tool(_) | Entry::Question(_))
            | (_, Entry::Answered { .. } | Entry::Note(..)) => true,
        }
    }
}
