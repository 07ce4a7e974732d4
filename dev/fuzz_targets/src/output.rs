//! What agents print, and what they write to disk.

use crate::first;
use ostler_agents::Agent;
use ostler_agents::decoder::Decoder;
use ostler_agents::output_facts::Reading;
use ostler_agents::saved::Row;
use ostler_agents::speak::Answer;
use ostler_core::asking::Shown;
use ostler_core::fact::{Fact, TurnEnd};
use ostler_core::outcome::Exit;

fn decode(agent: &str, bytes: &[u8]) {
    let agent = ostler_agents::find(agent).unwrap();
    facts_are_the_same_however_they_arrive(|| agent.decoder(), bytes);
    can_be_answered(agent, bytes);
}

/// For every question, every answer is one line, and so is the message that there will be no answer.
pub fn can_be_answered(agent: &dyn Agent, bytes: &[u8]) {
    let (found, ..) = facts(agent.decoder(), &[first(bytes).1]);
    for ask in found.iter().filter_map(|(_, fact)| if let Fact::Asked(ask) = fact { Some(ask) } else { None }) {
        let shown = Shown::of(ask);
        assert!(!shown.line(80).asked.chars().any(char::is_control), "a question stays on its line");
        let _ = (shown.full(80), ask.questions(), agent.longer(ask));
        for (allow, always, text) in
            [(true, false, None), (true, true, None), (true, false, Some("a\nb")), (false, false, None)]
        {
            let answer = Answer { allow, always, text: text.map(str::to_owned) };
            let lines = agent.answer(ask, &answer).into_iter().chain(agent.withdraw(ask));
            lines.for_each(|line| assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1));
        }
    }
}

/// Facts do not depend on where the bytes are cut, and are not longer than the bytes.
pub fn facts_are_the_same_however_they_arrive(decoder: impl Fn() -> Box<dyn Decoder>, bytes: &[u8]) {
    let (cut, bytes) = first(bytes);
    let whole = facts(decoder(), &[bytes]);
    let pieces: Vec<&[u8]> = bytes.chunks(cut + 1).collect();
    assert_eq!(format!("{whole:?}"), format!("{:?}", facts(decoder(), &pieces)));
    let length: usize = whole.0.iter().map(|(_, fact)| said(fact)).sum();
    // A text may be in two facts (as it is said, and as the answer), and half a byte of garbage may become three.
    assert!(length <= 8 * bytes.len() + 64, "{length} bytes of facts out of {}", bytes.len());
}

type Facts = (Vec<(u64, Fact)>, Vec<String>, TurnEnd);

fn facts(decoder: Box<dyn Decoder>, pieces: &[&[u8]]) -> Facts {
    let mut reading = Reading::from(0, decoder);
    let mut found = Vec::new();
    for piece in pieces {
        reading.feed(piece, |place, fact| found.push((place.end, fact)));
    }
    let decoder: &mut dyn Decoder = &mut *reading.decoder;
    (found, decoder.messages_so_far(), decoder.turn_end_at_exit(Exit::UNKNOWN, None))
}

/// How much text is in a fact.
fn said(fact: &Fact) -> usize {
    match fact {
        Fact::Saying { text } | Fact::Said { text } | Fact::Thought { text } | Fact::ToolReturned { text, .. } => {
            text.len()
        }
        Fact::Model { name } => name.len(),
        Fact::ToolCalled { name, detail, call } => {
            let edits: usize = call.edits.iter().map(|edit| edit.path.len() + edit.old.len() + edit.new.len()).sum();
            name.len() + detail.len() + edits
        }
        Fact::Subagent(fact) => said(fact),
        Fact::Native { id } => id.len(),
        Fact::Transcript { path } => path.len(),
        Fact::Behind { agent } => agent.len(),
        Fact::Recalled { last, .. } => last.len(),
        Fact::Opened { native_id } => native_id.as_ref().map_or(0, String::len),
        Fact::NotOpened { reason } => reason.len(),
        Fact::ReplyDue { name, line } => name.len() + line.len(),
        Fact::Asked(ask) => ask.text.len(),
        Fact::AskClosed { request } => request.len(),
        Fact::Background { task, .. } => task.len(),
        Fact::Retrying(retry) => retry.reason.len(),
        Fact::Limited(limit) => limit.what.len(),
        Fact::TurnEnded(end) => end.text.as_ref().map_or(0, String::len),
        Fact::Ready | Fact::TurnStarted | Fact::Unknown { .. } | Fact::LineTooLong { .. } => 0,
    }
}

pub fn claude(bytes: &[u8]) {
    decode("claude", bytes);
}

pub fn codex(bytes: &[u8]) {
    decode("codex", bytes);
}

pub fn gemini(bytes: &[u8]) {
    decode("gemini", bytes);
}

pub fn opencode(bytes: &[u8]) {
    decode("opencode", bytes);
}

/// A torn last line proves nothing, and what is proven stays proven when more is written.
fn prove(agent: &str, bytes: &[u8]) {
    let agent = ostler_agents::find(agent).unwrap();
    for mark in ["all done", "a", "", "prompt:a", "reply:a:done"].map(|mark| vec![mark.to_owned()]) {
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let proven = agent.transcript_holds(bytes, &mark);
        assert_eq!(proven, agent.transcript_holds(&bytes[..whole], &mark));
        assert!(!proven || agent.transcript_holds(&[&bytes[..whole], b"{}\n"].concat(), &mark));
    }
}

pub fn claude_transcript(bytes: &[u8]) {
    prove("claude", bytes);
}

pub fn codex_transcript(bytes: &[u8]) {
    prove("codex", bytes);
}

pub fn gemini_transcript(bytes: &[u8]) {
    prove("gemini", bytes);
}

/// A row proves at most one thing.
pub fn opencode_rows(bytes: &[u8]) {
    let agent = ostler_agents::find("opencode").unwrap();
    let end = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len());
    let (message_data, part_data) = (&bytes[..end], &bytes[(end + 1).min(bytes.len())..]);
    let prompt = agent.mark("", "go");
    let marks = [prompt.as_str(), "part prt_1", "part prt_1 2"];
    let mut wanted = marks.to_vec();
    agent.remove_found_in_row(&Row { part: "prt_1", message_data, part_data, since_ms: 0 }, &mut wanted);
    assert!(wanted.len() + 1 >= marks.len());
}
