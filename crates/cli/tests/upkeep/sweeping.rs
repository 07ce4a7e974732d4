//! Sessions that ended long ago are archived and deleted when config.toml says so, and changes to the transcript of an
//! archived session are noticed.

use crate::harness;
use ostler_testkit::{Harness, Session};
use serde_json::Value;
use std::path::PathBuf;

/// Seconds.
const YEAR: i64 = 366 * 86_400;

fn ended<'a>(harness: &'a Harness, arguments: &[&str]) -> Session<'a> {
    let session = harness.detach(arguments);
    harness.run(&["wait", session.id()]).exits(0);
    session
}

fn away(harness: &Harness, session: &Session<'_>) -> Option<PathBuf> {
    let months = std::fs::read_dir(harness.home().join("archive")).into_iter().flatten().flatten();
    months.map(|month| month.path().join(session.id())).find(|path| path.exists())
}

/// Sets the time of the last sweep back by an hour, the least time between two sweeps.
fn an_hour_passes(harness: &Harness) {
    let note = harness.home().join("sweep.lock");
    let mut look: Value = serde_json::from_slice(&std::fs::read(&note).unwrap()).unwrap();
    let at: jiff::Timestamp = look["at"].as_str().unwrap().parse().unwrap();
    look["at"] = (at - jiff::SignedDuration::from_hours(1)).to_string().into();
    std::fs::write(note, look.to_string()).unwrap();
}

#[test]
fn nothing_is_swept_unless_it_is_configured() {
    let harness = harness();
    let session = ended(&harness, &["--", "true"]);
    ended(&harness, &["--", "true"]);
    assert!(session.path().exists() && !harness.home().join("archive").exists());
}

#[test]
fn a_run_archives_what_has_ended_and_leaves_what_runs_or_has_messages() {
    let harness = harness();
    let (over, live) = (ended(&harness, &["demo", "say one"]), harness.detach(&["--", "sleep", "600"]));
    let waiting = ended(&harness, &["demo", "say two"]);
    harness.run(&["send", waiting.id(), "say three"]).exits(0);
    harness.configure("archive_after = \"0s\"\n");
    let output = harness.run(&["run", "--", "true"]).exits(0);
    assert!(output.stderr.contains("archived 1 session (archive_after in config.toml)"), "{output:?}");
    assert!(away(&harness, &over).is_some() && live.path().exists() && waiting.path().exists());

    // There is no other sweep within the hour.
    let next = ended(&harness, &["--", "true"]);
    assert_eq!(harness.run(&["run", "--", "true"]).exits(0).stderr, "");
    assert!(next.path().exists());
}

#[test]
fn archived_sessions_are_purged_by_the_time_since_they_were_archived() {
    let harness = harness();
    let (first, second) = (ended(&harness, &["--", "true"]), ended(&harness, &["--", "true"]));
    harness.run(&["archive", first.id()]).exits(0);
    harness.configure("purge_after = \"1h\"\n");
    harness.run(&["run", "--", "true"]).exits(0);
    assert!(away(&harness, &first).is_some(), "it was archived just now");

    harness.configure("purge_after = \"0s\"\n");
    an_hour_passes(&harness);
    let output = harness.run(&["run", "--", "true"]).exits(0);
    assert!(output.stderr.contains("purged 1 session"), "{output:?}");
    assert!(away(&harness, &first).is_none() && second.path().exists());
}

#[test]
fn idle_sessions_are_archived_on_request_and_working_ones_are_not() {
    let harness = harness();
    let (over, works) = (ended(&harness, &["--", "true"]), harness.detach(&["--", "sleep", "600"]));
    let idle = harness.detach(&["--keep", "demo", "say one"]);
    harness.run(&["wait", "--until", "turn", idle.id()]).exits(0);
    assert_eq!(harness.run(&["archive", "--idle", "1h"]).exits(0).stdout, "");
    let said = harness.run(&["archive", "--idle", "0s"]).exits(0).stdout;
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(away(&harness, &over).is_some() && away(&harness, &idle).is_some() && works.path().exists());
    assert_eq!(idle.show().outcome().saved, "verified");
}

#[test]
fn changes_to_an_archived_session_are_refused_or_noticed() {
    let harness = harness();
    let session = ended(&harness, &["demo", "say one"]);
    let transcript = session.show().transcript.unwrap();
    harness.run(&["archive", session.id()]).exits(0);
    assert_eq!(session.show().alarm, None);
    for refused in [
        &["send", session.id(), "more"][..],
        &["send", session.id(), "--withdraw", "1"],
        &["resume", session.id(), "x"],
    ] {
        let output = harness.run(refused);
        assert!(output.complaint().contains(&format!("ostler restore {}", session.id())), "{output:?}");
    }

    let archived = std::fs::read(&transcript).unwrap();
    std::fs::write(&transcript, [&archived[..], b"{\"other\":\"writer\"}\n"].concat()).unwrap();
    let alarm = session.show().alarm.unwrap();
    assert!(alarm.starts_with("its transcript was changed ("), "{alarm}");
    let restored = harness.run(&["restore", session.id()]).exits(0);
    assert!(restored.stderr.contains("its transcript was changed"), "{restored:?}");
    // There is a copy of the old content, and it can be put back.
    let copies = harness.run(&["checkpoints", session.id(), "--json"]).exits(0).stdout;
    let copies: Vec<Value> = copies.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let copy = copies.iter().find(|copy| copy["length"] == archived.len()).unwrap_or_else(|| panic!("{copies:?}"));
    harness.run(&["checkpoints", "restore", session.id(), copy["at"].as_str().unwrap()]).exits(0);
    assert!(std::fs::read(&transcript).unwrap() == archived);
}

#[test]
fn a_clock_that_jumps_a_year_ahead_deletes_nothing_unless_it_stays_there() {
    let mut harness = harness();
    harness.has_own_clock();
    let old = ended(&harness, &["--", "true"]);
    harness.run(&["archive", old.id()]).exits(0);
    harness.configure("purge_after = \"30d\"\n");
    let sweep = |shift: i64| {
        harness.shift_clock(shift);
        harness.run(&["run", "--", "true"]).exits(0).stderr
    };
    assert_eq!(sweep(0), "");
    an_hour_passes(&harness);
    assert_eq!(sweep(YEAR), "", "a jump of the clock is not age");
    assert!(away(&harness, &old).is_some());
    assert_eq!(sweep(0), "", "nor is the jump back");
    an_hour_passes(&harness);
    assert_eq!(sweep(0), "", "it is not old");
    assert!(away(&harness, &old).is_some());

    sweep(YEAR);
    an_hour_passes(&harness);
    assert!(sweep(YEAR).contains("purged 1 session"), "the clock stayed there");
    assert!(away(&harness, &old).is_none());
}
