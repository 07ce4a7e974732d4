//! What an agent prints about its own end: the failure of a tool that it has just ended, the note that it was
//! interrupted. When the machine shuts down (SIGTERM), claude first writes its transcript and then ends its tools, so
//! these messages are printed but never written. They contain nothing that was paid for, and a resumed model is
//! informed about the tool in another way. So a process that was told to end need not have saved them. Every other
//! process must.

/// The prefix of the id of such a message, among the ids that the proof searches for.
const UNSAVED_ON_EXIT: &str = "parting:";

/// How such a message is remembered.
#[must_use]
pub fn word(name: &str) -> String {
    format!("{UNSAVED_ON_EXIT}{name}")
}

/// The ids that must be in the transcript.
#[must_use]
pub fn names_to_find(remembered: Vec<String>, was_told_to_end: bool) -> Vec<String> {
    let plain = |name: String| match name.strip_prefix(UNSAVED_ON_EXIT) {
        Some(_) if was_told_to_end => None,
        Some(unsaved_on_exit) => Some(unsaved_on_exit.to_owned()),
        None => Some(name),
    };
    remembered.into_iter().filter_map(plain).collect()
}
