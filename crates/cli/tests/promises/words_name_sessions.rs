//! A session is named by its id, any unique beginning of it, its name, or `@last`.

use crate::harness;

#[test]
fn ids_prefixes_names_and_the_newest() {
    let harness = harness();
    let first = harness.detach(&["--name", "first", "--", "true"]);
    let second = harness.detach(&["--", "true"]);
    let meant = |word: &str| harness.run(&["show", "--json", word]).exits(0).json()["id"].as_str().unwrap().to_owned();
    assert_eq!(meant(first.id()), first.id());
    assert_eq!(meant("first"), first.id());
    assert_eq!(meant("@last"), second.id());
    assert_eq!(meant(&second.id().to_uppercase()), second.id());
    // The beginning of a name also finds a session, so the prefix must differ from that, too.
    let others = [first.id(), "first"];
    let unique = (1..=8).find(|&length| others.iter().all(|other| !other.starts_with(&second.id()[..length]))).unwrap();
    assert_eq!(meant(&second.id()[..unique]), second.id());
}

#[test]
fn wait_show_and_ls_say_the_same_of_a_session() {
    let harness = harness();
    let session = harness.detach(&["--name", "same", "demo", "say the same"]);
    let waited = harness.run(&["wait", "--json", "same"]).exits(0);
    let waited: ostler_testkit::Shown = serde_json::from_str(&waited.stdout).unwrap();
    let (mut shown, mut listed) = (session.show(), harness.ls().remove(0));
    // The only field of an ended session that changes.
    (shown.quiet_s, listed.quiet_s) = (waited.quiet_s, waited.quiet_s);
    assert_eq!(waited, shown);
    assert_eq!(waited, listed);
    assert_eq!((waited.schema, waited.agent.as_str(), waited.mode.as_str()), (1, "demo", "headless"));
}
