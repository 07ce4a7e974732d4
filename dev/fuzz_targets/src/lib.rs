//! Every parser of foreign bytes, as one function each. For any bytes the function returns, and it asserts what must
//! hold for all of them.
//!
//! `cargo xtask fuzz` looks for bytes that break one; `tests/seeds.rs` replays what is kept below `dev/fuzz/seeds`, so
//! that a bug that was found once stays repaired without fuzzing.

#![expect(clippy::unwrap_used, reason = "a broken promise is what is looked for")]

mod agent_feed;
mod files;
mod output;
mod records;
mod screen;

/// A parser to be fuzzed.
#[derive(Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
}

/// All targets, by the name of their folder of seeds.
#[must_use]
pub fn targets() -> Vec<Target> {
    let target = |name, run| Target { name, run };
    vec![
        target("decoder-claude", output::claude),
        target("decoder-codex", output::codex),
        target("decoder-gemini", output::gemini),
        target("decoder-opencode", output::opencode),
        target("transcript-claude", output::claude_transcript),
        target("transcript-codex", output::codex_transcript),
        target("transcript-gemini", output::gemini_transcript),
        target("rows-opencode", output::opencode_rows),
        target("hooks", agent_feed::hooks),
        target("own-record", agent_feed::own_record),
        target("acp", agent_feed::acp),
        target("conversation", agent_feed::conversation),
        target("counted", agent_feed::counted),
        target("records", records::records),
        target("journal", records::journal),
        target("wire", records::wire),
        target("terminal", screen::terminal),
        target("snapshot", screen::snapshot),
        target("text", screen::text),
        target("folder", files::folder),
        target("inbox", files::inbox),
        target("feed", files::feed),
    ]
}

/// The first byte as a number, and the rest.
fn first(bytes: &[u8]) -> (usize, &[u8]) {
    bytes.split_first().map_or((0, bytes), |(first, rest)| (usize::from(*first), rest))
}
