//! Injects the faults, each for a moment, while another thread sends to the session. Whatever can be undone is undone
//! before this returns.

use crate::another_build;
use crate::fault::{Fault, Means, PIDS};
use crate::fixture::Fixture;
use crate::random::Random;
use ostler_sys::process::{Identity, Pidfd, boot_id};
use ostler_testkit::{ProcessKind, Session, SmallDisk, Started, patience};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Resource, Rlimit, Signal};
use serde_json::Value;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The longest wait before the fault, or until it is over.
const MOMENT_MS: usize = 150;

/// Waits for a random time: the moment of the fault has to vary.
fn moment(random: &mut Random, longest_ms: usize) {
    patience::let_pass(Duration::from_millis(random.below(longest_ms) as u64));
}

/// Declares beforehand what may be true once the fault is injected.
pub fn widen(fixture: &Fixture, fault: Fault) {
    match fault {
        Fault::KillAgent => {
            fixture.truth.may_end();
            fixture.agent_killed.store(true, Ordering::SeqCst);
        }
        // Without helpers no process holds the agent's input open, and it exits as at any end of input.
        Fault::KillBothHelpers | Fault::KillEveryone => {
            fixture.truth.may_be_lost();
            fixture.agent_killed.store(true, Ordering::SeqCst);
        }
        // For an agent with one process per message, the helper that starts the next process may be killed while it is
        // the only one.
        Fault::KillHolder | Fault::KillKeeper | Fault::PausePoint | Fault::NoDescriptors | Fault::NoProcesses
            if !fixture.agents.is_one_process() =>
        {
            fixture.truth.may_be_lost();
        }
        Fault::PausePoint => fixture.truth.may_end(),
        Fault::FullDisk => {
            fixture.may_refuse.store(true, Ordering::SeqCst);
            if !fixture.agents.is_one_process() {
                // There is no room for the next process: the session ends, and the message waits for a resume.
                fixture.truth.may_end();
            }
        }
        Fault::KillKeeper
        | Fault::KillHolder
        | Fault::KillClient
        | Fault::StopAgent
        | Fault::StopKeeper
        | Fault::StopHolder
        | Fault::StopClient
        | Fault::NoDescriptors
        | Fault::NoProcesses
        | Fault::TornJournal
        | Fault::TornInbox
        | Fault::GarbageBeside
        | Fault::OtherBoot
        | Fault::ReusedPids
        | Fault::OlderBinary
        | Fault::OtherUser
        | Fault::ClockJump => {}
    }
}

/// What some faults need.
#[derive(Clone, Copy, Debug)]
pub struct With<'a> {
    pub means: &'a Means,
    /// Where the session's files are, when that disk is to be filled.
    pub disk: Option<&'a SmallDisk>,
}

/// Injects the fault.
pub fn inject(fixture: &Fixture, fault: Fault, with: &With<'_>, random: &mut Random) {
    moment(random, MOMENT_MS);
    match fault {
        Fault::KillAgent => {
            fixture.session().kill_if_alive(ProcessKind::Agent);
        }
        Fault::KillKeeper => kill_again_and_again(fixture, ProcessKind::Keeper, random),
        Fault::KillHolder => kill_again_and_again(fixture, ProcessKind::Holder, random),
        Fault::KillBothHelpers => kill_at_once(fixture, &[ProcessKind::Keeper, ProcessKind::Holder]),
        Fault::KillEveryone => kill_at_once(fixture, &[ProcessKind::Agent, ProcessKind::Keeper, ProcessKind::Holder]),
        Fault::KillClient => kill_client(fixture, random),
        Fault::StopAgent => hit(&fixture.session(), ProcessKind::Agent, false, random),
        Fault::StopKeeper => hit(&fixture.session(), ProcessKind::Keeper, false, random),
        Fault::StopHolder => hit(&fixture.session(), ProcessKind::Holder, false, random),
        Fault::StopClient => stop_client(fixture, random),
        Fault::FullDisk => fill_disk(with.disk, random),
        Fault::NoDescriptors => starve_of_descriptors(fixture, random),
        Fault::NoProcesses => starve_of_processes(fixture, random),
        Fault::TornJournal => tear_journal(fixture, random),
        Fault::TornInbox => tear_inbox(fixture, random),
        Fault::GarbageBeside => garbage_beside(fixture),
        Fault::OtherBoot => copy_of_another_boot(fixture),
        Fault::OlderBinary => older_binary(fixture, with.means),
        Fault::OtherUser => other_user(fixture),
        Fault::ClockJump => jump_the_clock(fixture, random),
        // Injected by the caller, which prepared the fixture.
        Fault::PausePoint | Fault::ReusedPids => {}
    }
}

fn signal(process: &Identity, signal: Signal) {
    if let Some(pidfd) = Pidfd::open(process).expect("a pidfd") {
        pidfd.signal(signal).expect("may signal what we started");
    }
}

/// Kills the process, and then its replacements.
fn kill_again_and_again(fixture: &Fixture, who: ProcessKind, random: &mut Random) {
    for _ in 0..=random.below(3) {
        hit(&fixture.session(), who, true, random);
    }
}

/// Kills one of a session's processes, or stops it for a while, at a random moment.
pub fn hit(session: &Session<'_>, who: ProcessKind, kills: bool, random: &mut Random) {
    moment(random, MOMENT_MS);
    if kills {
        session.kill_if_alive(who);
    } else if let Some(process) = session.recorded(who) {
        signal(&process, Signal::STOP);
        moment(random, 3 * MOMENT_MS);
        signal(&process, Signal::CONT);
    }
}

/// Stops all of them before any is killed, so that none can start a replacement.
pub fn kill_at_once(fixture: &Fixture, victims: &[ProcessKind]) {
    let session = fixture.session();
    let victims: Vec<Identity> = victims.iter().filter_map(|&who| session.recorded(who)).collect();
    for deadly in [Signal::STOP, Signal::KILL] {
        victims.iter().for_each(|victim| signal(victim, deadly));
    }
    victims.iter().for_each(patience::ended);
}

fn kill_client(fixture: &Fixture, random: &mut Random) {
    let (text, client) = fixture.start_sending();
    moment(random, 20);
    client.kill();
    fixture.sent(text, &client.finish());
}

fn stop_client(fixture: &Fixture, random: &mut Random) {
    let (text, client) = fixture.start_sending();
    moment(random, 10);
    signal(client.process(), Signal::STOP);
    moment(random, MOMENT_MS);
    signal(client.process(), Signal::CONT);
    fixture.sent(text, &client.finish());
}

/// Fills the disk, for a moment.
fn fill_disk(disk: Option<&SmallDisk>, random: &mut Random) {
    let ballast = disk.expect("a disk of its own").fill();
    moment(random, 4 * MOMENT_MS);
    std::fs::remove_file(ballast).expect("our own file");
}

/// The keeper cannot open anything, and fails; or the holder cannot, while its keeper is killed.
fn starve_of_descriptors(fixture: &Fixture, random: &mut Random) {
    let session = fixture.session();
    let starved = if random.below(2) == 0 { ProcessKind::Holder } else { ProcessKind::Keeper };
    let Some(helper) = session.recorded(starved).filter(Identity::may_live) else { return };
    let pid = Pid::from_raw(helper.pid());
    // The helper may have exited by itself meanwhile.
    let Ok(before) = rustix::process::prlimit(pid, Resource::Nofile, Rlimit { current: Some(0), maximum: None }) else {
        return;
    };
    moment(random, MOMENT_MS);
    if starved == ProcessKind::Holder {
        session.kill_if_alive(ProcessKind::Keeper);
    }
    moment(random, 2 * MOMENT_MS);
    if helper.may_live() {
        let _ = rustix::process::prlimit(pid, Resource::Nofile, before);
    }
}

/// No helper can start anything for a moment, in which the other helper is killed.
fn starve_of_processes(fixture: &Fixture, random: &mut Random) {
    let session = fixture.session();
    let group = Path::new(PIDS).join(format!("ostler-chaos-{}", session.id()));
    std::fs::create_dir(&group).expect("a cgroup");
    let helpers: Vec<Identity> =
        [ProcessKind::Holder, ProcessKind::Keeper].iter().filter_map(|&who| session.recorded(who)).collect();
    let enter = |group: &Path, process: &Identity| {
        if process.may_live() {
            // The helper may have exited by itself meanwhile.
            let _ = std::fs::write(group.join("cgroup.procs"), process.pid().to_string());
        }
    };
    helpers.iter().for_each(|helper| enter(&group, helper));
    std::fs::write(group.join("pids.max"), "0").expect("a limit");
    moment(random, MOMENT_MS);
    session.kill_if_alive(if random.below(2) == 0 { ProcessKind::Keeper } else { ProcessKind::Holder });
    moment(random, 4 * MOMENT_MS);
    std::fs::write(group.join("pids.max"), "max").expect("a limit");
    // Processes that were started in the group are moved out of it, so that it can be removed.
    patience::until("the cgroup is empty", &[], || {
        let inside = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        for pid in inside.lines() {
            let _ = std::fs::write(Path::new(PIDS).join("cgroup.procs"), pid);
        }
        std::fs::remove_dir(&group).is_ok().then_some(())
    });
}

const TORN: &[&[u8]] = &[b"{\"at\":\"2026-11-15T", b"\xff\xfe\x00garbage\n", b"{}\n", b"\n\n{\"at\":1", b"[[[[[[["];

/// A keeper is killed in the middle of a line. The holder is stopped meanwhile, so that no other process writes at the
/// same time.
fn tear_journal(fixture: &Fixture, random: &mut Random) {
    let session = fixture.session();
    let Some(holder) = session.recorded(ProcessKind::Holder) else { return };
    signal(&holder, Signal::STOP);
    session.kill_if_alive(ProcessKind::Keeper);
    append(&session.path().join("journal.jsonl"), random.pick(TORN));
    signal(&holder, Signal::CONT);
}

/// A client is killed in the middle of a line.
fn tear_inbox(fixture: &Fixture, random: &mut Random) {
    append(&fixture.session().path().join("inbox.jsonl"), random.pick(TORN));
}

fn append(file: &Path, bytes: &[u8]) {
    let mut file = std::fs::File::options().append(true).create(true).open(file).expect("a file");
    flock(&file, FlockOperation::LockExclusive).expect("a lock");
    file.write_all(bytes).expect("room");
}

/// Folders and files that are not sessions, or not any more. Our session is listed all the same, and they cause no
/// errors.
fn garbage_beside(fixture: &Fixture) {
    let session = fixture.session();
    let sessions = session.path().parent().expect("a folder").to_owned();
    let folders = ["abcdefgh", "zzzzzzzz"].map(|name| sessions.join(name));
    for folder in &folders {
        std::fs::create_dir_all(folder.join("runs/1")).expect("a folder");
        std::fs::write(folder.join("session.json"), b"\x00\xff{{{").expect("a file");
        std::fs::write(folder.join("runs/1/run.json"), "{\"agent\":{\"pid\":1}}").expect("a file");
    }
    let file = sessions.join("hhhhhhhh");
    std::fs::write(&file, "no folder").expect("a file");
    let listed = fixture.harness.run(&["ls", "--json"]).exits(0);
    assert!(listed.stdout.contains(session.id()), "not listed: {listed:?}");
    std::fs::remove_file(file).expect("our own file");
    for folder in folders {
        std::fs::remove_dir_all(folder).expect("our own folder");
    }
}

/// A backup is restored after a reboot: nothing in it is alive, and no living process is signalled.
fn copy_of_another_boot(fixture: &Fixture) {
    let session = fixture.session();
    let copy = fixture.harness.root().join("restored");
    let folder = copy.join("sessions").join(session.id());
    copy_with_another_boot(&session.path(), &folder);
    let ask = |words: &[&str]| {
        let mut command = fixture.harness.command(fixture.harness.program());
        command.env("OSTLER_HOME", &copy).args(words);
        Started::new(command, None).finish()
    };
    let shown = ask(&["show", "--json", session.id()]).exits(0).json();
    assert_eq!((&shown["alive"], &shown["ended"]), (&Value::Bool(false), &Value::Bool(true)), "{shown}");
    ask(&["stop", session.id()]).exits(0);
    std::fs::remove_dir_all(copy).expect("our own folder");
}

fn copy_with_another_boot(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    // The folder of a run that is just being made may have been renamed by now.
    for entry in std::fs::read_dir(from).into_iter().flatten().flatten() {
        let (kind, target) = (entry.file_type().expect("a kind"), to.join(entry.file_name()));
        if kind.is_dir() {
            copy_with_another_boot(&entry.path(), &target);
        } else if kind.is_file()
            // Temporary files may be gone by now.
            && let Ok(bytes) = std::fs::read(entry.path())
        {
            let text = String::from_utf8_lossy(&bytes).replace(boot_id(), "00000000-0000-4000-8000-000000000000");
            std::fs::write(target, text).expect("room");
        }
    }
}

/// The older program on a session of the newer one, and the other way round, shows the session correctly.
fn older_binary(fixture: &Fixture, means: &Means) {
    let session = fixture.session();
    let older = means.older.clone().unwrap_or_else(|| another_build::of(&fixture.harness));
    let mut command = fixture.harness.command(older);
    command.args(["show", "--json", session.id()]);
    let shown = Started::new(command, None).finish().exits(0).json();
    assert_eq!(shown["alive"], Value::Bool(true), "{shown}");
    session.kill_if_alive(ProcessKind::Keeper);
    fixture.harness.run(&["upgrade"]).exits(0);
}

/// By how many seconds a clock is off: hours back, days and a year ahead, and back to the beginning of its time.
const JUMPS: &[i64] = &[-3600, -5 * 3600, 86_400, 9 * 86_400, 366 * 86_400, -1_700_000_000, 0];

/// The clock is set again and again, while people look and wait. In the end it is right.
fn jump_the_clock(fixture: &Fixture, random: &mut Random) {
    let session = fixture.session();
    for _ in 0..=random.below(4) {
        fixture.harness.shift_clock(random.pick(JUMPS));
        moment(random, MOMENT_MS);
        let listed = fixture.harness.run(&["ls", "-a", "--json"]).exits(0);
        assert!(listed.stdout.contains(session.id()), "not listed: {listed:?}");
        // 0: everything was answered already, 124: the timeout has passed. Nothing waits for the clock to come back.
        let waited = fixture.harness.run(&["wait", session.id(), "--until", "turn", "--timeout", "100ms"]);
        assert!(matches!(waited.code, Some(0 | 124)), "{waited:?}");
    }
    fixture.harness.shift_clock(0);
}

/// Another user cannot even look at a session.
fn other_user(fixture: &Fixture) {
    let open = |path: &Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("our own");
    let root = fixture.harness.root();
    open(root);
    let copy = fixture.harness.copied_program("ostler-copy");
    open(&copy);
    for words in [&["ls"][..], &["stop", fixture.session().id()], &["send", fixture.session().id(), "mine now"]] {
        let mut command = fixture.harness.command("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy).args(words).current_dir("/");
        let output = Started::new(command, None).finish();
        assert!(output.code.is_some_and(|code| code != 0), "another user was served: {output:?}");
    }
}
