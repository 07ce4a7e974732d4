//! The index follows changes of the files.

use crate::transcripts::{
    CLAUDE, GEMINI, append, claude, claude_agent, claude_file, claude_user, opencode, opencode_part,
};
use crate::{harness, hits, texts};
use serde_json::json;
use std::fs;

const LATER: &str = "2026-11-10T09:00:00Z";

#[test]
fn the_index_follows_a_transcript_that_grows_shrinks_is_replaced_or_deleted() {
    let harness = harness();
    let file = claude(&harness, CLAUDE, ["first zebra", "out", "done"]);
    assert_eq!(texts(&harness, &["zebra"]), ["first zebra"]);

    // A line that is being written counts once it is whole.
    let line = claude_agent("second zebra", LATER);
    append(&file, &line[..40]);
    assert_eq!(texts(&harness, &["zebra"]), ["first zebra"]);
    append(&file, &line[40..]);
    assert_eq!(texts(&harness, &["zebra"]), ["second zebra", "first zebra"]);

    // Rewritten in place, longer than before.
    let other: String = (0..20).map(|number| claude_agent(&format!("giraffe {number}"), LATER)).collect();
    assert!(other.len() as u64 > file.metadata().unwrap().len());
    fs::write(&file, &other).unwrap();
    assert_eq!(texts(&harness, &["zebra"]), [""; 0]);
    assert_eq!(texts(&harness, &["giraffe", "--most", "50"]).len(), 20);

    // Replaced by another file of the same length.
    let new = file.with_extension("new");
    fs::write(&new, other.replace("giraffe", "elephan")).unwrap();
    fs::rename(&new, &file).unwrap();
    assert_eq!(texts(&harness, &["giraffe"]), [""; 0]);
    assert_eq!(texts(&harness, &["elephan", "--most", "50"]).len(), 20);

    // Shorter.
    fs::write(&file, claude_user("only zebra", LATER)).unwrap();
    assert_eq!(texts(&harness, &["elephan"]), [""; 0]);
    assert_eq!(texts(&harness, &["zebra"]), ["only zebra"]);

    fs::remove_file(&file).unwrap();
    assert_eq!(texts(&harness, &["zebra"]), [""; 0]);
}

#[test]
fn a_conversation_in_a_database_is_followed_and_a_part_that_grows_counts_when_it_is_whole() {
    let harness = harness();
    let database = opencode(&harness, "feed the zebra", "it is fed");
    assert_eq!(texts(&harness, &["zebra"]), ["feed the zebra"]);
    opencode_part(
        &database,
        3,
        "assistant",
        &json!({ "type": "text", "text": "the zeb", "time": { "start": 1_794_700_000_003_u64 } }),
    );
    assert_eq!(texts(&harness, &["zebra"]).len(), 1);
    let whole =
        json!({ "type": "text", "text": "the zebra eats", "time": { "start": 1_794_700_000_003_u64, "end": 2 } })
            .to_string();
    database.execute("UPDATE part SET data = ?1 WHERE id = 'prt_3'", [whole]).unwrap();
    assert_eq!(texts(&harness, &["zebra"]), ["the zebra eats", "feed the zebra"]);
    database.execute_batch("DELETE FROM session; DELETE FROM part; DELETE FROM message;").unwrap();
    assert_eq!(texts(&harness, &["zebra"]), [""; 0]);
}

#[test]
fn a_database_that_is_away_for_a_while_is_found_again() {
    let mut harness = harness();
    drop(opencode(&harness, "feed the zebra", "it is fed"));
    assert_eq!(texts(&harness, &["zebra"]), ["feed the zebra"]);
    let (there, away) = (harness.root().join("data/opencode"), harness.root().join("away"));
    fs::rename(&there, &away).unwrap();
    assert_eq!(texts(&harness, &["zebra"]), [""; 0]);
    fs::rename(&away, &there).unwrap();
    assert_eq!(texts(&harness, &["zebra"]), ["feed the zebra"]);
    // The same with another XDG_DATA_HOME in between.
    let data = harness.root().join("data");
    harness.set("XDG_DATA_HOME", data.with_file_name("other"));
    assert_eq!(texts(&harness, &["zebra"]), [""; 0]);
    harness.set("XDG_DATA_HOME", &data);
    assert_eq!(texts(&harness, &["zebra"]), ["feed the zebra"]);
}

#[test]
fn a_chat_that_an_older_gemini_wrote_is_found_until_gemini_has_converted_it() {
    let harness = harness();
    let chats = harness.root().join("home/.gemini/tmp/project/chats");
    fs::create_dir_all(&chats).unwrap();
    fs::write(chats.parent().unwrap().join(".project_root"), "/work/gemini").unwrap();
    let older = |prompt: &str| {
        let tool = json!({ "id": "t", "name": "read_file", "args": { "path": "a" }, "status": "success", "resultDisplay": "an okapi" });
        let messages = json!([
            { "id": "1", "timestamp": "2026-10-01T10:00:00.000Z", "type": "user", "content": prompt },
            { "id": "2", "timestamp": "2026-10-01T10:00:05.000Z", "type": "gemini", "content": "Zebra, fed.", "toolCalls": [tool] },
        ]);
        let chat = json!({ "sessionId": GEMINI, "projectHash": "0", "messages": messages, "kind": "main" });
        serde_json::to_string_pretty(&chat).unwrap()
    };
    let file = chats.join("session-2026-10-01T10-00-33333333.json");
    fs::write(&file, older("feed the zebra")).unwrap();
    fs::write(chats.join("session-2026-10-01T11-00-44444444.json"), "{\"sessionId\": 4, zebra").unwrap();
    fs::write(chats.join("session-2026-10-01T12-00-55555555.json"), "").unwrap();
    assert_eq!(texts(&harness, &["zebra"]), ["Zebra, fed.", "feed the zebra"]);
    let hit = &hits(&harness, &["okapi", "--role", "tool"])[0];
    assert_eq!(
        (&hit["native_id"], &hit["cwd"], &hit["title"]),
        (&json!(GEMINI), &json!("/work/gemini"), &json!("feed the zebra"))
    );
    // `adopt` says what has to be done first.
    let refused = harness.run(&["adopt", GEMINI]).exits(2);
    assert!(refused.complaint().contains(&format!("gemini --resume {GEMINI}")), "{refused:?}");

    fs::write(&file, older("draw the giraffe")).unwrap();
    assert_eq!(texts(&harness, &["zebra"]), ["Zebra, fed."]);
    let line =
        json!({ "id": "1", "timestamp": "2026-10-01T10:00:00.000Z", "type": "user", "content": "draw the giraffe" });
    fs::write(file.with_extension("jsonl"), format!("{}\n{line}\n", json!({ "sessionId": GEMINI }))).unwrap();
    assert_eq!(texts(&harness, &["giraffe"]), ["draw the giraffe"], "once, not twice");
    assert_eq!(texts(&harness, &["zebra"]), [""; 0]);
}

#[test]
fn a_chat_whose_id_is_written_later_is_found_then() {
    let harness = harness();
    let chats = harness.root().join("home/.gemini/tmp/project/chats");
    fs::create_dir_all(&chats).unwrap();
    let file = chats.join("session-2026-10-01T10-00-33333333.jsonl");
    let first = format!("{}\n", json!({ "sessionId": GEMINI }));
    fs::write(&file, &first[..10]).unwrap();
    assert_eq!(texts(&harness, &["zebra"]), [""; 0]);
    append(&file, &first[10..]);
    append(&file, &format!("{}\n", json!({ "id": "1", "type": "user", "content": "feed the zebra" })));
    assert_eq!(texts(&harness, &["zebra"]), ["feed the zebra"]);
}

#[test]
fn many_conversations_are_found_newest_first_whatever_the_order_of_their_files() {
    let harness = harness();
    for number in 0..50 {
        let file = claude_file(&harness, &format!("{number:08}-408d-4262-88d9-97e7e2d532f0"));
        let day = 1 + (number * 5) % 28;
        fs::write(file, claude_user(&format!("zebra of day {day:02}"), &format!("2026-10-{day:02}T08:00:00Z")))
            .unwrap();
    }
    let found = texts(&harness, &["zebra", "--most", "10"]);
    let mut sorted = found.clone();
    sorted.sort();
    sorted.reverse();
    assert_eq!((found.len(), found[0].as_str()), (10, "zebra of day 28"));
    assert_eq!(found, sorted);
}
