//! What real agents printed and wrote in one turn with a tool, long texts cut.

use ostler_agents::Agent;
use ostler_agents::output_facts::Reading;
use ostler_core::fact::Fact;
use ostler_core::outcome::Exit;

pub struct Sample {
    pub agent: &'static dyn Agent,
    pub output: &'static str,
}

pub fn all() -> [Sample; 4] {
    let sample = |name: &str, output| Sample { agent: ostler_agents::find(name).unwrap(), output };
    [
        sample("claude", include_str!("samples/claude.jsonl")),
        sample("codex", include_str!("samples/codex.jsonl")),
        sample("gemini", include_str!("samples/gemini.jsonl")),
        sample("opencode", include_str!("samples/opencode.jsonl")),
    ]
}

impl Sample {
    /// The facts of these bytes when they arrive in these pieces. The last fact is the exit of the process, if no line
    /// ended the turn.
    pub fn facts(&self, pieces: &[&[u8]]) -> Vec<Fact> {
        let mut reading = Reading::from(0, self.agent.decoder());
        let mut facts = Vec::new();
        for piece in pieces {
            reading.feed(piece, |_, fact| facts.push(fact));
        }
        let said_so = facts.iter().any(|fact| matches!(fact, Fact::TurnEnded(_)));
        if !said_so {
            facts.push(Fact::TurnEnded(reading.decoder.turn_end_at_exit(Exit { code: Some(0), signal: None }, None)));
        }
        facts
    }
}

#[test]
fn every_sample_tells_of_its_tool_its_answer_and_its_end() {
    for sample in all() {
        let facts = sample.facts(&[sample.output.as_bytes()]);
        let name = sample.agent.name();
        assert!(facts.iter().any(|fact| matches!(fact, Fact::Native { .. })), "{name}: {facts:?}");
        assert!(
            facts.iter().any(|fact| matches!(fact, Fact::ToolCalled { detail, .. } if detail.contains("echo told")))
        );
        assert!(
            facts
                .iter()
                .any(|fact| matches!(fact, Fact::ToolReturned { text, failed: false, .. } if text.trim() == "told"))
        );
        assert!(facts.contains(&Fact::Said { text: "all done".to_owned() }), "{name}: {facts:?}");
        let Some(Fact::TurnEnded(end)) = facts.last() else { unreachable!("{name}: {facts:?}") };
        assert_eq!((end.text.as_deref(), &end.reason), (Some("all done"), &None), "{name}");
        assert!(end.tokens.is_some_and(|tokens| tokens.input >= 2000 && tokens.output >= 20), "{name}: {end:?}");
        assert!(!facts.iter().any(|fact| matches!(fact, Fact::Unknown { .. })), "{name}: {facts:?}");
    }
}

#[test]
fn a_decoder_that_goes_on_with_what_another_remembered_understands_the_same() {
    for sample in all() {
        let name = sample.agent.name();
        let whole = sample.facts(&[sample.output.as_bytes()]);
        let mut decoder = sample.agent.decoder();
        let mut facts = Vec::new();
        for line in sample.output.lines() {
            let memory = decoder.memory().unwrap();
            decoder = sample.agent.decoder();
            assert!(decoder.remember_all(&memory), "{name}: {memory}");
            decoder.line(line.as_bytes(), &mut facts);
        }
        if !facts.iter().any(|fact| matches!(fact, Fact::TurnEnded(_))) {
            facts.push(Fact::TurnEnded(decoder.turn_end_at_exit(Exit { code: Some(0), signal: None }, None)));
        }
        assert_eq!(facts, whole, "{name}");
        assert!(!decoder.remember_all(&serde_json::json!("of another version")), "{name}");
    }
}
