use super::*;
use std::path::Path;

/// What the transcript of a recording says, each in a few words.
fn said_in(agent: &str, scene: &str) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../recordings/{agent}/{scene}.rec"));
    let recording = std::fs::read_to_string(file).unwrap_or_default();
    // A line of the transcript stands behind its pause and a plus.
    let lines = recording.lines().filter_map(|line| line.trim_start().split_once(" + "));
    let transcript: String =
        lines.filter(|(pause, _)| pause.parse::<u32>().is_ok()).map(|(_, line)| format!("{line}\n")).collect();
    words(agent, &transcript)
}

fn words(agent: &str, transcript: &str) -> Vec<String> {
    let Some(past) = of(agent) else { return Vec::new() };
    let mut reading = Reading::new(past);
    let mut all = Vec::new();
    let mut add = |said: Said| {
        all.push(match said {
            Said::Told(text) => format!("> {text}"),
            Said::Agent(Fact::Said { text }) => text,
            Said::Agent(Fact::ToolCalled { name, detail, .. }) => format!("{name}: {detail}"),
            Said::Agent(Fact::ToolReturned { text, failed, .. }) => {
                format!("{}: {}", if failed { "failed" } else { "came back" }, text.lines().last().unwrap_or_default())
            }
            Said::Agent(other) => format!("{other:?}"),
        });
    };
    // However it arrives.
    for piece in transcript.as_bytes().chunks(777) {
        reading.feed(piece, &mut add);
    }
    assert_eq!(reading.waits(), transcript.contains("lost"), "only for what never comes");
    reading.finish(&mut add);
    all
}

#[test]
fn what_each_agent_was_told_said_and_did_is_read_from_its_transcript() {
    for (agent, tool, key) in
        [("claude", "Bash", "command"), ("codex", "exec_command", "cmd"), ("gemini", "run_shell_command", "command")]
    {
        let two = "sleep 0.5; echo two; exit 3";
        let mut found = said_in(agent, "tools");
        // Agents write what comes back in the order in which it does.
        found.sort();
        let prompt = format!(r#"> tools {tool} {{"{key}":"echo one"}} {tool} {{"{key}":"{two}"}} ; say both are back"#);
        let expected = [
            &prompt,
            &format!("{tool}: echo one"),
            &format!("{tool}: {two}"),
            "both are back",
            "came back: one",
            "failed: two",
        ];
        let mut expected = expected.map(str::to_owned);
        expected.sort();
        assert_eq!(found, expected, "{agent}");
    }
}

#[test]
fn each_message_is_told_once_over_several_turns() {
    for agent in ["claude", "codex", "gemini"] {
        let told = said_in(agent, "follow-up").into_iter().filter(|words| words.starts_with('>')).count();
        assert_eq!(told, 2, "{agent}");
    }
}

#[test]
fn commands_of_claude_are_shown_as_they_were_typed_and_what_claude_adds_is_not() {
    let lines = r#"{"type":"user","message":{"content":"<command-name>/model</command-name>\n<command-args>opus</command-args>"}}
{"type":"user","message":{"content":"<local-command-stdout>Set model</local-command-stdout>"}}
{"type":"user","isMeta":true,"message":{"content":"Caveat"}}
{"type":"assistant","isSidechain":true,"message":{"content":[{"type":"text","text":"below"}]}}
no JSON
{"type":"user","message":{"content":[{"type":"text","text":"go on"}]}}
"#;
    assert_eq!(words("claude", lines), ["> /model opus", "> go on"]);
}

#[test]
fn of_two_events_for_one_message_of_codex_one_counts() {
    let both = r#"{"type":"event_msg","payload":{"type":"user_message","message":"one"}}
{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"UserMessage","content":[{"text":"one"}]}}}
{"type":"event_msg","payload":{"type":"user_message","message":"two"}}
"#;
    assert_eq!(words("codex", both), ["> one", "> two"]);
}

#[test]
fn rows_of_opencode_are_a_record() {
    let rows = [
        (r#"{"role":"user"}"#, r#"{"type":"text","text":"say it"}"#),
        (r#"{"role":"user"}"#, r#"{"type":"text","text":"context","synthetic":true}"#),
        (r#"{"role":"assistant"}"#, r#"{"type":"step-start"}"#),
        (
            r#"{"role":"assistant"}"#,
            r#"{"type":"tool","tool":"bash","state":{"status":"completed","input":{"command":"false"},"output":"no","metadata":{"exit":1}}}"#,
        ),
        (r#"{"role":"assistant"}"#, r#"{"type":"text","text":"it"}"#),
    ];
    let record: Vec<u8> = rows.iter().flat_map(|(message, part)| row(message.as_bytes(), part.as_bytes())).collect();
    let record = String::from_utf8(record).unwrap_or_default();
    assert_eq!(words("opencode", &record), ["> say it", "bash: false", "failed: no", "it"]);
}

#[test]
fn an_answer_of_claude_that_stands_above_its_prompt_follows_it_and_one_whose_prompt_is_lost_is_shown() {
    let line = |uuid: &str, parent: &str, kind: &str, text: &str| {
        format!(
            r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":{parent},"message":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let lines = [
        line("c", r#""b""#, "assistant", "first answer"),
        line("a", "null", "user", "first prompt"),
        r#"{"type":"attachment","uuid":"b","parentUuid":"a"}"#.to_owned(),
        line("d", r#""lost""#, "assistant", "second answer"),
        line("e", r#""c""#, "user", "third prompt"),
    ];
    let expected = ["> first prompt", "first answer", "> third prompt", "second answer"];
    assert_eq!(words("claude", &(lines.join("\n") + "\n")), expected);
}
