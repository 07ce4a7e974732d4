//! Tables on terminals of 20 to 120 columns, and on a pipe.

use crate::harness;
use crate::person::Person;
use ostler_testkit::{Harness, Session};
use serde_json::{Value, json};

/// What a command shows in windows of these widths, and on a pipe.
fn shown(harness: &Harness, words: &[&str], widths: &[u16]) -> String {
    let mut all = String::new();
    for &columns in widths {
        let mut person = Person::runs(harness, (40, columns), words);
        person.is_left_with(0);
        let screen = person.screen.text();
        assert!(screen.iter().all(|row| row.chars().count() <= usize::from(columns)), "{screen:?}");
        all.push_str(&format!("{columns}:\n{}\n\n", screen.join("\n").trim_end()));
    }
    all + "pipe:\n" + &harness.run(words).exits(0).stdout
}

/// A session that has ended, with invented turns: (time, duration of the turn, tokens, cost).
fn with_past<'a>(harness: &'a Harness, arguments: &[&str], turns: &[(&str, u64, u64, f64)]) -> Session<'a> {
    let session = harness.detach(arguments);
    harness.run(&["wait", session.id()]).exits(0);
    // Its helpers write until they have exited.
    harness.nothing_is_left();
    let journal = session.path().join("journal.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    let started = text.lines().find(|line| line.contains("\"what\":\"started\"")).unwrap();
    let mut lines = vec![started.to_owned()];
    let mut cost = 0.0;
    for (n, (at, ms, tokens, usd)) in turns.iter().enumerate() {
        let (from, to) =
            (1_000_000_000_000_u64 + n as u64 * 100_000_000, 1_000_000_000_000 + n as u64 * 100_000_000 + ms);
        cost += usd;
        lines.push(json!({ "at": at, "ms": from, "run": 1, "what": "feeding", "n": n + 1 }).to_string());
        let end =
            json!({ "verdict": "succeeded", "tokens": { "input": tokens, "output": tokens / 100 }, "cost_usd": cost });
        lines.push(json!({ "at": at, "ms": to, "run": 1, "what": "turn_ended", "end": end }).to_string());
    }
    std::fs::write(&journal, lines.join("\n") + "\n").unwrap();
    session
}

#[test]
fn sums_fit_into_any_window() {
    let mut harness = harness();
    harness.set("TZ", "UTC");
    with_past(
        &harness,
        &["--cwd", "/", "demo", "say one"],
        &[("2026-10-01T10:00:00Z", 30_000, 1200, 0.01), ("2026-10-02T10:00:00Z", 3_700_000, 2_500_000, 12.5)],
    );
    let other = with_past(
        &harness,
        &["--cwd", "/usr/share/locale", "demo", "say two"],
        &[("2026-10-02T23:59:59Z", 600_000, 40_000, 0.5), ("2026-10-03T00:00:01Z", 1000, 90, 0.0)],
    );
    harness.run(&["archive", other.id()]).exits(0);
    insta::assert_snapshot!(shown(&harness, &["stats", "--all"], &[20, 30, 40, 80, 120]));
}

#[test]
fn checkpoints_show_what_was_said_last() {
    let mut harness = harness();
    harness.has_own_clock();
    harness.configure("autosave = \"off\"\n");
    let session = harness.detach(&["--name", "shop", "demo", "say one"]);
    harness.run(&["wait", session.id()]).exits(0);
    harness.nothing_is_left();
    // An invented copy, so that its size is the same everywhere: one turn, the next prompt, and its answer.
    let line = |kind: &str, text: &str| {
        json!({ "type": kind, "message": { "content": [{ "type": "text", "text": text }] } }).to_string() + "\n"
    };
    let prompt =
        "now the second thing, which takes so many words that they do not fit into most windows that people have";
    let parts = [
        line("user", "do the first thing") + &line("assistant", "the first thing is done\nin two lines"),
        line("user", prompt),
        line("assistant", "both are done") + "{\"type\":\"assis",
    ];
    let folder = session.path().join("checkpoints");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("1.copy"), parts.concat()).unwrap();
    let mut length = 0;
    let index: String = ["09:00:00", "11:30:00", "11:58:00.500"]
        .iter()
        .zip(&parts)
        .map(|(time, part)| {
            length += part.len();
            let of = session.show().transcript;
            json!({ "at": format!("2030-01-01T{time}Z"), "of": of, "copy": 1, "length": length }).to_string() + "\n"
        })
        .collect();
    std::fs::write(folder.join("index.jsonl"), index).unwrap();
    let noon: jiff::Timestamp = "2030-01-01T12:00:00Z".parse().unwrap();
    harness.shift_clock(noon.as_second() - jiff::Timestamp::now().as_second());
    insta::assert_snapshot!(shown(&harness, &["checkpoints", "shop"], &[40, 80, 120]));
    let lines = harness.run(&["checkpoints", "shop", "--json"]).exits(0).stdout;
    let last: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["last"].clone()).collect();
    let said = |by: &str, text: &str| json!({ "by": by, "text": text });
    let first = said("agent", "the first thing is done\nin two lines");
    assert_eq!(last, [first, said("person", prompt), said("agent", "both are done")]);
}

#[test]
fn hits_fit_into_any_window() {
    let harness = harness();
    let folder = harness.root().join("home/.claude/projects/-work-app");
    std::fs::create_dir_all(&folder).unwrap();
    let line = |kind: &str, text: &str| {
        let message = json!({ "role": kind, "content": [{ "type": "text", "text": text }] });
        json!({ "type": kind, "cwd": "/work/app", "message": message }).to_string() + "\n"
    };
    let long = "The checkout waits for the cache, which retries for thirty seconds before it gives up, so that every test \
                of the zebra takes as long; I start a server of its own in the fixture instead, 表表表, and remove the rest.";
    let text = line("user", "why does the checkout test hang, and what has the zebra to do with it")
        + &line("assistant", long);
    std::fs::write(folder.join("11111111-408d-4262-88d9-97e7e2d532f0.jsonl"), text).unwrap();
    insta::assert_snapshot!(shown(&harness, &["search", "zebra"], &[30, 40, 80, 120]));
}
