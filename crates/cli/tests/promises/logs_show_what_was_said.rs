//! `logs`: the conversation in order, or what a command printed; `-f` goes on to the end.

use crate::harness;

#[test]
fn a_conversation_is_shown_in_order() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "say one"]);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    harness.run(&["send", session.id(), "say two"]).exits(0);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    let logs = harness.run(&["logs", "--json", session.id()]).exits(0);
    let spoken: Vec<String> = logs
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|item| item["kind"] == "told" || item["kind"] == "said")
        .map(|item| format!("{} {}", item["kind"].as_str().unwrap(), item["text"].as_str().unwrap()))
        .collect();
    assert_eq!(spoken, ["told say one", "said one", "told say two", "said two"]);
    let plain = harness.run(&["logs", session.id()]).exits(0);
    let text = format!("{}{}", plain.stdout, plain.stderr);
    let places: Vec<usize> = ["one", "two"].iter().map(|word| text.rfind(word).unwrap()).collect();
    assert!(places.is_sorted(), "{plain:?}");
}

#[test]
fn following_sees_everything_and_leaves_at_the_end() {
    let harness = harness();
    let flag = harness.root().join("flag");
    let misbehave = harness.misbehave();
    let session = harness.detach(&["--", &misbehave, "say=before", &format!("until={}", flag.display()), "say=after"]);
    let follower = harness.start(&["logs", "-f", "--raw", session.id()]);
    session.until_printed("before");
    let before = session.kill(ostler_testkit::Who::Keeper);
    session.replaced(ostler_testkit::Who::Keeper, &before);
    assert!(follower.runs());
    std::fs::write(&flag, "").unwrap();
    let output = follower.finish().exits(0);
    assert_eq!(output.stdout, "before\nafter\n");
}
