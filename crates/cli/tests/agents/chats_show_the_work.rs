//! The chat shows what a real agent said and did: rendered Markdown, a tool call in one line, the change of a file as a
//! diff, files relative to the working directory.

use crate::fixture::Fixture;
use crate::person::Person;
use ostler_core::view::Phase;
use ostler_mock_llm::agents::Agent;
use serde_json::json;

#[test]
fn claude_shows_a_tool_call_a_diff_and_markdown() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let file = fixture.work().join("src/made.rs");
    let write = format!("tool Write {}", json!({ "file_path": file, "content": "fn main() {\n    one();\n}\n" }));
    let change = json!({ "file_path": file, "old_string": "    one();", "new_string": "    two();" });
    let text = "say # Done\n\nThe **call** is `two()` now.\n\n- first\n- second\n";
    let script = format!("{write} ; tool Edit {change} ; {} ; {text}", fixture.tool("seq 1 12; exit 3"));
    let session = fixture.detach(&["--keep"], Some(&script));
    let mut person = Person::runs(&fixture.harness, (70, 100), &["attach", session.id()]);
    // Commands are allowed. Before claude changes a file it asks, and the change is shown above the question.
    for tool in ["Write", "Edit"] {
        person.sees(&format!("asks: {tool}"));
        assert!(person.shows(&format!("● {tool} src/made.rs")));
        person.types(b"y\r");
        person.sees_that("the answer", |person| !person.shows(&format!("asks: {tool}")));
    }
    person.sees("idle since");
    session.until_look("the turn is over", |view| view.turns == 1 && view.state == Phase::Idle);
    assert_eq!(fixture.written("src/made.rs"), "fn main() {\n    two();\n}\n");
    let rows = person.screen.text();
    let has = |wanted: &[&str]| rows.windows(wanted.len()).any(|rows| rows == wanted);
    assert!(has(&["● Write src/made.rs +3 -0", "  + fn main() {", "  +     one();", "  + }"]), "{rows:#?}");
    assert!(has(&["● Edit src/made.rs +1 -1", "  -     one();", "  +     two();"]), "{rows:#?}");
    assert!(rows.iter().any(|row| row.starts_with("✘ Bash seq 1 12; exit 3 Exit code 3 ▸ 13 lines")), "{rows:#?}");
    assert!(has(&["Done", "", "The call is two() now.", "", "• first", "• second"]), "{rows:#?}");
    let status = rows.iter().find(|row| row.contains(" idle since ")).unwrap();
    assert!(status.contains("· claude · claude-") && status.contains(" in, ") && status.contains('$'), "{status}");

    person.types(b"\x0f");
    person.sees("  │ 12");
    // The next answer appears below.
    person.types(b"say once *more*\r");
    person.sees_that("the answer", |person| person.screen.text().iter().any(|row| row == "once more"));
    person.types(b"\x1c");
    person.is_left_with(0);
    fixture.proves("the chat shows tool calls, diffs and Markdown");
}
