//! `group:NAME` and `label:KEY=VALUE` wherever sessions are named.

use crate::harness;
use ostler_testkit::Started;

#[test]
fn a_label_selects_all_sessions_that_have_it() {
    let harness = harness();
    let one = harness.detach(&["--label", "task=7", "--", "sleep", "600"]);
    let two = harness.detach(&["--label", "task=7", "--label", "more=1", "--", "sleep", "600"]);
    let other = harness.detach(&["--label", "task=8", "--", "sleep", "600"]);
    let refused = harness.run(&["show", "label:task=7"]).exits(2);
    assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
    assert!(refused.stderr.contains("means 2 sessions") && refused.stderr.contains(one.id()), "{refused:?}");
    assert!(harness.run(&["show", "label:more=1", "--json"]).exits(0).stdout.contains(two.id()));
    harness.run(&["stop", "label:task=9"]).exits(3);
    harness.run(&["show", "group:none"]).exits(3);
    harness.run(&["stop", "label:task=7", two.id(), "label:more"]).exits(0);
    assert!(one.show().ended && two.show().ended && !other.show().ended);
    harness.run(&["wait", "label:task=7"]).exits(6);
    harness.run(&["archive", "label:task=7"]).exits(0);
    harness.run(&["stop", "label:task=7"]).exits(3);
    harness.run(&["restore", "label:task=7"]).exits(0);
    harness.run(&["purge", "label:task=7"]).exits(0);
    assert_eq!(harness.ls().len(), 1);
}

#[test]
fn a_message_goes_to_all_selected_sessions() {
    let harness = harness();
    let sessions = [1, 2].map(|_| harness.detach(&["--keep", "--label", "team=a", "demo"]));
    let sent = harness.run(&["send", "label:team=a", "say hello"]).exits(0);
    assert_eq!(sent.stdout.lines().count(), 2, "{sent:?}");
    for session in sessions {
        session.until_look("it has had its turn", |view| view.turns == 1);
    }
    harness.run(&["send", "label:team=a", "--list"]).exits(2);
}

#[test]
fn completion_offers_labels() {
    let harness = harness();
    let _session = harness.detach(&["--label", "task=7", "--", "sleep", "600"]);
    let mut asks = harness.command(harness.program());
    asks.env("OSTLER_COMPLETE", "fish").args(["--", "ostler", "stop", "label:"]);
    let offered = Started::new(asks, None).finish().exits(0);
    assert!(offered.stdout.contains("label:task=7"), "{offered:?}");
}

#[test]
fn the_last_session_is_one_that_a_person_has_started() {
    let harness = crate::harness();
    let job = crate::start(&harness, &["demo", "say more", "--max", "2", "--until", "false"]);
    harness.run(&["wait", &job]).exits(1);
    assert_eq!(harness.run(&["show", "@last", "--json"]).exits(0).json()["id"], job.as_str());
}
