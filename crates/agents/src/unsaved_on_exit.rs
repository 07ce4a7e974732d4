//! What an agent says of its own breaking off: the failure of a tool that it has just ended, the note that it was
//! interrupted. Told to end by the machine that shuts down (SIGTERM), claude writes its transcript and only then ends its
//! tools, so such words are printed and never written. They tell nothing that was paid for, and a resumed model is told of
//! the tool in other words, so a process that was told to end need not have saved them. Every other one must.

/// Before the name of such a message, among the names that the proof looks for.
const UNSAVED_ON_EXIT: &str = "parting:";

/// How such a message is remembered.
#[must_use]
pub fn word(name: &str) -> String {
    format!("{UNSAVED_ON_EXIT}{name}")
}

/// The names that must be in the transcript.
#[must_use]
pub fn names_to_find(remembered: Vec<String>, was_told_to_end: bool) -> Vec<String> {
    let plain = |name: String| match name.strip_prefix(UNSAVED_ON_EXIT) {
        Some(_) if was_told_to_end => None,
        Some(unsaved_on_exit) => Some(unsaved_on_exit.to_owned()),
        None => Some(name),
    };
    remembered.into_iter().filter_map(plain).collect()
}
