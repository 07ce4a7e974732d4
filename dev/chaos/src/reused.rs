//! Reused pids: in a pid namespace with a small `pid_max` a number is used again within a second, so that a record
//! names a process that has nothing to do with it.

use crate::agents::Agents;
use crate::fault::Means;
use crate::fixture::Fixture;
use crate::inject::kill_at_once;
use crate::round::Verdict;
use ostler_testkit::{ProcessKind, Started};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;

/// The word with which our own program plays inside the namespace.
pub const WORD: &str = "--reused-pids";

/// Small, and above what the kernel reserves.
const PID_MAX: &str = "420";

/// Starts our own program in such a namespace.
pub fn play_inside(means: &Means) -> Verdict {
    let own = means.own.as_ref().expect("left out otherwise");
    let script = format!("echo {PID_MAX} > /proc/sys/kernel/pid_max && \"$@\"; exit $?");
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", &script, "sh"]);
    command.arg(own).arg(WORD).arg(&means.program);
    let output = Started::new(command, None).finish();
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    Verdict { injected: true, looks: 0, what: "in a pid namespace".to_owned() }
}

/// The first numbers are not used twice.
const RESERVED: i32 = 300;

/// All processes of a session are killed, and a foreign process gets the agent's number.
pub fn play(program: &Path) {
    let fixture = Fixture::new(program, Agents::Demo).expect("built in");
    while Started::new(fixture.harness.command("true"), None).process().pid() <= RESERVED {}
    fixture.launch(None);
    let session = fixture.session();
    session.until_look("a first answer", |view| view.turns == 1);
    fixture.truth.may_be_lost();
    fixture.agent_killed.store(true, Ordering::SeqCst);
    let witness = fixture.look_on();
    let agent = session.living(ProcessKind::Agent);
    kill_at_once(&fixture, &[ProcessKind::Agent, ProcessKind::Keeper, ProcessKind::Holder]);
    let foreign = std::iter::repeat_with(|| {
        let mut command = fixture.harness.command("sleep");
        command.arg("600").current_dir("/");
        Started::new(command, None)
    })
    .take(5000)
    .find(|process| process.process().pid() == agent.pid());
    let foreign = foreign.expect("the number comes round again");
    let shown = session.show();
    assert!(shown.ended && !shown.alive, "a foreign process is taken for the agent: {shown:?}");
    fixture.typed_again(&["stop", session.id()], &[0]);
    fixture.settle();
    fixture.judge(witness, &["succeeded"]);
    assert!(foreign.runs(), "a foreign process with the agent's number was signalled");
}
