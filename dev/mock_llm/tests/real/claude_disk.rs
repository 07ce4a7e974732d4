//! How late claude writes its last reply to disk, and what a kill at the end of a turn loses. This is why a session is
//! not ended before its transcript was checked.

use crate::claude::{headless, user, uuid};
use crate::fixture::Fixture;
use crate::running::LIMIT;
use ostler_mock_llm::agents::Agent;
use ostler_sys::notify::Watcher;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

const TURNS: u64 = 15;

/// The transcript, once there is one.
fn transcript(fixture: &Fixture, session: &str) -> Option<PathBuf> {
    let projects = fs::read_dir(fixture.home().join(".claude/projects")).ok()?;
    projects.flatten().map(|project| project.path().join(format!("{session}.jsonl"))).find(|file| file.exists())
}

fn has_reply(file: &PathBuf, reply: &str) -> bool {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.any(|event| event.pointer("/message/content/0/text").is_some_and(|said| said == reply))
}

#[test]
fn the_reply_reaches_the_disk_after_the_result_and_within_seconds() {
    let Some(fixture) = Fixture::for_agent(Agent::Claude) else { return };
    let session = uuid(77);
    // A clean exit writes everything, so from here on there is a file.
    let mut first = headless(&fixture, &["--session-id", &session]);
    first.send(&user(&uuid(1), "say reply1"));
    first.until_type("result");
    first.finish().well();
    let file = transcript(&fixture, &session).expect("a clean end saves");

    let mut claude = headless(&fixture, &["--resume", &session]);
    let mut late = Vec::new();
    let mut already = 0;
    for turn in 2..=TURNS + 1 {
        let reply = format!("reply{turn}");
        claude.send(&user(&uuid(turn), &format!("say {reply}")));
        let (ended, _) = claude.until("result", |event| event["type"] == "result");
        if has_reply(&file, &reply) {
            already += 1;
            continue;
        }
        await_reply(&file, &reply);
        late.push(ended.elapsed());
    }
    claude.finish().well();
    late.sort();
    eprintln!(
        "measured: {already} of {TURNS} replies on disk at the result; the others after {:?} (median), {:?} (worst)",
        late.get(late.len() / 2),
        late.last()
    );
}

fn await_reply(file: &PathBuf, reply: &str) {
    let watcher = Watcher::new().unwrap();
    watcher.watch(file).unwrap();
    let deadline = Instant::now() + LIMIT;
    while !has_reply(file, reply) {
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "{reply} is not on disk");
        let left = Timespec::try_from(left).unwrap();
        poll(&mut [PollFd::new(&watcher, PollFlags::IN)], Some(&left)).unwrap();
        watcher.changed().unwrap();
    }
}

/// One turn, ended by this signal when its result is read. Returns whether the reply was saved.
fn saved_after(signal: Signal) -> Option<bool> {
    let fixture = Fixture::for_agent(Agent::Claude)?;
    let session = uuid(77);
    let mut claude = headless(&fixture, &["--session-id", &session]);
    claude.send(&user(&uuid(1), "say precious"));
    claude.until_type("result");
    claude.signal(signal);
    claude.finish();
    Some(transcript(&fixture, &session).is_some_and(|file| has_reply(&file, "precious")))
}

#[test]
fn a_request_to_end_saves_the_reply() {
    for _ in 0..3 {
        let Some(saved) = saved_after(Signal::TERM) else { return };
        assert!(saved);
    }
}

/// Not a promise of claude, but the danger itself: if no reply were ever lost, the proof before a kill would not be
/// needed.
#[test]
fn a_kill_at_the_result_is_measured() {
    let lives: Vec<bool> = (0..5).map_while(|_| saved_after(Signal::KILL)).collect();
    let lost = lives.iter().filter(|saved| !**saved).count();
    eprintln!("measured: killed at the result, {lost} of {} replies lost", lives.len());
}
