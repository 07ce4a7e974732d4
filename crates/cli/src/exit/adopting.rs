//! Advice about refusals to adopt a conversation.

use super::Code;
use crate::commands::ls::tilde;
use ostler_engine::adopt::AdoptRefusal;
use std::path::PathBuf;

/// What is wrong, with paths as a person types them.
pub fn in_options(refusal: &AdoptRefusal) -> Option<String> {
    match refusal {
        AdoptRefusal::Unreadable { file, error } => {
            Some(format!("{} cannot be read: {error}", tilde(&file.to_string_lossy())))
        }
        AdoptRefusal::FolderGone { native_id, folder, .. } => {
            Some(format!("the folder of {native_id} is gone: {}", tilde(folder)))
        }
        _ => None,
    }
}

pub fn advice(refusal: &AdoptRefusal) -> (Code, String) {
    match refusal {
        AdoptRefusal::NoFile { .. } => (Code::NoSession, "name a conversation or its file".to_owned()),
        AdoptRefusal::NotWhereAgentsLook { searched, .. } => (Code::Usage, places(searched)),
        AdoptRefusal::Ambiguous { .. } => (Code::Usage, "type more of it".to_owned()),
        AdoptRefusal::Unknown { searched, .. } => (Code::NoSession, places(searched)),
        AdoptRefusal::OlderForm { agent, resume, cwd, .. } => {
            let place = cwd.as_deref().map(|cwd| format!(" in {}", tilde(cwd))).unwrap_or_default();
            (Code::Usage, format!("{agent} converts it: run {resume}{place} once, then adopt it"))
        }
        AdoptRefusal::AlreadyKept { session, archived, alive } => {
            let what_to_do = match (archived, alive) {
                (true, _) => "restore it: ostler restore",
                (false, true) => "it is running; open it: ostler attach",
                (false, false) => "continue it: ostler resume",
            };
            (Code::Refused, format!("{what_to_do} {}", session.id))
        }
        AdoptRefusal::KeptElsewhere { .. } => (Code::Refused, "continue it there with ostler resume".to_owned()),
        AdoptRefusal::Open { native_id, .. } => {
            (Code::Refused, format!("end it there, or take over: ostler adopt --takeover {native_id}"))
        }
        AdoptRefusal::PerhapsOpen { .. } => (Code::Refused, "end it there first".to_owned()),
        AdoptRefusal::Taken { .. } => (Code::Refused, "nothing was adopted".to_owned()),
        AdoptRefusal::Unreadable { .. } => (Code::Ours, String::new()),
        AdoptRefusal::NoMessages { agent, .. } => {
            (Code::Usage, format!("start a new conversation: ostler run {agent}"))
        }
        AdoptRefusal::NoFolder { agent, .. } => (Code::Usage, format!("continue it with {agent} itself")),
        AdoptRefusal::FolderGone { agent, .. } => {
            (Code::Usage, format!("{agent} continues a conversation only there: create the folder and try again"))
        }
        AdoptRefusal::CannotRepair { native_id, .. } => {
            (Code::Ours, format!("see why: ostler repair --dry-run {native_id}"))
        }
        AdoptRefusal::Damaged { native_id } => (Code::Failed, format!("see why: ostler repair --dry-run {native_id}")),
        AdoptRefusal::Conflict(_) => (Code::Usage, String::new()),
        AdoptRefusal::NamedTwice => (Code::Usage, "remove it from the arguments after --".to_owned()),
    }
}

fn places(searched: &[PathBuf]) -> String {
    let shown: Vec<String> = searched.iter().map(|place| tilde(&place.to_string_lossy())).collect();
    format!("searched {}", shown.join(", "))
}
