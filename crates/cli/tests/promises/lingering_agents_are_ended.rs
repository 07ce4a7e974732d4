//! An agent that does not exit after its result is ended after the linger time, and its result counts.

use crate::harness;

#[test]
fn an_agent_that_does_not_exit_after_its_result_is_ended_and_keeps_its_success() {
    let mut harness = harness();
    harness.configure("linger = \"200ms\"\n");
    // It answers like claude, and then exits neither at the end of its input nor on a signal.
    let said = r#"{"type":"system","subtype":"init","session_id":"s","tools":[]}"#;
    let done =
        r#"{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s","num_turns":1}"#;
    let script = format!(
        "#!/bin/sh\nread -r line\nexec {} deaf scatter=2 'say={said}' 'say={done}' forever\n",
        harness.misbehave()
    );
    let folder = harness.root().join("bin");
    std::fs::create_dir(&folder).unwrap();
    harness.write_program(&folder.join("claude"), &script);
    let path = std::env::var("PATH").unwrap_or_default();
    harness.set("PATH", format!("{}:{path}", folder.display()));

    let session = harness.detach(&["claude", "do it"]);
    harness.run(&["wait", session.id()]);
    let shown = session.show();
    let outcome = shown.outcome();
    assert_eq!((outcome.kind.as_str(), outcome.text.as_deref()), ("succeeded", Some("done")), "{shown:?}");
    assert_eq!(outcome.signal, Some(9), "{shown:?}");
    harness.nothing_is_left();
}
