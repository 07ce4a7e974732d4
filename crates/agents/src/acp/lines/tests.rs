use super::*;
use proptest::prelude::*;
use serde_json::json;

fn facts_of(lines: &[Value]) -> Vec<Fact> {
    let mut decoder = AcpLines::default();
    // Another decoder that continues from the memory of the one before it must find the same facts.
    let mut memory = decoder.memory().unwrap_or_default();
    let (mut facts, mut facts_of_many) = (Vec::new(), Vec::new());
    for line in lines {
        decoder.line(line.to_string().as_bytes(), &mut facts);
        let mut next = AcpLines::default();
        assert!(next.remember_all(&memory), "{memory}");
        next.line(line.to_string().as_bytes(), &mut facts_of_many);
        memory = next.memory().unwrap_or_default();
    }
    assert_eq!(facts, facts_of_many);
    facts
}

fn update(update: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": update } })
}

fn said(text: &str) -> Value {
    update(json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } }))
}

fn end_of(answer: Value) -> TurnEnd {
    let facts = facts_of(&[said("most"), said(" of it"), answer]);
    let Some(Fact::TurnEnded(end)) = facts.last() else { unreachable!("{facts:?}") };
    assert_eq!(end.text.as_deref(), Some("most of it"));
    end.clone()
}

#[test]
fn only_end_turn_is_a_success_and_every_other_end_has_its_reason() {
    let ended = |reason: &str| json!({ "id": "prompt-1", "result": { "stopReason": reason } });
    assert_eq!(end_of(ended("end_turn")).verdict, Verdict::Succeeded);
    assert_eq!(end_of(ended("cancelled")).verdict, Verdict::Interrupted);
    for reason in ["refusal", "max_tokens", "max_turn_requests", "something new"] {
        let end = end_of(ended(reason));
        assert_eq!((end.verdict, end.reason.is_some()), (Verdict::Failed, true), "{reason}");
    }
    for result in [json!(null), json!({}), json!({ "stopReason": 1 }), json!([])] {
        assert_eq!(end_of(json!({ "id": "prompt-1", "result": result })).verdict, Verdict::Failed, "{result}");
    }
}

/// As the four agents write them.
#[test]
fn an_error_is_told_in_the_words_that_matter() {
    for (error, words) in [
        (json!({ "code": 400, "message": r#"{"error":{"code":400,"message":"wrong"}}"# }), "wrong"),
        (json!({ "code": -32603, "message": "Internal error: API Error: 400 wrong" }), "API Error: 400 wrong"),
        (json!({ "code": -32603, "message": "Internal error", "data": { "details": "wrong\nhere" } }), "wrong"),
        (json!({ "code": -32603, "message": "Internal error", "data": { "message": "wrong" } }), "wrong"),
        (json!({ "code": -32000, "message": "Authentication required" }), "Authentication required"),
        (json!({}), "the agent reports an error"),
    ] {
        let end = end_of(json!({ "id": "prompt-1", "error": error }));
        assert_eq!((end.verdict, end.reason.as_deref()), (Verdict::Failed, Some(words)), "{error}");
    }
}

#[test]
fn what_is_told_again_of_an_earlier_run_is_not_said_in_this_one() {
    let facts = facts_of(&[
        json!({ "id": "initialize", "result": { "protocolVersion": 1 } }),
        said("before"),
        json!({ "id": "session/load", "result": null }),
        said("before as well"),
        json!({ "id": "ready", "error": { "code": -32601, "message": "Method not found" } }),
        said("now"),
        json!({ "id": "prompt-1", "result": { "stopReason": "end_turn" } }),
    ]);
    let [Fact::ReplyDue { .. }, Fact::Opened { .. }, Fact::Saying { .. }, Fact::Said { text }, Fact::TurnEnded(_)] =
        &facts[..]
    else {
        unreachable!("{facts:?}")
    };
    assert_eq!(text, "now");
}

#[test]
fn a_turn_without_an_answer_is_no_success() {
    let ended = json!({ "id": "prompt-1", "result": { "stopReason": "end_turn" } });
    let facts = facts_of(std::slice::from_ref(&ended));
    let [Fact::TurnEnded(end)] = &facts[..] else { unreachable!("{facts:?}") };
    assert_eq!((end.verdict, end.reason.is_some()), (Verdict::Failed, true));
}

#[test]
fn notices_of_the_program_are_no_part_of_the_answer() {
    let opened =
        |name: &str| json!({ "id": "initialize", "result": { "protocolVersion": 1, "agentInfo": { "name": name } } });
    let new = json!({ "id": "session/new", "result": { "sessionId": "s" } });
    let ended = json!({ "id": "prompt-1", "result": { "stopReason": "end_turn" } });
    let answer = |lines: &[Value]| {
        let facts = facts_of(lines);
        let Some(Fact::TurnEnded(end)) = facts.last().cloned() else { unreachable!("{facts:?}") };
        (end.verdict, end.text)
    };
    let known = said("Model metadata for `x` not found. Defaulting to fallback metadata.");
    let other = said("Heads up, you have less than a tenth of your weekly limit left.");
    let codex = [opened("codex-acp"), new.clone()];
    let after = |more: &[Value]| answer(&[&codex, more, std::slice::from_ref(&ended)].concat());
    let good = |text: &str| (Verdict::Succeeded, Some(text.to_owned()));
    assert_eq!(after(&[known.clone(), said("two"), said(" words.")]), good("two words."));
    assert_eq!(after(&[other.clone(), said("two"), said(" words.")]), good("two words."));
    assert_eq!(after(&[said("one. "), said("two")]), good("one. two"));
    assert_eq!(after(&[known]).0, Verdict::Failed, "a notice is not an answer");
    let glued = answer(&[opened("another"), new, other, said("two"), ended.clone()]).1;
    assert!(glued.is_some_and(|text| text.contains("left.two")), "nothing is cut for an unknown agent");
    let message = |id: &str, text: &str| {
        let content = json!({ "type": "text", "text": text });
        update(json!({ "sessionUpdate": "agent_message_chunk", "messageId": id, "content": content }))
    };
    let two = [message("a", "one"), message("b", "two"), message("b", " three"), ended];
    assert_eq!(answer(&two), good("two three"));
}

#[test]
fn a_tool_whose_command_failed_has_failed_though_it_is_called_completed() {
    let returned = |status: &str, raw: Value| {
        let call =
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "1", "status": status, "rawOutput": raw });
        let facts = facts_of(&[update(call)]);
        let Some(Fact::ToolReturned { failed, .. }) = facts.last() else { unreachable!("{facts:?}") };
        *failed
    };
    assert!(returned("completed", json!({ "output": "", "metadata": { "exit": 1 } })), "as opencode says it");
    assert!(!returned("completed", json!({ "output": "", "metadata": { "exit": 0 } })));
    assert!(!returned("completed", json!("text")));
    assert!(returned("failed", json!({ "exit_code": 0 })));
}

#[test]
fn every_token_counts_once() {
    let tokens_of = |usage: Value| {
        let end = end_of(json!({ "id": "prompt-1", "result": { "stopReason": "end_turn", "usage": usage } }));
        end.tokens.map(|tokens| (tokens.input, tokens.output))
    };
    let apart = json!({ "inputTokens": 106, "outputTokens": 8, "totalTokens": 1118, "cachedReadTokens": 1000, "thoughtTokens": 4 });
    assert_eq!(tokens_of(apart), Some((1106, 12)));
    let within = json!({ "inputTokens": 1106, "outputTokens": 12, "totalTokens": 1118, "cachedReadTokens": 1000, "thoughtTokens": 4 });
    assert_eq!(tokens_of(within), Some((1106, 12)));
    assert_eq!(tokens_of(json!({ "inputTokens": 5 })), None);
}

#[test]
fn one_that_tells_everything_first_is_open_with_its_answer() {
    let facts = facts_of(&[
        json!({ "id": "initialize", "result": { "protocolVersion": 1, "agentInfo": { "name": "codex-acp" } } }),
        said("before"),
        json!({ "id": "session/load", "result": {} }),
    ]);
    assert!(matches!(&facts[..], [Fact::Behind { .. }, Fact::Opened { native_id: None }]), "{facts:?}");
}

#[test]
fn a_conversation_that_does_not_open_says_why() {
    let version = json!({ "id": "initialize", "result": { "protocolVersion": 2 } });
    let refused = json!({ "id": "session/new", "error": { "code": -32000, "message": "Authentication required" } });
    let nameless = json!({ "id": "session/new", "result": {} });
    for line in [version, refused, nameless] {
        let facts = facts_of(std::slice::from_ref(&line));
        assert!(matches!(&facts[..], [Fact::NotOpened { .. }]), "{line}: {facts:?}");
    }
}

#[test]
fn a_tool_call_is_shown_once_with_what_is_known_when_it_runs() {
    let facts = facts_of(&[
        update(json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "Terminal", "kind": "execute",
                       "status": "pending", "rawInput": {} })),
        update(json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "`ls -l`", "status": "pending",
                       "rawInput": { "command": "ls -l" } })),
        update(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "in_progress" })),
        update(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed",
                       "rawOutput": "a file" })),
    ]);
    let call = fact::Call { id: Some("c".to_owned()), edits: Vec::new() };
    let called = Fact::ToolCalled { name: "execute".to_owned(), detail: "ls -l".to_owned(), call };
    let id = Some("c".to_owned());
    assert_eq!(facts, [called, Fact::ToolReturned { text: "a file".to_owned(), failed: false, call: id }]);
}

#[test]
fn what_we_cannot_do_is_declined_and_a_question_that_is_none_too() {
    let unreadable = json!({ "toolCall": 1 });
    for (method, params) in [("fs/read_text_file", json!({})), ("session/request_permission", unreadable)] {
        let facts = facts_of(&[json!({ "id": 7, "method": method, "params": params })]);
        let [Fact::ReplyDue { name, line }] = &facts[..] else { unreachable!("{facts:?}") };
        let line: Value = serde_json::from_slice(line).unwrap_or_default();
        assert_eq!((name.as_str(), &line["id"], &line["error"]["code"]), ("declined-7", &json!(7), &json!(-32601)));
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..5)) {
        let mut facts = Vec::new();
        let mut decoder = AcpLines::default();
        lines.iter().for_each(|line| decoder.line(line, &mut facts));
    }

    #[test]
    fn fields_of_the_wrong_type_do_no_harm(
        id in r#"(1|null|"prompt-1"|"initialize"|"session/new"|"session/load"|"ready")"#,
        method in "(session/update|session/request_permission|fs/write_text_file)",
        field in "(params|result|error|id|method)",
        inner in "(update|toolCall|options|stopReason|sessionId|protocolVersion|message|data|usage|_meta)",
        kind in "(agent_message_chunk|agent_thought_chunk|tool_call|tool_call_update|plan|1)",
        value in r#"(1|"x"|\[\]|\{\}|null|true)"#,
    ) {
        let mut facts = Vec::new();
        let mut decoder = AcpLines::default();
        for line in [
            format!(r#"{{"id":{id},"{field}":{value}}}"#),
            format!(r#"{{"id":{id},"{field}":{{"{inner}":{value}}}}}"#),
            format!(r#"{{"id":{id},"method":"{method}","params":{{"{inner}":{value}}}}}"#),
            format!(r#"{{"method":"session/update","params":{{"update":{{"sessionUpdate":"{kind}","content":{value}}}}}}}"#),
        ] {
            decoder.line(line.as_bytes(), &mut facts);
        }
    }
}
