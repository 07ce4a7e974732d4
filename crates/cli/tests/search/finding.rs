//! What is found, and how it is printed.

use crate::transcripts::{
    CLAUDE, CODEX, GEMINI, OPENCODE, claude, claude_agent, claude_file, claude_tool, claude_user, codex, gemini,
    opencode,
};
use crate::{harness, hits, texts};
use serde_json::Value;

fn field(hits: &[Value], name: &str) -> Vec<String> {
    hits.iter().map(|hit| hit[name].as_str().unwrap_or("null").to_owned()).collect()
}

#[test]
fn conversations_of_all_agents_are_found_with_the_commands_that_read_and_continue_them() {
    let harness = harness();
    claude(&harness, CLAUDE, ["why is the zebra late", "zebra.log: 3 lines", "The zebra waits for a lock."]);
    codex(&harness, "draw a zebra", "Here is your zebra.");
    gemini(&harness, "count zebra stripes", "A zebra has many stripes.");
    opencode(&harness, "feed the zebra", "The zebra is fed.");

    let found = hits(&harness, &["zebra"]);
    let newest_first = ["gemini", "gemini", "codex", "codex", "claude", "claude", "claude", "opencode", "opencode"];
    let mut agents = field(&found, "agent");
    let times = field(&found, "at");
    assert!(times.is_sorted_by(|one, next| one >= next), "{times:?}");
    agents.sort();
    let mut expected = newest_first.map(str::to_owned);
    expected.sort();
    assert_eq!(agents, expected, "{found:?}");

    for (agent, id, cwd, prompt) in [
        ("claude", CLAUDE, "/work/app", "why is the zebra late"),
        ("codex", CODEX, "/work/codex", "draw a zebra"),
        ("gemini", GEMINI, "/work/gemini", "count zebra stripes"),
        ("opencode", OPENCODE, "/work/opencode", "feed the zebra"),
    ] {
        let of_agent = hits(&harness, &["zebra", "--agent", agent]);
        assert!(of_agent.iter().all(|hit| hit["agent"] == agent && hit["native_id"] == id), "{of_agent:?}");
        let hit = &of_agent[0];
        assert_eq!((hit["cwd"].as_str(), hit["title"].as_str()), (Some(cwd), Some(prompt)));
        assert_eq!((&hit["session"], &hit["name"]), (&Value::Null, &Value::Null));
        assert_eq!(hit["command"], serde_json::json!(["ostler", "adopt", id]));
        let read: Vec<&str> =
            hit["read"].as_array().unwrap().iter().skip(1).map(|word| word.as_str().unwrap()).collect();
        let log = harness.run(&read).exits(0).stdout;
        assert!(log.contains(prompt), "{log}");
        let last = harness.run(&[&read[..], &["-n", "1", "--json"]].concat()).exits(0).stdout;
        assert_eq!(last.lines().count(), 1, "{last}");
    }
    assert_eq!(texts(&harness, &["zebra", "--ours"]), [""; 0], "none of them is a session");
}

#[test]
fn words_phrases_beginnings_exclusions_and_filters_choose() {
    let harness = harness();
    claude(&harness, CLAUDE, ["Fix the Größe of src/main.rs", "error: timeout after 30s", "I raised the time limit."]);
    codex(&harness, "the time limit is old", "limit the time of the test");
    for (words, expected) in [
        (&["time", "limit"][..], 3),
        (&["\"time limit\""], 2),
        (&["time limit"], 2),
        (&["time", "limit", "-raised"], 2),
        (&["time", "limit", "-time limit"], 1),
        (&["time*"], 4),
        (&["grosse"], 1),
        (&["GROSSE*", "-x"], 1),
        (&["groß*"], 1),
        (&["gross"], 0),
        (&["- time limit"], 2),
        (&["main.rs"], 1),
        (&["rs.main"], 0),
        (&["time", "limit", "--role", "user"], 1),
        (&["time*", "--role", "tool,user"], 2),
        (&["time*", "--agent", "codex"], 2),
        (&["time*", "--in", "/work/app"], 2),
        (&["time*", "--in", "/work"], 4),
        (&["time*", "--in", "/work/ap"], 0),
        (&["time*", "--since", "2026-11-12T08:00:01Z"], 1),
        (&["time*", "--since", "2026-11-11"], 2),
        (&["time*", "--most", "1"], 1),
        (&["\"", "-", "(*", "-raised"], 0),
        (&["limit\" OR NEAR(", "AND"], 0),
    ] {
        assert_eq!(texts(&harness, words).len(), expected, "{words:?}: {:?}", texts(&harness, words));
    }
    let nothing = harness.run(&["search", "giraffe"]).exits(1);
    assert_eq!(nothing.complaint(), "ostler: nothing found; try fewer words, or the beginning of one: beg*");
    let nothing = harness.run(&["search", "giraffe", "--ours"]).exits(1);
    assert_eq!(nothing.complaint(), "ostler: nothing found; search everything: omit the options");
    let mistyped = harness.run(&["search", "limit", "--agent", "codx"]).exits(1);
    assert!(mistyped.stderr.contains("\"codx\" is not an agent; did you mean codex?"), "{mistyped:?}");
    harness.run(&["search", "limit", "--most", "0"]).exits(2);
    let backwards = harness.run(&["search", "limit", "--since", "-5d"]).exits(2);
    assert!(!backwards.stderr.contains("\\0"), "{backwards:?}");
    assert!(harness.run(&["search", "-limit"]).exits(1).complaint().contains("at least one word"));
    assert!(harness.run(&["search", "x", "--since", "long ago"]).exits(2).complaint().contains("is not a time"));
    harness.run(&["search"]).exits(2);
}

#[test]
fn the_output_is_short_and_one_conversation_does_not_fill_it() {
    let harness = harness();
    let file = claude(&harness, CLAUDE, ["the zebra task", "zebra 1", "zebra 2"]);
    for number in 0..30 {
        crate::transcripts::append(
            &file,
            &crate::transcripts::claude_agent(&format!("zebra again {number}"), "2026-11-10T09:00:00Z"),
        );
    }
    codex(&harness, "draw a zebra", "no");
    let shown = harness.run(&["search", "zebra"]).exits(0);
    assert_eq!(shown.stderr, "");
    let lines: Vec<&str> = shown.stdout.lines().collect();
    assert_eq!(lines.len(), 3 + 1 + 5, "{}", shown.stdout);
    assert_eq!(lines[0], "draw a zebra  codex in /work/codex");
    assert_eq!(lines[2], format!("  ostler adopt {CODEX}   read it: ostler logs --foreign {CODEX}"));
    assert!(lines[3].is_empty() && lines[4] == "the zebra task  claude in /work/app", "{}", shown.stdout);
    assert!(!shown.stdout.contains('\u{1b}'), "a pipe gets no colours");
    assert_eq!(hits(&harness, &["zebra", "--most", "100"]).len(), 34);
}

#[test]
fn of_one_conversation_the_newest_messages_are_shown_whatever_their_role() {
    let harness = harness();
    let file = claude_file(&harness, CLAUDE);
    let at = |minute: u32| format!("2026-11-10T08:{minute:02}:00Z");
    let agents = (0..10).map(|minute| claude_agent(&format!("zebra of the agent {minute}"), &at(minute)));
    let mut lines: Vec<String> = agents.collect();
    lines.push(claude_user("zebra of the user", &at(11)));
    lines.push(claude_agent("zebra of the agent 12", &at(12)));
    std::fs::write(file, lines.concat()).unwrap();
    assert_eq!(texts(&harness, &["zebra"]), ["zebra of the agent 12", "zebra of the user", "zebra of the agent 9"]);
}

#[test]
fn a_folder_is_the_same_folder_through_a_link() {
    let harness = harness();
    let (real, link) = (harness.root().join("real/app"), harness.root().join("link"));
    std::fs::create_dir_all(&real).unwrap();
    std::os::unix::fs::symlink(harness.root().join("real"), &link).unwrap();
    // The same folder by its real path and through the link, a folder that does not exist, and another folder.
    for (number, cwd) in
        [(1, real.clone()), (2, link.join("app")), (3, link.join("app/gone")), (4, harness.root().join("real2"))]
    {
        let line = claude_user(&format!("zebra {number}"), "2026-11-10T08:00:00Z");
        let file = claude_file(&harness, &format!("{number:08}-408d-4262-88d9-97e7e2d532f0"));
        std::fs::write(file, line.replace("/work/app", cwd.to_str().unwrap())).unwrap();
    }
    let relative = ["zebra", "--in", "../real/"];
    let found = |folder: &str| texts(&harness, &["zebra", "--in", folder]).len();
    assert_eq!(found(real.to_str().unwrap()), 3);
    assert_eq!(found(link.to_str().unwrap()), 3);
    assert_eq!(found(&format!("{}/app/../app/", link.display())), 3);
    assert_eq!(found(link.join("app/gone").to_str().unwrap()), 1);
    let mut command = harness.command(harness.program());
    let output =
        command.args(["search", "--json"]).args(relative).current_dir(real.parent().unwrap()).output().unwrap();
    let hits: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(hits.as_array().unwrap().len(), 3, "{hits}");
}

#[test]
fn untrusted_text_reaches_the_terminal_as_plain_text() {
    let harness = harness();
    let evil = "zebra \u{1b}]0;owned\u{7}\u{1b}[2Jcleared\r\n\u{202e}gnorw \u{9b}31m";
    claude(&harness, CLAUDE, [evil, &format!("\u{1b}[31mzebra\u{1b}[0m {}", "x".repeat(10_000)), "fine"]);
    let shown = harness.run(&["search", "zebra"]).exits(0);
    assert!(!shown.stdout.chars().any(|c| c.is_control() && c != '\n'), "{:?}", shown.stdout);
    assert!(!shown.stdout.contains('\u{202e}'), "{:?}", shown.stdout);
    // A word after a colour sequence is found.
    assert_eq!(texts(&harness, &["zebra", "--role", "tool"]).len(), 1);
    // Of a tool's output the first 3 KB are searched.
    claude(&harness, CLAUDE, ["go", &format!("{} giraffe", "word ".repeat(1000)), "fine"]);
    assert_eq!(texts(&harness, &["giraffe"]).len(), 0);
    assert_eq!(texts(&harness, &["word", "--role", "tool"]).len(), 1);
}

#[test]
fn the_last_word_of_a_long_message_is_found() {
    let harness = harness();
    let long = |last: &str| format!("{}{last}", "walrus and otter and seal ".repeat(4 * 1024 * 1024 / 26));
    let lines = [
        claude_user(&long("asked"), "2026-11-10T08:00:00Z"),
        claude_agent(&long("answered"), "2026-11-10T08:00:01Z"),
        // Of a tool's output only the beginning is searched.
        claude_tool(&long("returned"), "2026-11-10T08:00:02Z"),
    ];
    std::fs::write(claude_file(&harness, CLAUDE), lines.concat()).unwrap();
    for (word, count) in [("asked", 1), ("answered", 1), ("returned", 0)] {
        assert_eq!(texts(&harness, &[word]).len(), count, "{word}");
    }
}
