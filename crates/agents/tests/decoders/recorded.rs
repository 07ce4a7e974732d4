//! The items in the transcripts of recordings.

use ostler_agents::recorded::{Reading, Recorded, What};
use ostler_core::fact::Fact;
use std::path::Path;

/// The items in the transcript of a recording, each as a short text.
fn told_in(agent: &str, scene: &str) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../recordings/{agent}/{scene}.rec"));
    let recording = std::fs::read_to_string(file).unwrap();
    // In a recording a line of the transcript comes after its pause and a plus.
    let lines = recording.lines().filter_map(|line| line.trim_start().split_once(" + "));
    let transcript: String =
        lines.filter(|(pause, _)| pause.parse::<u32>().is_ok()).map(|(_, line)| format!("{line}\n")).collect();
    let mut reading = Reading::new(ostler_agents::find(agent).unwrap().recording().unwrap());
    let mut all = Vec::new();
    let mut add = |recorded: Recorded| {
        assert!(recorded.at.is_some(), "{agent}: {recorded:?}");
        all.push(match recorded.what {
            What::Told { text } => format!("> {text}"),
            What::Agent(Fact::Said { text }) => text,
            What::Agent(Fact::ToolCalled { name, detail, .. }) => format!("{name}: {detail}"),
            What::Agent(Fact::ToolReturned { text, failed, .. }) => {
                let last = text.trim_end().lines().last().unwrap_or_default().to_owned();
                format!("{}: {last}", if failed { "failed" } else { "came back" })
            }
            What::Agent(other) => format!("{other:?}"),
        });
    };
    // The result does not depend on how the bytes are split.
    for piece in transcript.as_bytes().chunks(777) {
        reading.feed(piece, &mut add);
    }
    assert!(!reading.waits(), "{agent}");
    reading.finish(&mut add);
    all
}

#[test]
fn what_each_agent_was_told_said_and_did_is_read_from_its_transcript() {
    for (agent, tool, key) in
        [("claude", "Bash", "command"), ("codex", "exec_command", "cmd"), ("gemini", "run_shell_command", "command")]
    {
        let two = "sleep 0.5; echo two; exit 3";
        let mut found = told_in(agent, "tools");
        // Agents write results in the order in which they come.
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
        let told = told_in(agent, "follow-up").into_iter().filter(|words| words.starts_with('>')).count();
        assert_eq!(told, 2, "{agent}");
    }
}
