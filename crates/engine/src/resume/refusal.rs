//! Why a conversation is not continued or copied: what is wrong with the request, before anything was done.

use crate::session_ref::SessionRef;
use ostler_core::id::SessionId;

/// A request to resume a session that cannot be resumed that way.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the text of each says what it is, with its fields")]
pub enum ResumeRefusal {
    #[error("{session} is archived")]
    Archived { session: SessionRef },
    #[error("{session} is a command and has no conversation to continue")]
    Command { session: SessionRef },
    #[error("{session} never had a conversation")]
    NeverBegun { session: SessionRef },
    /// A person has to decide whether to send it again.
    #[error("message {n} may have been delivered already")]
    MaybeDelivered { id: SessionId, n: u64 },
    #[error("a message is missing")]
    MessageMissing { id: SessionId },
    #[error("{session} does not wait for anything")]
    DoesNotWait { session: SessionRef },
    /// `command`: the session is a command, so it has no conversation and cannot be resumed later.
    #[error("{session} is queued: it has not begun, so there is nothing to continue")]
    Queued { session: SessionRef, command: bool },
    /// The agent could not find its conversation from another folder.
    #[error("{agent} continues a conversation only in the folder in which it began")]
    SameFolder { agent: String, id: SessionId, copies: bool },
}

/// A request to copy a conversation that cannot be copied.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the text of each says what it is, with its fields")]
pub enum ForkRefusal {
    #[error("{session} is a command and has no conversation to copy")]
    Command { session: SessionRef },
    #[error("{session} has no conversation yet")]
    NotBegun { session: SessionRef },
    /// `copied`: there is a copy of it that can be put back.
    #[error("the transcript of {session} is gone{}", if *.copied { "" } else { ", and there is no copy of it" })]
    TranscriptLost { session: SessionRef, copied: bool },
    #[error("{agent} cannot copy a conversation")]
    CannotCopy { agent: String, id: SessionId },
    #[error("a message is missing")]
    MessageMissing { id: SessionId },
    #[error("the transcript of this {agent} conversation is gone, so it cannot be copied")]
    TranscriptGone { agent: String },
    #[error("{agent} copies a conversation only in the folder in which it began")]
    SameFolder { agent: String, id: SessionId },
}
