//! How the process ends: by input, by signals, by mistakes.

use rustix::process::Signal;

use crate::fixture::Fixture;

#[test]
fn a_malformed_line_ends_it_with_1_and_a_word() {
    for bytes in [&b"hello\n"[..], b"{\"type\":\"user\",\"mess{\"type\":\"user\"}\n", b"{\"type\":\"user\"}\n"] {
        let fixture = Fixture::new();
        let mut agent = fixture.start();
        agent.send_bytes(bytes);
        assert_eq!(agent.exit(), Some(1));
        assert!(agent.complaint().contains("is not a message"));
    }
}

#[test]
fn a_signal_in_a_tool_ends_tool_and_agent() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 0)] {
        let fixture = Fixture::too_late();
        let mut agent = fixture.start();
        let prompt = agent.prompt("sleep");
        let tool = agent.tool_process();
        agent.signal(signal);
        assert_eq!(agent.exit(), Some(code));
        tool.await_end();
        assert!(fixture.transcript_has(&prompt));
    }
}

#[test]
fn the_end_of_input_lets_the_running_turn_finish() {
    let fixture = Fixture::new();
    let mut agent = fixture.start();
    agent.prompt("fix it");
    agent.end_input();
    assert_eq!(agent.result()["subtype"], "success");
    assert_eq!(agent.line(), None);
    assert_eq!(agent.exit(), Some(0));
}

#[test]
fn a_crash_says_and_saves_nothing_more() {
    let fixture = Fixture::new();
    let mut agent = fixture.start();
    agent.prompt("crash");
    agent.prompt("say never");
    assert_eq!(agent.exit(), Some(3));
    let mut last = None;
    while let Some(line) = agent.line() {
        last = Some(line);
    }
    assert_eq!(last.unwrap()["type"], "assistant");
    assert!(!fixture.transcript_path().exists());
}

#[test]
fn a_reader_that_stops_reading_does_not_make_it_deaf_to_signals() {
    let fixture = Fixture::new();
    let mut agent = fixture.start();
    agent.prompt("count 100000");
    agent.until("assistant");
    agent.await_full_output();
    agent.signal(Signal::TERM);
    assert_eq!(agent.exit(), Some(143));
}

#[test]
fn an_unknown_conversation_is_not_resumed() {
    let fixture = Fixture::new();
    let mut agent = fixture.resume();
    assert_eq!(agent.exit(), Some(1));
    assert!(agent.complaint().contains("No conversation found"));
}

#[test]
fn a_conversation_is_not_begun_twice() {
    let fixture = Fixture::new();
    let mut agent = fixture.start();
    agent.prompt("say hello");
    agent.end_input();
    agent.exit();
    let mut agent = fixture.start();
    assert_eq!(agent.exit(), Some(1));
    assert!(agent.complaint().contains("already in use"));
}

#[test]
fn wrong_usage_is_2() {
    let fixture = Fixture::new();
    let mut agent = fixture.start_with(&["--sesion"]);
    assert_eq!(agent.exit(), Some(2));
    assert!(agent.complaint().contains("--sesion"));
}
