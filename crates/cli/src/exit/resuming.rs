//! Advice about refusals to resume or to fork.

use super::Code;
use ostler_engine::resume::{ForkRefusal, ResumeRefusal};

pub fn advice(refusal: &ResumeRefusal) -> (Code, String) {
    let hint = match refusal {
        ResumeRefusal::Archived { session } => format!("restore it first: ostler restore {}", session.id),
        ResumeRefusal::Command { .. } => String::new(),
        ResumeRefusal::NeverBegun { .. } => "start a new session: ostler run".to_owned(),
        ResumeRefusal::MaybeDelivered { id, n } => {
            format!("send it again: ostler send {id} --again {n}, or drop it: ostler send {id} --withdraw {n}")
        }
        ResumeRefusal::MessageMissing { id } => {
            format!("say what to do next: ostler resume {id} \"…\", or add --keep")
        }
        ResumeRefusal::DoesNotWait { session } => format!("see ostler show {}", session.id),
        ResumeRefusal::Queued { session, command: false } => {
            let id = session.id;
            format!(
                "it starts by itself (ostler show {id}); to start it at once: ostler stop {id}, then ostler resume {id}"
            )
        }
        ResumeRefusal::Queued { session, command: true } => {
            let id = session.id;
            format!(
                "it starts by itself (ostler show {id}); to start it at once: ostler stop {id}, then run it without a queue"
            )
        }
        ResumeRefusal::SameFolder { id, copies: true, .. } => {
            format!("copy it into a worktree: ostler fork --worktree {id} \"…\"")
        }
        ResumeRefusal::SameFolder { copies: false, .. } => "resume it without --worktree".to_owned(),
    };
    (Code::Usage, hint)
}

pub fn about_copy(refusal: &ForkRefusal) -> (Code, String) {
    let hint = match refusal {
        ForkRefusal::Command { .. }
        | ForkRefusal::TranscriptGone { .. }
        | ForkRefusal::TranscriptLost { copied: false, .. } => String::new(),
        ForkRefusal::TranscriptLost { session, copied: true } => {
            format!("restore its last copy: ostler checkpoints restore {} last", session.id)
        }
        ForkRefusal::NotBegun { .. } => "start a new session: ostler run".to_owned(),
        ForkRefusal::CannotCopy { id, .. } => format!("continue it instead: ostler resume {id}"),
        ForkRefusal::MessageMissing { id } => {
            format!("say what the copy should do: ostler fork {id} \"…\", or add --keep")
        }
        ForkRefusal::SameFolder { .. } => "fork it without --worktree".to_owned(),
    };
    (Code::Usage, hint)
}
