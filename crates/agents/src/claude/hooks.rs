//! What Claude Code reports about itself from a terminal, where its output is a drawing: it runs commands at certain
//! moments ("hooks") and gives them, as JSON, what happened. Our command ([`ENTRY`]) writes each payload to a line of a
//! file; here those lines become facts. Nothing is read from the screen.
//!
//! Hooks report how turns begin and how they end, with one exception: a turn that a person interrupts (Esc, or "No" to
//! a question) ends without a hook. That is visible in claude's record of its own process (`sessions/<pid>.json`). The
//! record also shows that a question was answered before its tool has returned, and that claude is past its first
//! dialogs.

use super::{limits, saved};
use crate::decoder::{Decoder, OwnRecord};
use crate::hook::ENTRY;
use crate::speak::{Doing, What};
use crate::stream_json::{detail_of, first_line};
use jiff::Timestamp;
use ostler_core::fact::{Ask, Call, Fact, TurnEnd, UsageLimit, Verdict};
use ostler_core::outcome::Exit;
use serde::Deserialize;
use serde_json::{Value, json};

/// The moments that we need. No others: each starts a process that claude waits for.
const MOMENTS: [&str; 7] = [
    "SessionStart",
    "UserPromptSubmit",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "Stop",
    "StopFailure",
];

/// Claude waits this many seconds for the command, which takes some milliseconds.
const PATIENCE_S: u32 = 5;

/// How long claude must have been idle before a turn without an end counts as interrupted. Claude does not wait for the
/// command that reports a failed turn, and between two turns that a person has queued it is idle for a moment.
const AT_REST_MS: u64 = 1000;

/// The settings that make claude run `binary` for the run in `folder`: the person's settings with our hooks added to
/// theirs. `None` when the person's are not valid settings; claude itself reports what is wrong with them.
#[must_use]
pub fn settings(theirs: Option<&str>, binary: &str, folder: &str) -> Option<Value> {
    let mut settings: Value = theirs.map_or(Ok(json!({})), serde_json::from_str).ok()?;
    // If the program no longer exists, that must not appear as a failure in the person's terminal.
    let command = format!("{} {ENTRY} {} 2>/dev/null || :", quoted(binary), quoted(folder));
    let ours = json!({ "hooks": [{ "type": "command", "command": command, "timeout": PATIENCE_S }] });
    let hooks = settings.as_object_mut()?.entry("hooks").or_insert_with(|| json!({})).as_object_mut()?;
    for moment in MOMENTS {
        hooks.entry(moment).or_insert_with(|| json!([])).as_array_mut()?.push(ours.clone());
    }
    Some(settings)
}

/// Quoted, so that a shell reads it as one word.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[derive(Deserialize)]
struct Line {
    at: u64,
    hook: Payload,
}

#[derive(Deserialize)]
struct Payload {
    hook_event_name: String,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    transcript_path: Option<String>,
    /// The id of the turn, which is also in the transcript.
    #[serde(default)]
    prompt_id: Option<String>,
    /// Set on the actions of a subagent, which are not part of the main conversation.
    #[serde(default)]
    agent_id: Option<String>,
    #[serde(default)]
    tool_name: Option<String>,
    #[serde(default)]
    tool_input: Value,
    #[serde(default)]
    permission_suggestions: Value,
    #[serde(default)]
    last_assistant_message: Option<String>,
    #[serde(default)]
    error: Option<String>,
}

/// Reads the lines. Remembers the running turn and its open questions.
#[derive(Debug, Default)]
pub struct Hooks {
    turn: Option<Turn>,
    asks: Vec<Asked>,
}

#[derive(Debug)]
struct Turn {
    prompt_id: Option<String>,
    began_ms: u64,
}

#[derive(Debug)]
struct Asked {
    request: String,
    at_ms: u64,
    agent_id: Option<String>,
    tool: Option<String>,
    input: Value,
}

impl Decoder for Hooks {
    fn line(&mut self, line: &[u8], facts: &mut Vec<Fact>) {
        let Ok(Line { at, hook }) = serde_json::from_slice::<Line>(line) else {
            if !line.iter().all(u8::is_ascii_whitespace) {
                facts.push(Fact::Unknown { kind: "a line of a hook that is not a JSON object".to_owned() });
            }
            return;
        };
        match hook.hook_event_name.as_str() {
            // At the start, and whenever the person changes the conversation (/clear, /resume).
            "SessionStart" => {
                conversation(&hook, facts);
                facts.push(Fact::Ready);
            }
            "UserPromptSubmit" => {
                conversation(&hook, facts);
                self.asks.clear();
                self.turn = Some(Turn { prompt_id: hook.prompt_id, began_ms: at });
                facts.push(Fact::TurnStarted);
            }
            "PermissionRequest" => facts.push(Fact::Asked(self.asked(at, hook))),
            "PostToolUse" | "PostToolUseFailure" => {
                facts.extend(self.returned(&hook));
                facts.extend(called(&hook));
            }
            "Stop" | "StopFailure" if hook.agent_id.is_none() => {
                facts.extend(limited(at, &hook).map(Fact::Limited));
                let end = self.turn_end(&hook);
                facts.extend(end.text.clone().map(|text| Fact::Said { text }));
                facts.push(Fact::TurnEnded(end));
            }
            "Stop" | "StopFailure" => {}
            other => facts.push(Fact::Unknown { kind: other.to_owned() }),
        }
    }

    fn messages_so_far(&self) -> Vec<String> {
        self.turn.as_ref().and_then(|turn| turn.prompt_id.as_deref()).map(saved::prompt).into_iter().collect()
    }

    /// An agent that exits in the middle of a turn has interrupted the turn.
    fn turn_end_at_exit(&mut self, exit: Exit, complaint: Option<&str>) -> TurnEnd {
        match (exit.code, exit.signal) {
            (Some(_), _) => self.broken_off("exited before the end of its turn"),
            (None, _) => TurnEnd { messages: self.messages_so_far(), ..crate::decoder::cut_off(exit, complaint) },
        }
    }

    fn own_record(&mut self, record: &[u8], now_ms: u64) -> OwnRecord {
        let Ok(Status { status, since_ms, .. }) = serde_json::from_slice(record) else {
            // The file is being written at this moment: its next change is reported again.
            return OwnRecord::default();
        };
        match (status.as_str(), &self.turn) {
            ("busy", _) => {
                let (answered, open): (Vec<_>, Vec<_>) =
                    std::mem::take(&mut self.asks).into_iter().partition(|ask| since_ms > ask.at_ms);
                self.asks = open;
                let closed = answered.into_iter().map(|ask| Fact::AskClosed { request: ask.request });
                OwnRecord { facts: closed.collect(), again_in_ms: None }
            }
            ("idle", Some(turn)) if since_ms > turn.began_ms => {
                let rested_ms = now_ms.saturating_sub(since_ms);
                if rested_ms < AT_REST_MS {
                    return OwnRecord { facts: Vec::new(), again_in_ms: Some(AT_REST_MS - rested_ms) };
                }
                let end = self.broken_off("interrupted in its terminal");
                OwnRecord { facts: vec![Fact::TurnEnded(end)], again_in_ms: None }
            }
            // Claude has no record while it shows its first dialogs. Where hooks are disabled, the record is its only
            // report.
            ("idle", None) => OwnRecord { facts: vec![Fact::Ready], again_in_ms: None },
            (_, Some(_) | None) => OwnRecord::default(),
        }
    }
}

/// The fields that we need of claude's record of its own process.
#[derive(Deserialize)]
struct Status {
    status: String,
    #[serde(rename = "statusUpdatedAt")]
    since_ms: u64,
    #[serde(rename = "waitingFor", default)]
    waiting_for: Option<String>,
}

/// What claude does, by its own record. Measured (2.1.197): after the first turn of a process that ends at a usage
/// limit, claude opens a dialog by itself, a tenth of a second after its hook has reported the end ("What do you want
/// to do? 1. Stop and wait for limit to reset …").
#[must_use]
pub fn doing(record: &[u8]) -> Option<Doing> {
    let Status { status, since_ms, waiting_for } = serde_json::from_slice(record).ok()?;
    let what = match (status.as_str(), waiting_for.as_deref()) {
        ("idle", _) => What::Rests,
        ("waiting", Some("dialog open")) => What::ShowsDialog,
        ("busy" | "waiting", _) => What::Works,
        _ => return None,
    };
    Some(Doing { what, since_ms })
}

/// The usage limit at which a turn has ended.
fn limited(at_ms: u64, hook: &Payload) -> Option<UsageLimit> {
    let failed = hook.hook_event_name == "StopFailure" && hook.error.as_deref() == Some(limits::ERROR);
    let said = i64::try_from(at_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok())?;
    failed.then(|| limits::limit(hook.last_assistant_message.as_deref().unwrap_or_default(), said))
}

/// A tool of the main conversation. If no turn seemed to be running, one is: a hook of the person has told claude not
/// to stop yet.
fn called(hook: &Payload) -> Option<Fact> {
    let name = hook.tool_name.clone().filter(|_| hook.agent_id.is_none())?;
    Some(Fact::ToolCalled { name, detail: detail_of(&hook.tool_input), call: Call::default() })
}

fn conversation(hook: &Payload, facts: &mut Vec<Fact>) {
    facts.extend(hook.session_id.clone().map(|id| Fact::Native { id }));
    facts.extend(hook.transcript_path.clone().map(|path| Fact::Transcript { path }));
}

impl Hooks {
    fn asked(&mut self, at_ms: u64, hook: Payload) -> Ask {
        let request = format!("{}-{at_ms}", hook.prompt_id.as_deref().unwrap_or("terminal"));
        self.asks.push(Asked {
            request: request.clone(),
            at_ms,
            agent_id: hook.agent_id,
            tool: hook.tool_name.clone(),
            input: hook.tool_input.clone(),
        });
        Ask {
            request,
            tool: hook.tool_name,
            text: detail_of(&hook.tool_input),
            input: hook.tool_input,
            suggestions: hook.permission_suggestions,
            details: Value::Null,
        }
    }

    /// A tool that has returned no longer asks for permission. A tool that is itself a question returns with more
    /// arguments than it was called with.
    fn returned(&mut self, hook: &Payload) -> Option<Fact> {
        let of_tool = |ask: &Asked| ask.agent_id == hook.agent_id && ask.tool == hook.tool_name;
        let same = |ask: &Asked| {
            of_tool(ask) && (ask.input == hook.tool_input || ask.tool.as_deref() == Some("AskUserQuestion"))
        };
        let index = self.asks.iter().position(same)?;
        Some(Fact::AskClosed { request: self.asks.remove(index).request })
    }

    fn turn_end(&mut self, hook: &Payload) -> TurnEnd {
        self.asks.clear();
        self.turn = None;
        let said = hook.last_assistant_message.as_deref().filter(|text| !text.trim().is_empty());
        let mut messages: Vec<String> = hook.prompt_id.as_deref().map(saved::prompt).into_iter().collect();
        messages.extend(said.zip(hook.prompt_id.as_deref()).map(|(text, prompt)| saved::reply(prompt, text)));
        let failed = hook.hook_event_name == "StopFailure";
        let reason = || said.map(first_line).or(hook.error.clone()).unwrap_or_else(|| "the turn failed".to_owned());
        TurnEnd {
            verdict: if failed { Verdict::Failed } else { Verdict::Succeeded },
            text: said.map(str::to_owned),
            reason: failed.then(reason),
            tokens: None,
            cost_usd: None,
            messages,
        }
    }

    fn broken_off(&mut self, reason: &str) -> TurnEnd {
        let messages = self.messages_so_far();
        self.asks.clear();
        self.turn = None;
        TurnEnd {
            verdict: Verdict::Interrupted,
            text: None,
            reason: Some(reason.to_owned()),
            tokens: None,
            cost_usd: None,
            messages,
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::hook::line;
    use proptest::prelude::*;

    fn told(hooks: &mut Hooks, at_ms: u64, payload: Value) -> Vec<Fact> {
        let mut facts = Vec::new();
        let line = line(at_ms, payload.to_string().as_bytes());
        hooks.line(line.strip_suffix(b"\n").unwrap(), &mut facts);
        facts
    }

    fn begin(hooks: &mut Hooks) -> Vec<Fact> {
        told(
            hooks,
            1000,
            json!({ "hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt_id": "p", "transcript_path": "/t" }),
        )
    }

    fn asks(hooks: &mut Hooks, at_ms: u64) -> String {
        let payload =
            json!({ "hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": { "command": "id" } });
        match &told(hooks, at_ms, payload)[..] {
            [Fact::Asked(ask)] => {
                assert_eq!((ask.tool.as_deref(), ask.text.as_str()), (Some("Bash"), "id"));
                ask.request.clone()
            }
            other => unreachable!("{other:?}"),
        }
    }

    #[test]
    fn a_prompt_begins_a_turn_and_tells_the_conversation_and_where_it_is_written() {
        let (id, path) = ("s".to_owned(), "/t".to_owned());
        let expected = [Fact::Native { id }, Fact::Transcript { path }, Fact::TurnStarted];
        assert_eq!(begin(&mut Hooks::default()), expected);
    }

    #[test]
    fn the_end_of_a_subagent_is_not_the_end_of_the_turn() {
        let mut hooks = Hooks::default();
        begin(&mut hooks);
        let sub = json!({ "hook_event_name": "Stop", "agent_id": "a", "last_assistant_message": "from below" });
        assert_eq!(told(&mut hooks, 1001, sub), []);
        let main = json!({ "hook_event_name": "Stop", "prompt_id": "p", "last_assistant_message": "done" });
        let facts = told(&mut hooks, 1002, main);
        let [Fact::Said { .. }, Fact::TurnEnded(end)] = &facts[..] else { unreachable!("{facts:?}") };
        assert_eq!((end.verdict, end.text.as_deref()), (Verdict::Succeeded, Some("done")));
    }

    #[test]
    fn an_api_error_is_a_failure_with_its_reason() {
        let mut hooks = Hooks::default();
        begin(&mut hooks);
        let payload = json!({ "hook_event_name": "StopFailure", "error": "unknown", "last_assistant_message": "API Error: 400 no\nmore" });
        let facts = told(&mut hooks, 1001, payload);
        let [.., Fact::TurnEnded(end)] = &facts[..] else { unreachable!("{facts:?}") };
        assert_eq!((end.verdict, end.reason.as_deref()), (Verdict::Failed, Some("API Error: 400 no")));
    }

    /// As measured with 2.1.197.
    #[test]
    fn a_usage_limit_is_told_before_the_end_of_its_turn() {
        let mut hooks = Hooks::default();
        begin(&mut hooks);
        let words = "You've hit your session limit · resets 6:04pm (UTC)";
        let payload =
            json!({ "hook_event_name": "StopFailure", "error": "rate_limit", "last_assistant_message": words });
        let at: Timestamp = "2026-11-17T17:54:02Z".parse().unwrap();
        let facts = told(&mut hooks, u64::try_from(at.as_millisecond()).unwrap(), payload);
        let [Fact::Limited(limit), Fact::Said { .. }, Fact::TurnEnded(end)] = &facts[..] else {
            unreachable!("{facts:?}")
        };
        let Fact::Limited(resolved) = Fact::Limited(limit.clone()).resolved(Timestamp::UNIX_EPOCH) else {
            unreachable!()
        };
        let resets_at: Timestamp = "2026-11-17T18:05:00Z".parse().unwrap();
        assert_eq!((resolved.what.as_str(), resolved.resets_at), ("usage limit", Some(resets_at.as_second())));
        assert_eq!((end.verdict, end.reason.as_deref()), (Verdict::Failed, Some(words)));
        let below = json!({ "hook_event_name": "StopFailure", "error": "rate_limit", "agent_id": "a" });
        assert_eq!(told(&mut hooks, 1, below), [], "a subagent's is not the turn's");
    }

    #[test]
    fn its_record_says_whether_a_dialog_is_open() {
        let what = |rest: &str| {
            doing(format!(r#"{{"pid":1,"statusUpdatedAt":7,"status":{rest}}}"#).as_bytes()).map(|doing| doing.what)
        };
        assert_eq!(what(r#""waiting","waitingFor":"dialog open""#), Some(What::ShowsDialog));
        assert_eq!(what(r#""waiting","waitingFor":"permission prompt""#), Some(What::Works));
        assert_eq!(what(r#""idle""#), Some(What::Rests));
        assert_eq!(what(r#""busy""#), Some(What::Works));
        assert_eq!(what(r#""asleep""#), None);
    }

    #[test]
    fn a_question_is_over_when_its_tool_came_back_and_not_when_another_did() {
        let mut hooks = Hooks::default();
        begin(&mut hooks);
        let request = asks(&mut hooks, 1001);
        let back = |command| json!({ "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": { "command": command } });
        assert!(!told(&mut hooks, 1002, back("ls")).contains(&Fact::AskClosed { request: request.clone() }));
        assert!(told(&mut hooks, 1003, back("id")).contains(&Fact::AskClosed { request }));
    }

    #[test]
    fn a_question_is_over_when_claude_is_at_work_again() {
        let mut hooks = Hooks::default();
        begin(&mut hooks);
        let request = asks(&mut hooks, 1500);
        assert_eq!(hooks.own_record(br#"{"status":"busy","statusUpdatedAt":1400}"#, 1600).facts, []);
        let facts = hooks.own_record(br#"{"status":"busy","statusUpdatedAt":1550}"#, 1600).facts;
        assert_eq!(facts, [Fact::AskClosed { request }]);
    }

    #[test]
    fn claude_at_rest_after_a_prompt_without_an_end_was_interrupted_once() {
        let mut hooks = Hooks::default();
        begin(&mut hooks);
        let before = br#"{"status":"idle","statusUpdatedAt":900}"#;
        assert_eq!(hooks.own_record(before, 5000), OwnRecord::default());
        let since = br#"{"status":"idle","statusUpdatedAt":1200}"#;
        assert_eq!(hooks.own_record(since, 1250), OwnRecord { facts: Vec::new(), again_in_ms: Some(950) });
        let facts = hooks.own_record(since, 2200).facts;
        let [Fact::TurnEnded(end)] = &facts[..] else { unreachable!("{facts:?}") };
        assert_eq!((end.verdict, &end.messages[..]), (Verdict::Interrupted, &[saved::prompt("p")][..]));
        assert_eq!(hooks.own_record(since, 2300), OwnRecord { facts: vec![Fact::Ready], again_in_ms: None });
    }

    #[test]
    fn our_hooks_are_added_to_the_persons_own() {
        let theirs = r#"{"model":"m","hooks":{"Stop":[{"hooks":[{"type":"command","command":"theirs"}]}]}}"#;
        let merged = settings(Some(theirs), "/o'stler", "/a b/1").unwrap();
        assert_eq!(merged["model"], "m");
        assert_eq!(merged["hooks"]["Stop"][0]["hooks"][0]["command"], "theirs");
        assert_eq!(
            merged["hooks"]["Stop"][1]["hooks"][0]["command"],
            r"'/o'\''stler' __hook '/a b/1' 2>/dev/null || :"
        );
        assert_eq!(settings(Some("[]"), "", ""), None);
        assert_eq!(settings(Some(r#"{"hooks":{"Stop":1}}"#), "", ""), None);
    }

    proptest! {
        #[test]
        fn no_payload_makes_the_decoder_panic_or_two_lines_of_one(payload in prop::collection::vec(any::<u8>(), 0..200)) {
            let line = line(1, &payload);
            prop_assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
            let mut facts = Vec::new();
            Hooks::default().line(&line, &mut facts);
            Hooks::default().own_record(&payload, 1);
        }
    }
}
