//! Reused pids: in a pid namespace with a small `pid_max` a number comes round again within a second, so that a record
//! names somebody who has nothing to do with it.

use crate::cast::Cast;
use crate::fault::Means;
use crate::round::Verdict;
use crate::stage::Stage;
use crate::strike::kill_at_once;
use ostler_testkit::{Started, Who};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;

/// The word that makes our own program play inside.
pub const WORD: &str = "--reused-pids";

/// Small, and above what the kernel keeps for itself.
const PID_MAX: &str = "420";

/// Starts ourselves in such a namespace.
pub fn play_inside(means: &Means) -> Verdict {
    let own = means.own.as_ref().expect("left out otherwise");
    let script = format!("echo {PID_MAX} > /proc/sys/kernel/pid_max && \"$@\"; exit $?");
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", &script, "sh"]);
    command.arg(own).arg(WORD).arg(&means.program);
    let output = Started::new(command, None).finish();
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    Verdict { struck: true, looks: 0, what: "in a pid namespace".to_owned() }
}

/// The first numbers are not given out twice.
const RESERVED: i32 = 300;

/// Everyone of a session dies, and somebody else gets the agent's number.
pub fn play(program: &Path) {
    let stage = Stage::new(program, Cast::Demo).expect("built in");
    while Started::new(stage.harness.command("true"), None).process().pid() <= RESERVED {}
    stage.launch(None);
    let session = stage.session();
    session.until_look("a first answer", |view| view.turns == 1);
    stage.truth.may_be_lost();
    stage.agent_killed.store(true, Ordering::SeqCst);
    let witness = stage.look_on();
    let agent = session.living(Who::Agent);
    kill_at_once(&stage, &[Who::Agent, Who::Keeper, Who::Holder]);
    let stranger = std::iter::repeat_with(|| {
        let mut command = stage.harness.command("sleep");
        command.arg("600").current_dir("/");
        Started::new(command, None)
    })
    .take(5000)
    .find(|process| process.process().pid() == agent.pid());
    let stranger = stranger.expect("the number comes round again");
    let shown = session.show();
    assert!(shown.ended && !shown.alive, "a stranger is taken for the agent: {shown:?}");
    stage.typed_again(&["stop", session.id()], &[0]);
    stage.settle();
    stage.judge(witness, &["succeeded"]);
    assert!(stranger.runs(), "a stranger with the agent's number was signalled");
}
