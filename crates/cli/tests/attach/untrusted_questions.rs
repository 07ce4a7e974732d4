//! A request for permission cannot hide what it does: not behind its description, its first line, invisible characters,
//! padding or length. Checked in windows of three widths, in every command that shows a question.

use crate::harness;
use crate::person::Person;
use ostler_core::view::Phase;
use ostler_testkit::{Harness, Session};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

/// Speaks enough of the Agent Client Protocol to ask the question in a file. Its turn ends with the answer.
const AGENT: &str = r#"
while read -r line; do
    id=${line#*'"id":"'}; id=${id%%'"'*}
    case $line in
    *'"method":"initialize"'*) echo '{"id":"'$id'","result":{"protocolVersion":1}}' ;;
    *'"method":"session/new"'*) echo '{"id":"'$id'","result":{"sessionId":"native"}}' ;;
    *'"method":"session/prompt"'*)
        cat "$1"
        read -r reply
        echo '{"id":"'$id'","result":{"stopReason":"end_turn"}}' ;;
    esac
done
"#;

/// A session that asks this question.
fn asks<'a>(harness: &'a Harness, call: &Value) -> Session<'a> {
    let (agent, question) = (harness.root().join("agent"), harness.root().join("question"));
    let options = json!([{ "optionId": "y", "name": "Yes", "kind": "allow_once" }]);
    let params = json!({ "sessionId": "native", "toolCall": call, "options": options });
    let request = json!({ "id": "q", "method": "session/request_permission", "params": params });
    std::fs::write(&agent, AGENT).unwrap();
    std::fs::write(&question, format!("{request}\n")).unwrap();
    let (agent, question) = (agent.to_str().unwrap(), question.to_str().unwrap());
    let session = harness.detach(&["--cwd", "/", "--keep", "acp", "go", "--", "sh", agent, question]);
    session.until_look("it asks", |view| view.state == Phase::Asking);
    session
}

/// What a command prints in a window of this width.
fn printed(harness: &Harness, columns: u16, words: &[&str]) -> Vec<String> {
    let mut person = Person::runs(harness, (24, columns), words);
    person.is_left_with(0);
    String::from_utf8_lossy(&person.bytes).lines().map(|row| row.trim_end().to_owned()).collect()
}

fn without_colour() -> Harness {
    let mut harness = harness();
    harness.set("NO_COLOR", "1");
    harness
}

/// Everything that shows the question, in a window of this width.
fn seen(harness: &Harness, session: &Session<'_>, columns: u16) -> String {
    // How much of the question fits there depends on how long the session has been asking.
    let list = printed(harness, columns, &["ls"]);
    let tool = session.look().asking.unwrap().tool.unwrap();
    let asks = |row: &String| row.starts_with('?') && row.contains(&format!(" {tool} "));
    assert!(list.iter().any(asks), "{list:?}");
    assert!(list.iter().all(|row| row.width() <= usize::from(columns)), "{list:?}");
    assert!(!list.iter().any(|row| row.contains(char::is_control)), "{list:?}");
    let shown = printed(harness, columns, &["show", session.id()]);
    let begin = shown.iter().position(|row| row.starts_with("asks")).unwrap();
    let end = shown.iter().position(|row| row.starts_with("answer with")).unwrap();

    let mut person = Person::runs(harness, (24, columns), &["attach", session.id()]);
    // The input line, which is below the question, is drawn last.
    person.sees_that("the line to write on", |person| {
        let rows = person.screen.text();
        rows.windows(2).any(|pair| pair[0].contains("asks: ") && pair[1].starts_with('›'))
    });
    person.types(b"\x1c");
    let status = person.screen.text().into_iter().find(|row| row.contains("asks: ")).unwrap();
    person.is_left_with(0);
    let status = status.replace(session.id(), "xxxxxxxx");
    let rows = &shown[begin..end];
    // A hundred kilobytes are many rows. All of them are compared in a test of its own.
    let rows = if rows.len() > 12 {
        [&rows[..4], &["…".to_owned()], &rows[rows.len() - 4..]].concat()
    } else {
        rows.to_vec()
    };
    format!("--- {columns} columns\n{}\n{status}\n", rows.join("\n"))
}

fn snapshot(name: &str, call: &Value) {
    let harness = without_colour();
    let session = asks(&harness, call);
    let text: String = [40, 80, 120].into_iter().map(|columns| seen(&harness, &session, columns)).collect();
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name, text);
    });
    let asking = session.show().asking.unwrap();
    assert_eq!(asking["input"], call["rawInput"], "as JSON it is complete");
}

fn command(command: &str) -> Value {
    let input = json!({ "command": command, "description": "List the files" });
    json!({ "toolCallId": "c", "name": "Bash", "title": "List the files", "kind": "execute", "rawInput": input })
}

#[test]
fn a_second_line_shows() {
    snapshot("second-line", &command("echo harmless\nrm -rf precious"));
}

#[test]
fn escape_sequences_show() {
    snapshot("escape-sequences", &command("rm -rf precious\x1b[2K\rls\x1b]0;title\x07 \u{9b}8m# all is well"));
}

#[test]
fn reversed_and_invisible_text_shows() {
    snapshot("reversed", &command("ls \u{202e}suoicerp fr- mr\u{202c} r\u{200b}m\u{a0}-rf\u{feff} \u{2066}precious"));
}

#[test]
fn padding_shows() {
    snapshot("padding", &command(&format!("ls{}; rm -rf precious{}", " ".repeat(300), "\n".repeat(300))));
}

#[test]
fn a_long_command_shows_both_ends_and_its_length_and_all_of_it_on_request() {
    let long = format!("echo begin{}; rm -rf precious", "x".repeat(100_000));
    snapshot("long", &command(&long));
    let harness = without_colour();
    let session = asks(&harness, &command(&long));
    let shown = printed(&harness, 80, &["show", session.id()]);
    let rows = shown.iter().filter_map(|row| row.split_once("│ ").map(|(_, text)| text));
    assert_eq!(rows.collect::<String>(), long, "`show` prints all of it");
    let piped = harness.run(&["ls"]).exits(0).stdout;
    let row = piped.lines().find(|row| row.contains(" asking ")).unwrap();
    assert!(row.len() < 400 && row.contains("echo begin") && row.contains("rm -rf precious"), "{row}");
}

#[test]
fn an_unknown_input_is_reported_as_unknown() {
    let diff = json!({ "type": "diff", "path": "/w/xx", "oldText": "a\nb\n", "newText": "a\nevil\u{202e}\n" });
    let call = json!({ "toolCallId": "c", "title": "Tidy up", "kind": "edit", "content": [diff],
                       "locations": [{ "path": "/w/xx" }] });
    snapshot("not-known", &call);
}
