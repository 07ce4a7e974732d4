//! The dashboard with real agents: each session is in the group that matches its reported state, a question is shown in
//! full and answered there, and a reply reaches the agent.

use crate::fixture::Fixture;
use crate::person::Person;
use ostler_core::view::Phase;
use ostler_mock_llm::Request;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::patience;

/// The list, without the preview beside it.
fn list(person: &Person) -> Vec<String> {
    let left = |row: String| row.split(['│', '─']).next().unwrap_or_default().trim_end().to_owned();
    person.screen.text().into_iter().map(left).collect()
}

/// Waits until this session is in the group with this head, and its row has this text.
#[track_caller]
fn has_in_group(person: &mut Person, group: &str, name: &str, text: &str) {
    person.sees_that(&format!("{name} with {text} in {group}"), |person| {
        let rows = list(person);
        let heads = ["needs you ", "working ", "waiting ", "idle ", "… "];
        let place = rows.iter().position(|row| row.contains(&format!(" {name} ")));
        let head =
            place.and_then(|place| rows[..place].iter().rfind(|row| heads.iter().any(|head| row.starts_with(head))));
        head.is_some_and(|head| head.starts_with(group)) && place.is_some_and(|place| rows[place].contains(text))
    });
}

/// Filters the list for one session, which is then selected.
#[track_caller]
fn goes_to(person: &mut Person, name: &str) {
    if person.shows("filter: ") {
        person.types(b"\x1b");
        person.sees_that("no filter", |person| !person.shows("filter: "));
    }
    person.types(format!("/{name}\r").as_bytes());
    person.sees_that(name, |person| {
        let rows = list(person);
        person.shows(&format!("filter: {name}")) && rows.get(2).is_some_and(|row| row.contains(&format!(" {name} ")))
    });
}

#[test]
fn claude_is_shown_by_what_it_needs_and_answered_from_there() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let asks = fixture
        .detach_strict(&["--keep", "--name", "asks"], r#"tool Bash {"command":"touch allowed"} ; say it is allowed"#);
    let (tool, words) = fixture.endless_tool();
    let works = fixture.detach(&["--keep", "--name", "works"], Some(&format!("{tool} ; say never")));
    let fails = fixture.detach(&["--name", "fails"], Some("fail 400 always"));
    let _limited = fixture.detach(&["--name", "limited"], Some("fail 429 always"));
    let endless = fixture.process(words);
    fixture.harness.run(&["wait", fails.id()]).exits(1);

    for size in [(24, 80), (20, 45), (40, 120)] {
        let mut person = Person::runs(&fixture.harness, size, &["ui"]);
        has_in_group(&mut person, "needs you 2", "asks", "asking");
        has_in_group(&mut person, "needs you 2", "fails", "failed");
        has_in_group(&mut person, "working 1", "works", "working");
        // About a rate limit claude reports only that it tries again, and why.
        has_in_group(&mut person, "waiting 1", "limited", "retrying");
        person.types(b"q");
        person.is_left_with(0);
    }

    let mut person = Person::runs(&fixture.harness, (40, 120), &["ui"]);
    person.sees("q quit");
    goes_to(&mut person, "limited");
    person.sees("HTTP 429");
    goes_to(&mut person, "fails");
    person.sees("scripted failure");
    goes_to(&mut person, "works");
    person.sees("● Bash mkfifo gate; cat gate");
    person.types(b"iy");
    patience::ended(&endless);
    works.until_look("it is idle", |view| view.state == Phase::Idle && view.turns == 1);

    goes_to(&mut person, "asks");
    person.sees("? asks Bash touch allowed");
    person.types(b"a");
    person.sees("y allows exactly this");
    assert!(person.shows("Bash touch allowed"), "{}", person.screen.text().join("\n"));
    assert!(!fixture.work().join("allowed").exists(), "it waits for the answer");
    person.types(b"y");
    asks.until_look("its turn is over", |view| view.state == Phase::Idle && view.turns == 1);
    assert!(fixture.work().join("allowed").exists(), "an allowed tool ran");
    person.sees("it is allowed");

    // The reply makes the agent ask again. This time the answer is no.
    person.types(b"r");
    person.sees("reply to asks");
    person.types(b"tool Bash {\"command\":\"touch denied\"} ; say it was denied\r");
    person.sees("? asks Bash touch denied");
    person.types(b"x");
    person.sees("Enter denies it");
    person.types(b"not on a Friday\r");
    asks.until_look("its turn is over", |view| view.state == Phase::Idle && view.turns == 2);
    assert!(!fixture.work().join("denied").exists(), "a denied tool did not run");
    person.sees_that("the answer", |person| person.screen.text().iter().any(|row| row.ends_with("it was denied")));
    // The last request may belong to the session that retries.
    let told = |request: &Request| request.body.to_string().contains("not on a Friday");
    assert!(fixture.server.requests().iter().any(told), "the model was told why");
    person.types(b"q");
    person.is_left_with(0);
    fixture.proves("dashboard: grouped by what it needs, answered, replied to");
}
