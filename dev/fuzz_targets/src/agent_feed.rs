//! What agents report besides or instead of an output: through hooks, over a protocol, in records of their own.

use crate::first;
use crate::output::{can_be_answered, facts_are_the_same_however_they_arrive};
use ostler_agents::Agent;
use ostler_agents::decoder::Decoder;

fn agent(name: &str) -> &'static dyn Agent {
    ostler_agents::find(name).unwrap()
}

fn hooks_of_claude() -> Box<dyn Decoder> {
    agent("claude").hooks().unwrap()
}

pub fn hooks(bytes: &[u8]) {
    facts_are_the_same_however_they_arrive(hooks_of_claude, bytes);
    facts_are_the_same_however_they_arrive(|| agent("opencode").hooks().unwrap(), bytes);
}

/// Claude's record of its own process, between the hooks of a turn: the record ends a turn at most once. When the
/// record has to be looked at again, that is after a while and not at once.
pub fn own_record(bytes: &[u8]) {
    let (at, record) = first(bytes);
    let mut decoder = hooks_of_claude();
    let mut facts = Vec::new();
    decoder.line(br#"{"at":100,"hook":{"hook_event_name":"UserPromptSubmit","prompt_id":"p"}}"#, &mut facts);
    let told = decoder.own_record(record, at as u64 * 100);
    assert!(told.again_in_ms.is_none_or(|wait| wait > 0 && told.facts.is_empty()));
    let ended = |told: &ostler_agents::decoder::OwnRecord| told.facts.iter().filter(|fact| is_end(fact)).count();
    let again = decoder.own_record(record, at as u64 * 100);
    assert!(ended(&told) + ended(&again) <= 1, "a turn ends once");
}

fn is_end(fact: &ostler_core::fact::Fact) -> bool {
    matches!(fact, ostler_core::fact::Fact::TurnEnded(_))
}

pub fn acp(bytes: &[u8]) {
    facts_are_the_same_however_they_arrive(|| agent("acp").decoder(), bytes);
    can_be_answered(agent("acp"), bytes);
}

/// Only the process itself tells which conversation it has.
pub fn conversation(bytes: &[u8]) {
    let agent = agent("opencode");
    let told: Vec<String> = (0..3).filter_map(|pid| agent.reported_conversation(bytes, pid)).collect();
    assert!(told.len() <= 1 && told.iter().all(|id| id.len() <= bytes.len()));
}

/// The count depends on no torn line and on no line of another turn; a cost is reported for one conversation only.
pub fn counted(bytes: &[u8]) {
    let agent = agent("claude");
    let marks = ["prompt:a".to_owned()];
    let counted = |bytes: &[u8]| {
        let mut count = agent.count(&marks).unwrap();
        let lines = bytes.split_inclusive(|&byte| byte == b'\n').rev().filter_map(|line| line.strip_suffix(b"\n"));
        for line in lines {
            if count.line(line) {
                break;
            }
        }
        count.tokens()
    };
    let other = br#"{"type":"user","uuid":"of-another-turn","promptId":"another"}
{"type":"assistant","uuid":"its-answer","parentUuid":"of-another-turn","message":{"id":"m","usage":{"output_tokens":1}}}"#;
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    assert_eq!(counted(bytes), counted(&bytes[..whole]));
    assert_eq!(counted(bytes), counted(&[&bytes[..whole], other, b"\n"].concat()));
    let costs = ["a", "b"].map(|id| agent.cost_in(bytes, "/w", id, false));
    assert!(costs.iter().flatten().count() <= 1);
}
