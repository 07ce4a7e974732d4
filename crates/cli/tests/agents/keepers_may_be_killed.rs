//! The keeper is SIGKILLed at twenty moments of three-turn sessions with tools. The moments are random with a fixed
//! seed, as parts of the time that such a session takes on this machine.

use crate::acp::detach_fearless;
use crate::fixture::Fixture;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{ProcessKind, Session, patience};
use std::time::{Duration, Instant};

/// How many of the twenty keepers at least are killed before the session has had its turns.
const DURING: usize = 5;

/// Pseudo-random numbers from a fixed seed (xorshift).
struct Moments(u64);

impl Moments {
    fn next(&mut self, span: Duration) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        span * u32::try_from(self.0 % 1000).unwrap() / 1000
    }
}

/// Kills a keeper at each of these moments. Returns how many of them were killed before the end of the last turn.
fn kill_at(session: &Session<'_>, start: Instant, moments: &[Duration]) -> usize {
    let mut during = 0;
    for moment in moments {
        // Not a wait for an event: the kill has to happen at this moment.
        patience::let_pass(moment.saturating_sub(start.elapsed()));
        during += usize::from(session.look().turns < 3);
        session.kill_the_next(ProcessKind::Keeper);
    }
    during
}

/// Three turns of a session that `begin` starts with the first message, and kills at these moments. Returns how many
/// kills were before the end of the last turn, and when that was.
fn three_turns(
    agent: Agent,
    begin: impl for<'a> Fn(&'a Fixture, &str) -> Session<'a>,
    kills: &[Duration],
    saved: &str,
) -> Option<(usize, Duration)> {
    let fixture = Fixture::new(agent)?;
    if agent == Agent::Claude {
        agent.trust(&fixture.harness.root().join("home"), &fixture.work()).unwrap();
    }
    let turn = |name: &str| format!("{} ; say turn {name}", fixture.tool(&format!("echo {name} >> proof")));
    let turns = [turn("one"), turn("two"), turn("three")];
    let start = Instant::now();
    let session = begin(&fixture, &turns[0]);
    let during = std::thread::scope(|scope| {
        let killing = scope.spawn(|| kill_at(&session, start, kills));
        for message in &turns[1..] {
            fixture.harness.run(&["send", session.id(), message]).exits(0);
        }
        killing.join().unwrap()
    });
    let done = session.until_look("three turns", |view| view.turns == 3 && view.queued == 0);
    let took = start.elapsed();
    assert_eq!((done.state.word(), done.last.as_deref()), ("idle", Some("turn three")), "kills at {kills:?}");
    session.stop();
    let shown = session.show();
    assert_eq!((shown.outcome().kind.as_str(), shown.outcome().saved.as_str()), ("succeeded", saved));
    assert_eq!(shown.outcome().turns, 3);
    fixture.saw_once(&[&turns[0], &turns[1], &turns[2]]);
    assert_eq!(fixture.written("proof"), "one\ntwo\nthree\n", "kills at {kills:?}");
    if agent == Agent::Claude {
        fixture.proves("keeper killed at any moment: each message once, each tool once");
    }
    Some((during, took))
}

/// Four kills in each of five sessions, after one without kills.
fn twenty_kills(agent: Agent, begin: impl for<'a> Fn(&'a Fixture, &str) -> Session<'a>, saved: &str) {
    let Some((_, span)) = three_turns(agent, &begin, &[], saved) else { return };
    let mut moments = Moments(0x5eed);
    let mut during = 0;
    for _ in 0..5 {
        let mut kills = [(); 4].map(|()| moments.next(span));
        kills.sort();
        during += three_turns(agent, &begin, &kills, saved).unwrap().0;
    }
    assert!(during >= DURING, "only {during} of 20 keepers were killed during the turns, of {span:?} each");
}

#[test]
fn each_message_reaches_claude_once_and_each_tool_runs_once_whenever_the_keeper_dies() {
    twenty_kills(Agent::Claude, |fixture, prompt| fixture.detach(&["--keep"], Some(prompt)), "verified");
}

#[test]
fn each_message_is_typed_once_into_claudes_terminal_whenever_the_keeper_dies() {
    twenty_kills(Agent::Claude, type_first, "verified");
}

fn type_first<'a>(fixture: &'a Fixture, first: &str) -> Session<'a> {
    let session = fixture.detach(&["-t"], None);
    fixture.harness.run(&["send", session.id(), first]).exits(0);
    session
}

#[test]
fn each_message_reaches_gemini_behind_the_protocol_once_whenever_the_keeper_dies() {
    twenty_kills(Agent::Gemini, detach_fearless, "not_applicable");
}
