//! A transcript proves what is in its complete lines, and nothing else, whatever else it contains.

use ostler_agents::{Agent, claude, codex, gemini};
use proptest::prelude::*;

/// A transcript, and what is in it.
fn all() -> [(&'static dyn Agent, &'static str, Vec<String>); 3] {
    let texts = || vec!["all done".to_owned(), "once more".to_owned(), "say once more".to_owned()];
    let written = include_str!("samples/claude-transcript.jsonl");
    let ids = written.lines().filter_map(|line| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["uuid"].as_str().map(str::to_owned)
    });
    [
        (&claude::Claude, written, ids.collect()),
        (&codex::Codex, include_str!("samples/codex-transcript.jsonl"), texts()),
        (&gemini::Gemini, include_str!("samples/gemini-transcript.jsonl"), texts()),
    ]
}

#[test]
fn what_is_in_it_is_found_and_what_is_not_is_not() {
    for (agent, transcript, marks) in all() {
        assert!(!marks.is_empty());
        assert!(agent.transcript_holds(transcript.as_bytes(), &marks), "{}", agent.name());
        let more: Vec<String> = marks.into_iter().chain(["never said".to_owned()]).collect();
        assert!(!agent.transcript_holds(transcript.as_bytes(), &more), "{}", agent.name());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn noise_between_its_lines_proves_and_disproves_nothing(noise in prop::collection::vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>()) {
        for (agent, transcript, marks) in all() {
            let mut lines: Vec<&[u8]> = transcript.lines().map(str::as_bytes).collect();
            lines.insert(at.index(lines.len() + 1), &noise);
            let bytes = [&lines.join(&b'\n')[..], b"\n"].concat();
            prop_assert!(agent.transcript_holds(&bytes, &marks));
        }
    }

    #[test]
    fn cut_anywhere_it_proves_only_what_is_in_whole_lines(at in any::<prop::sample::Index>()) {
        for (agent, transcript, marks) in all() {
            let cut = &transcript.as_bytes()[..at.index(transcript.len())];
            let whole = cut.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
            for mark in marks {
                let mark = [mark];
                prop_assert_eq!(agent.transcript_holds(cut, &mark), agent.transcript_holds(&cut[..whole], &mark));
            }
        }
    }
}
