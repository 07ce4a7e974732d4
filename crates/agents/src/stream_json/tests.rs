use super::*;
use crate::claude::Claude;
use crate::saved::Saved;

#[test]
fn a_transcript_ends_with_an_answer_whatever_else_stands_behind_it() {
    let (user, assistant) = ("{\"type\":\"user\"}\n", "{\"type\":\"assistant\",\"message\":{}}\n");
    let other = "{\"type\":\"last-prompt\"}\n{\"torn";
    assert_eq!(ends_with_answer(format!("{user}{assistant}{other}").as_bytes()), Some(true));
    assert_eq!(ends_with_answer(format!("{user}{assistant}{user}{other}").as_bytes()), Some(false));
    assert_eq!(ends_with_answer(other.as_bytes()), None);
}

fn facts_of(lines: &[&str]) -> Vec<Fact> {
    let mut decoder = StreamJson::default();
    let mut facts = Vec::new();
    for line in lines {
        decoder.line(line.as_bytes(), &mut facts);
    }
    facts
}

#[test]
fn an_api_error_reported_as_success_is_a_failure() {
    let facts = facts_of(&[
        r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"result":"Overloaded"}"#,
    ]);
    let [Fact::TurnEnded(end)] = &facts[..] else { unreachable!("{facts:?}") };
    assert_eq!(end.verdict, Verdict::Failed);
    assert_eq!(end.reason.as_deref(), Some("API error 529: Overloaded"));
}

#[test]
fn a_turn_without_an_answer_has_failed_unless_it_was_a_command_to_claude_itself() {
    let said = r#"{"type":"assistant","uuid":"a","message":{"content":[{"type":"text","text":"(no content)"}]}}"#;
    let result = |turns: u32| {
        format!(r#"{{"type":"result","subtype":"success","is_error":false,"num_turns":{turns},"result":""}}"#)
    };
    let end = |turns: u32| match facts_of(&[said, &result(turns)]).pop() {
        Some(Fact::TurnEnded(end)) => end,
        other => unreachable!("{other:?}"),
    };
    assert_eq!((end(0).verdict, end(0).messages), (Verdict::Succeeded, vec![]), "nothing of it is in the transcript");
    assert_eq!(end(2).verdict, Verdict::Failed);
    assert_eq!(end(2).reason.as_deref(), Some("the agent ended its turn without an answer"));
    assert_eq!(end(2).messages, ["a"]);
}

#[test]
fn a_conversation_that_is_not_there_is_a_failure_and_an_interrupt_is_none() {
    let missing = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":0,
        "errors":["No conversation found with session ID: s"]}"#;
    let interrupted = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":0,
        "terminal_reason":"aborted_streaming","errors":["[ede_diagnostic] result_type=user"]}"#;
    let facts = facts_of(&[missing, interrupted]);
    let [Fact::TurnEnded(failed), Fact::TurnEnded(cut_off)] = &facts[..] else { unreachable!("{facts:?}") };
    assert_eq!(failed.verdict, Verdict::Failed);
    assert_eq!(failed.reason.as_deref(), Some("No conversation found with session ID: s"));
    assert_eq!(cut_off.verdict, Verdict::Interrupted);
}

#[test]
fn the_end_of_a_turn_names_the_messages_that_must_be_saved_and_no_others() {
    let facts = facts_of(&[
        r#"{"type":"assistant","uuid":"a","message":{"content":[{"type":"text","text":"hi"}]}}"#,
        r#"{"type":"assistant","uuid":"sub","parent_tool_use_id":"t","message":{"content":[]}}"#,
        r#"{"type":"result","subtype":"success","is_error":false,"result":"hi"}"#,
        r#"{"type":"result","subtype":"success","is_error":false,"result":"again"}"#,
    ]);
    let ends: Vec<_> = facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::TurnEnded(end) => Some(end.messages.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [vec!["a".to_owned()], vec![]]);
}

#[test]
fn what_it_says_of_its_breaking_off_need_not_be_saved_by_one_that_was_told_to_end() {
    let failed = |uuid: &str| {
        format!(
            r#"{{"type":"user","uuid":"{uuid}","message":{{"content":[{{"type":"tool_result","is_error":true}}]}}}}"#
        )
    };
    let said = r#"{"type":"assistant","uuid":"said","message":{"content":[{"type":"text","text":"hi"}]}}"#;
    let note = r#"{"type":"user","uuid":"note","message":{"content":[{"type":"text","text":"[interrupted]"}]}}"#;
    let mut decoder = StreamJson::default();
    for line in [&failed("first"), said, &failed("last"), note] {
        decoder.line(line.as_bytes(), &mut Vec::new());
    }
    let to_find = |told| unsaved_on_exit::names_to_find(decoder.messages_so_far(), told);
    assert_eq!(to_find(true), ["first", "said"], "it went on after the first failure");
    assert_eq!(to_find(false), ["first", "said", "last", "note"]);
}

#[test]
fn a_task_in_the_background_runs_until_its_end_is_told() {
    let line = |rest: &str| format!(r#"{{"type":"system","task_id":"t",{rest}}}"#);
    let runs = |rest: &str| facts_of(&[&line(rest)]);
    let told = |runs| [Fact::Background { task: "t".to_owned(), runs }];
    assert_eq!(runs(r#""subtype":"task_started""#), told(true));
    assert_eq!(runs(r#""subtype":"task_updated","patch":{"status":"killed"}"#), told(false));
    assert_eq!(runs(r#""subtype":"task_notification","status":"completed""#), told(false));
}

#[test]
fn what_a_subagent_says_and_does_is_told_apart() {
    let facts = facts_of(&[
        r#"{"type":"assistant","parent_tool_use_id":"t","message":{"content":[{"type":"text","text":"hi"},{"type":"tool_use","id":"c","name":"Bash","input":{"command":"id"}}]}}"#,
        r#"{"type":"user","parent_tool_use_id":"t","message":{"content":[{"type":"tool_result","tool_use_id":"c","content":"root"}]}}"#,
    ]);
    let said = Fact::Said { text: "hi".to_owned() };
    let call = Call { id: Some("c".to_owned()), edits: Vec::new() };
    let called = Fact::ToolCalled { name: "Bash".to_owned(), detail: "id".to_owned(), call };
    let returned = Fact::ToolReturned { text: "root".to_owned(), failed: false, call: Some("c".to_owned()) };
    assert_eq!(facts, [said, called, returned].map(|fact| Fact::Subagent(Box::new(fact))));
}

#[test]
fn what_a_call_changes_in_files_is_told_however_it_is_spelt() {
    let edits = |input: &str| {
        let line = format!(r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","input":{input}}}]}}}}"#);
        match facts_of(&[&line]).pop() {
            Some(Fact::ToolCalled { call, .. }) => call.edits,
            _ => Vec::new(),
        }
    };
    let edit = |old: &str, new: &str| Edit { path: "/f".to_owned(), old: old.to_owned(), new: new.to_owned() };
    assert_eq!(edits(r#"{"file_path":"/f","old_string":"a","new_string":"b"}"#), [edit("a", "b")]);
    assert_eq!(edits(r#"{"filePath":"/f","oldString":"a","newString":"b"}"#), [edit("a", "b")]);
    assert_eq!(edits(r#"{"file_path":"/f","content":"whole"}"#), [edit("", "whole")]);
    let several =
        r#"{"file_path":"/f","edits":[{"old_string":"a","new_string":"b"},{"old_string":"c","new_string":""}]}"#;
    assert_eq!(edits(several), [edit("a", "b"), edit("c", "")]);
    assert_eq!(edits(r#"{"file_path":"/f"}"#), []);
    assert_eq!(edits(r#"{"new_string":"b"}"#), []);
}

#[test]
fn a_reply_in_a_torn_line_is_not_saved() {
    let wanted = ["a".to_owned(), "b".to_owned()];
    let transcript_holds = |transcript: &[u8], marks: &[String]| Claude.transcript_holds(transcript, marks);
    assert!(transcript_holds(b"{\"uuid\":\"b\"}\n{\"uuid\":\"a\"}\n{\"uuid\":\"c\"}\n", &wanted));
    assert!(!transcript_holds(b"{\"uuid\":\"b\"}\n{\"uuid\":\"a\"}", &wanted));
    assert!(!transcript_holds(b"{\"uuid\":\"b\"}\n{\"text\":\"\\\"uuid\\\":\\\"a\\\"\"}\n", &wanted));
}
