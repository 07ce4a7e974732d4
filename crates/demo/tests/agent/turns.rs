//! What a turn looks like, and which prompts get one.

use serde_json::{Value, json};

use crate::fixture::{Fixture, OwnedProcess, outline, read};

#[test]
fn the_story_fails_a_test_repairs_the_program_and_passes_it() {
    let fixture = Fixture::new();
    let mut agent = fixture.start();
    agent.prompt("fix the login bug");
    let lines = agent.until("result");
    assert_eq!(
        outline(&lines),
        [
            "system",
            "assistant:text",
            "assistant:tool_use",
            "user:tool_result",
            "assistant:text",
            "assistant:tool_use",
            "user:tool_result",
            "assistant:text",
            "assistant:tool_use",
            "user:tool_result",
            "assistant:tool_use",
            "user:tool_result",
            "assistant:text",
            "result",
        ]
    );
    let tool_text = |index: usize| lines[index]["message"]["content"][0]["content"].as_str().unwrap();
    assert!(tool_text(3).contains("FAIL  wanted 'Hello, world!', got 'Hello, !'"));
    assert!(tool_text(11).contains("ok    Hello, Ada!"));
    assert!(read(&fixture.scratch_file("greet.sh")).contains("$name!"));

    let result = lines.last().unwrap();
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(false)));
    let text = result["result"].as_str().unwrap();
    assert!(text.contains("fix the login bug") && text.contains("greet.sh"), "{text}");
}

#[test]
fn every_line_of_a_turn_names_the_session_and_has_a_uuid_of_its_own() {
    let fixture = Fixture::new();
    let mut agent = fixture.start();
    agent.prompt("anything");
    let lines = agent.until("result");
    let session = json!(fixture.session.to_string());
    assert!(lines.iter().all(|line| line["session_id"] == session));
    let mut uuids: Vec<&str> = lines.iter().map(|line| line["uuid"].as_str().unwrap()).collect();
    uuids.sort_unstable();
    uuids.dedup();
    assert_eq!(uuids.len(), lines.len());
    assert_eq!(lines[0]["model"], "demo-1");
}

#[test]
fn a_second_prompt_goes_on_where_the_first_one_stopped() {
    let fixture = Fixture::new();
    let mut agent = fixture.start();
    agent.prompt("one");
    let first = agent.result();
    agent.prompt("two");
    let second = agent.result();
    assert!(second["result"].as_str().unwrap().contains("test.sh"));
    assert!(read(&fixture.scratch_file("test.sh")).contains("Ada Lovelace"));
    assert!(second["num_turns"].as_u64() < first["num_turns"].as_u64());
    assert!(second["total_cost_usd"].as_f64() > first["total_cost_usd"].as_f64());
    agent.prompt("three");
    assert_eq!(agent.result()["is_error"], false);
}

#[test]
fn prompts_that_come_during_a_turn_get_turns_of_their_own_in_order() {
    let fixture = Fixture::new();
    let mut agent = fixture.start();
    for text in ["say one", "say two", "say three"] {
        agent.prompt(text);
    }
    agent.end_input();
    for text in ["one", "two", "three"] {
        assert_eq!(agent.result()["result"], text);
    }
    assert_eq!(agent.exit(), Some(0));
}

#[test]
fn a_uuid_that_is_already_in_the_transcript_is_swallowed_without_a_result() {
    let fixture = Fixture::new();
    let mut agent = fixture.start();
    let uuid = agent.prompt("say first");
    agent.result();
    agent.prompt_as(&uuid, "say again");
    agent.prompt("say other");
    assert_eq!(agent.result()["result"], "other");
    agent.end_input();
    assert_eq!(agent.exit(), Some(0));

    let mut agent = fixture.resume();
    agent.prompt_as(&uuid, "say again");
    agent.end_input();
    assert_eq!(agent.line(), None);
    assert_eq!(agent.exit(), Some(0));
}

#[test]
fn a_prompt_of_a_megabyte_arrives_whole() {
    for size in [1 << 20, 17 << 20] {
        let fixture = Fixture::new();
        let mut agent = fixture.start();
        let text = format!("echo-length {}", "a\\\"é\n".repeat(size / 6));
        agent.prompt(&text);
        let wanted = format!("{} bytes, checksum {:016x}", text.len(), ostler_demo::checksum(text.as_bytes()));
        assert_eq!(agent.result()["result"], json!(wanted));
        agent.end_input();
        assert_eq!(agent.exit(), Some(0));
        assert_eq!(fixture.transcript()[0]["message"]["content"], json!(text));
    }
}

#[test]
fn a_prompt_may_come_in_pieces_and_as_text_blocks() {
    let fixture = Fixture::new();
    let mut agent = fixture.start();
    let content = json!([{"type": "text", "text": "say hello"}]);
    let line = format!("{}\n", json!({"type": "user", "message": {"role": "user", "content": content}}));
    for byte in line.bytes() {
        agent.send_bytes(&[byte]);
    }
    assert_eq!(agent.result()["result"], "hello");
}

#[test]
fn partial_text_adds_up_to_the_text_that_follows() {
    let fixture = Fixture::new();
    let mut agent = fixture.start_with(&["--partial", "--session-id", &fixture.session.to_string()]);
    agent.prompt("say one two three");
    let lines = agent.until("result");
    let pieces: Vec<&str> = lines.iter().filter_map(|line| line["event"]["delta"]["text"].as_str()).collect();
    assert_eq!(pieces, ["one ", "two ", "three"]);
}

#[test]
fn counting_gives_one_line_for_each_number() {
    let fixture = Fixture::new();
    let mut agent = fixture.start();
    agent.prompt("count 1000");
    let lines = agent.until("result");
    let texts: Vec<&Value> = lines.iter().map(|line| &line["message"]["content"][0]["text"]).collect();
    assert!((1..=1000).all(|number| *texts[number] == json!(number.to_string())));
    assert_eq!(lines.len(), 1002);
}

#[test]
fn an_api_error_is_a_success_that_is_an_error_and_the_exit_code_tells() {
    let fixture = Fixture::new();
    let mut agent = fixture.start();
    agent.prompt("fail the server is on fire");
    let result = agent.result();
    assert_eq!(result["subtype"], "success");
    assert_eq!(result["is_error"], true);
    assert_eq!(result["api_error_status"], 500);
    assert_eq!(result["result"], "the server is on fire");
    agent.end_input();
    assert_eq!(agent.exit(), Some(1));
}

#[test]
fn what_a_tool_leaves_behind_outlives_the_agent() {
    let fixture = Fixture::new();
    let mut agent = fixture.start();
    agent.prompt("leave");
    let result = agent.result();
    let words = result["result"].as_str().unwrap();
    let left = OwnedProcess::open(words.split(' ').nth(2).unwrap().parse().unwrap());
    agent.end_input();
    assert_eq!(agent.exit(), Some(0));
    assert!(left.lives());
    left.kill();
    left.await_end();
}
