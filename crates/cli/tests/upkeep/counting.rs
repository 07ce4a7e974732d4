//! `stats`: what was used, by day, agent and folder, over all sessions.

use crate::harness;
use ostler_testkit::Harness;
use serde_json::Value;

fn stats(harness: &Harness, arguments: &[&str]) -> Value {
    harness.run(&[&["stats", "--json"], arguments].concat()).exits(0).json()
}

/// The rows of a table: what each is about, and its turns.
fn turns(stats: &Value, by: &str) -> Vec<(String, u64)> {
    let rows = stats[format!("by_{by}")].as_array().unwrap();
    rows.iter().map(|row| (row[by].as_str().unwrap().to_owned(), row["turns"].as_u64().unwrap())).collect()
}

#[test]
fn turns_tokens_and_cost_of_all_sessions_are_counted_where_they_belong() {
    let harness = harness();
    assert_eq!(harness.run(&["stats"]).exits(0).stdout, "Nothing was used; for all time: ostler stats --all.\n");
    let other = harness.root().join("other");
    std::fs::create_dir(&other).unwrap();
    let first = harness.detach(&["--keep", "demo", "say one"]);
    harness.run(&["wait", "--until", "turn", first.id()]).exits(0);
    harness.run(&["send", "--wait", first.id(), "say two"]).exits(0);
    let second = harness.detach(&["--cwd", other.to_str().unwrap(), "demo", "say three"]);
    let command = harness.detach(&["--", "true"]);
    harness.run(&["wait", second.id(), command.id()]).exits(0);
    let expected = ["tokens", "cost_usd"].map(|field| {
        [first.id(), second.id()].map(|id| harness.run(&["show", "--json", id]).exits(0).json()[field].clone())
    });
    harness.run(&["archive", second.id()]).exits(0);

    let all = stats(&harness, &[]);
    assert_eq!((all["total"]["sessions"].as_u64(), all["total"]["turns"].as_u64()), (Some(3), Some(3)), "{all}");
    let input: u64 = expected[0].iter().map(|tokens| tokens["input"].as_u64().unwrap()).sum();
    assert!(input > 0);
    assert_eq!(all["total"]["tokens"]["input"], input, "{all}");
    let cost: f64 = expected[1].iter().map(|cost| cost.as_f64().unwrap()).sum();
    assert!((all["total"]["cost_usd"].as_f64().unwrap() - cost).abs() < 1e-9, "{cost} in {all}");
    assert_eq!(all["by_day"].as_array().unwrap().len(), 1);
    let mut agents = turns(&all, "agent");
    agents.sort();
    assert_eq!(agents, [("command".to_owned(), 0), ("demo".to_owned(), 3)]);
    let folders = turns(&all, "folder");
    assert!(folders.contains(&(other.to_string_lossy().into_owned(), 1)), "{folders:?}");

    let by_agent = stats(&harness, &["--by", "agent", "--since", "1h"]);
    assert_eq!(by_agent["total"], all["total"]);
    assert!(by_agent.get("by_day").is_none() && by_agent.get("by_agent").is_some());
    assert_eq!(stats(&harness, &["--since", "now"])["total"]["turns"], 0);
    assert_eq!(stats(&harness, &["--all"])["total"], all["total"]);
    assert!(harness.run(&["stats", "--since", "long ago"]).exits(2).complaint().contains("is not a time"));

    // A session that cannot be read is reported, and the others are still counted.
    std::fs::write(command.path().join("session.json"), "{").unwrap();
    let damaged = harness.run(&["stats"]).exits(0);
    assert!(damaged.stderr.contains("1 session could not be read and is not counted"), "{damaged:?}");
    assert!(damaged.stdout.contains("2 sessions, 3 turns"), "{damaged:?}");
    first.stop();
    std::fs::remove_dir_all(command.path()).unwrap();
}
