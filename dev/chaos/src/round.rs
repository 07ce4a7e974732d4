//! One fault, from the seed to the verdict.

use crate::cast::Cast;
use crate::fault::{Fault, Means};
use crate::random::Random;
use crate::stage::Stage;
use crate::{points, reused, strike};
use ostler_testkit::misbehave::pattern;
use ostler_testkit::{Harness, Poller, SmallDisk, Who};
use std::sync::atomic::Ordering;

/// What a fault came to.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Whether it struck at all: a pause point may not be passed in the life that it was meant for.
    pub struck: bool,
    /// How often the session was looked at meanwhile.
    pub looks: u64,
    /// In words that say it again.
    pub what: String,
}

/// Does the fault that this seed means. Panics when a promise does not hold.
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

/// Real claude takes seconds; it comes now and then.
fn cast(fault: Fault, random: &mut Random) -> Cast {
    match (fault, random.below(8)) {
        (Fault::StopAgent | Fault::KillAgent, 0..=5) | (Fault::OlderBinary, _) => Cast::Demo,
        (_, 0) => Cast::Claude,
        (Fault::StopAgent | Fault::KillAgent | Fault::KillEveryone | Fault::KillBothHelpers, _) => Cast::Demo,
        (_, 1 | 2) => Cast::Turns,
        (_, _) => Cast::Demo,
    }
}

/// An agent is told several things while it happens, and one more afterwards.
fn conversation(means: &Means, fault: Fault, random: &mut Random) -> Verdict {
    let disk = (fault == Fault::FullDisk).then(|| SmallDisk::mount("6m"));
    let home = disk.as_ref().map(|disk| disk.path().join("ostler"));
    let wanted = cast(fault, random);
    let stage = match Stage::in_home(&means.program, wanted, home.clone()) {
        Ok(stage) => stage,
        Err(_) => Stage::in_home(&means.program, Cast::Demo, home).expect("built in"),
    };
    stage.launch(None);
    strike::widen(&stage, fault);
    let witness = stage.look_on();
    let messages = 1 + random.below(3);
    let disk = disk.as_ref();
    std::thread::scope(|scope| {
        let striking = scope.spawn(|| strike::strike(&stage, fault, &strike::With { means, disk }, random));
        for _ in 0..messages {
            stage.send();
        }
        if let Err(payload) = striking.join() {
            std::panic::resume_unwind(payload);
        }
    });
    stage.may_refuse.store(false, Ordering::SeqCst);
    stage.settle();
    let looks = stage.judge(witness, &["succeeded"]);
    Verdict { struck: true, looks, what: format!("{:?}", stage.cast) }
}

/// Any point, passed for the first, second or third time.
fn pause_point(means: &Means, random: &mut Random) -> Verdict {
    let (role, point) = random.pick(&points::all());
    let nth = 1 + random.below(3);
    let (struck, looks) = points::live_through(&means.program, role, point, nth);
    Verdict { struck, looks, what: format!("{} {nth}", ostler_sys::pause::token(role, point)) }
}

/// A program whose output must not lack a byte, and whose exit code is its outcome.
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
    let who = if matches!(fault, Fault::KillKeeper | Fault::StopKeeper) { Who::Keeper } else { Who::Holder };
    let kills = matches!(fault, Fault::KillKeeper | Fault::KillHolder);
    for _ in 0..=random.below(3) {
        strike::hit(&session, who, kills, random);
    }
    std::fs::write(&flag, "").expect("a flag");
    strike::hit(&session, who, kills, random);
    harness.run(&["wait", session.id()]).exits(i32::try_from(code).expect("0 or 1"));
    let mut wanted = pattern(length);
    wanted.extend(b"end\n");
    let found = std::fs::read(session.run_file("out")).expect("out");
    assert!(found == wanted, "{} bytes of output instead of {}", found.len(), wanted.len());
    let looks = poller.saw_nothing_wrong();
    harness.nothing_is_left();
    Verdict { struck: true, looks, what: format!("a command, {length} bytes") }
}
