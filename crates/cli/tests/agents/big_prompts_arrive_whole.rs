//! A prompt of a megabyte, piped in, reaches the model byte for byte.

use crate::bed::{Bed, for_every_agent};
use ostler_model::agents::Agent;

fn takes_a_megabyte(agent: Agent) {
    let Some(bed) = Bed::new(agent) else { return };
    let mut prompt = "say read all of it ;".to_owned();
    while prompt.len() < 1 << 20 {
        prompt.push_str(&format!(" {:09} é\"\\", prompt.len()));
    }
    prompt.push_str(" end");
    let words = bed.words(&[], Some("-"));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    bed.harness.run_with_input(&words, prompt.as_bytes()).exits(0);
    let seen = bed.seen();
    assert_eq!(seen.len(), 1, "one message");
    assert!(seen[0] == prompt, "{} bytes became {}", prompt.len(), seen[0].len());
    bed.proves("prompt of a megabyte");
}

for_every_agent!(takes_a_megabyte:
    claude_takes_a_megabyte Claude,
    codex_takes_a_megabyte Codex,
    gemini_takes_a_megabyte Gemini,
    opencode_takes_a_megabyte Opencode,
);
