//! One fault, from the seed to the verdict.

use crate::agents::Agents;
use crate::fault::{Fault, Means};
use crate::fixture::Fixture;
use crate::random::Random;
use crate::{inject, points, reused};
use ostler_testkit::misbehave::pattern;
use ostler_testkit::{Harness, Poller, ProcessKind, SmallDisk};
use std::sync::atomic::Ordering;

/// The result of a fault.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Whether it was injected at all: a pause point may not be passed in the life that was chosen for it.
    pub injected: bool,
    /// How often the session was looked at meanwhile.
    pub looks: u64,
    /// What was done, in words with which it can be repeated.
    pub what: String,
}

/// Injects the fault that this seed means. Panics when a promise does not hold.
pub fn play(means: &Means, fault: Fault, seed: u64) -> Verdict {
    let mut random = Random::new(seed);
    match fault {
        Fault::ReusedPids => reused::play_inside(means),
        Fault::KillKeeper | Fault::KillHolder | Fault::StopKeeper | Fault::StopHolder if random.below(4) == 0 => {
            command(means, fault, &mut random)
        }
        Fault::PausePoint => pause_point(means, &mut random),
        _ => conversation(means, fault, &mut random),
    }
}

/// Real claude takes seconds, so it is chosen rarely.
fn agents(fault: Fault, random: &mut Random) -> Agents {
    match (fault, random.below(8)) {
        (Fault::StopAgent | Fault::KillAgent, 0..=5) | (Fault::OlderBinary, _) => Agents::Demo,
        (_, 0) => Agents::Claude,
        (Fault::StopAgent | Fault::KillAgent | Fault::KillEveryone | Fault::KillBothHelpers, _) => Agents::Demo,
        (_, 1 | 2) => Agents::Turns,
        (_, _) => Agents::Demo,
    }
}

/// An agent gets several messages while the fault happens, and one more afterwards.
fn conversation(means: &Means, fault: Fault, random: &mut Random) -> Verdict {
    let disk = (fault == Fault::FullDisk).then(|| SmallDisk::mount("6m"));
    let sessions = disk.as_ref().map(SmallDisk::path);
    let wanted = agents(fault, random);
    let fixture = match Fixture::with_sessions_below(&means.program, wanted, sessions) {
        Ok(fixture) => fixture,
        Err(_) => Fixture::with_sessions_below(&means.program, Agents::Demo, sessions).expect("built in"),
    };
    fixture.launch(None);
    inject::widen(&fixture, fault);
    let witness = fixture.look_on();
    let messages = 1 + random.below(3);
    let disk = disk.as_ref();
    std::thread::scope(|scope| {
        let striking = scope.spawn(|| inject::inject(&fixture, fault, &inject::With { means, disk }, random));
        for _ in 0..messages {
            fixture.send();
        }
        if let Err(payload) = striking.join() {
            std::panic::resume_unwind(payload);
        }
    });
    fixture.may_refuse.store(false, Ordering::SeqCst);
    fixture.settle();
    let looks = fixture.judge(witness, &["succeeded"]);
    Verdict { injected: true, looks, what: format!("{:?}", fixture.agents) }
}

/// Any point, when it is passed for the first, second or third time.
fn pause_point(means: &Means, random: &mut Random) -> Verdict {
    let (role, point) = random.pick(&points::all());
    let nth = 1 + random.below(3);
    let (injected, looks) = points::live_through(&means.program, role, point, nth);
    Verdict { injected, looks, what: format!("{} {nth}", ostler_sys::pause_points::token(role, point)) }
}

/// A program whose output must be complete, and whose exit code is its outcome.
fn command(means: &Means, fault: Fault, random: &mut Random) -> Verdict {
    let harness = Harness::new(&means.program.to_string_lossy());
    let flag = harness.root().join("flag");
    let length = 1 + random.below(3_000_000);
    let code = random.below(2);
    let (program, until) = (harness.misbehave(), format!("until={}", flag.display()));
    let words = [&format!("print={length}"), &until, "say=end", &format!("exit={code}")];
    let session = harness.detach(&[&["--", &program], &words[..]].concat());
    let poller = Poller::start_in_full(&session, |view| {
        let lost = view.outcome.as_ref().is_some_and(|outcome| outcome.kind == ostler_core::outcome::Kind::Lost);
        !lost && view.ended == view.outcome.is_some()
    });
    let who =
        if matches!(fault, Fault::KillKeeper | Fault::StopKeeper) { ProcessKind::Keeper } else { ProcessKind::Holder };
    let kills = matches!(fault, Fault::KillKeeper | Fault::KillHolder);
    for _ in 0..=random.below(3) {
        inject::hit(&session, who, kills, random);
    }
    std::fs::write(&flag, "").expect("a flag");
    inject::hit(&session, who, kills, random);
    harness.run(&["wait", session.id()]).exits(i32::try_from(code).expect("0 or 1"));
    let mut wanted = pattern(length);
    wanted.extend(b"end\n");
    let found = std::fs::read(session.run_file("out")).expect("out");
    assert!(found == wanted, "{} bytes of output instead of {}", found.len(), wanted.len());
    let looks = poller.saw_nothing_wrong();
    harness.nothing_is_left();
    Verdict { injected: true, looks, what: format!("a command, {length} bytes") }
}
