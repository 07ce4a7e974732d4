//! The command of ours that an agent runs when something happens, for agents that can run commands ("hooks"). It writes
//! what the agent reports to a line of the run's `hooks` file; [`crate::speak::Speak::hooks`] reads those lines.

/// The argument that makes our binary that command.
pub const ENTRY: &str = "__hook";

/// A line of the file: the payload as the agent gave it, and when (milliseconds since 1970).
#[must_use]
pub fn line(at_ms: u64, payload: &[u8]) -> Vec<u8> {
    let mut line = format!(r#"{{"at":{at_ms},"hook":"#).into_bytes();
    // In JSON a line break may be replaced by any other white space.
    line.extend(payload.iter().map(|&byte| if byte == b'\n' || byte == b'\r' { b' ' } else { byte }));
    line.extend(b"}\n");
    line
}
