//! Holder and keeper of different versions work together: a name or a letter that one side does not know is passed on
//! or ignored, and the other side works without one that is missing.
//!
//! This program is both the test and the helpers under test: started with a helper's word it becomes that helper, as
//! `ostler` does. So it has no test harness of its own. Its tests run one after the other, because the test is the
//! holder, and a keeper ends whatever else its holder has started.

#![expect(clippy::unwrap_used, reason = "tests")]

mod fixture;

use fixture::{Fixture, NEWER_KEEPER};
use ostler_core::outcome::Kind;
use ostler_store::home::Home;
use ostler_sys::process::{Identity, command_line};
use ostler_sys::{descriptors, pipes, socket};
use ostler_testkit::patience;
use rustix::fd::AsFd;

const TESTS: [(&str, fn()); 5] = [
    ("a_keeper_works_under_an_older_holder", a_keeper_works_under_an_older_holder),
    (
        "a_keeper_writes_first_what_its_predecessor_left_on_the_way",
        a_keeper_writes_first_what_its_predecessor_left_on_the_way,
    ),
    ("a_keeper_works_under_a_newer_holder", a_keeper_works_under_a_newer_holder),
    (
        "unknown_handles_reach_the_replacement_and_the_next_keeper",
        unknown_handles_reach_the_replacement_and_the_next_keeper,
    ),
    ("a_holder_works_under_a_newer_keeper", a_holder_works_under_a_newer_keeper),
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if std::env::var_os(NEWER_KEEPER).is_some() && arguments.get(1).map(String::as_str) == Some(ostler_keeper::KEEPER) {
        speak_as_a_newer_keeper(&arguments);
    }
    if let Some(code) = ostler_keeper::enter(
        &arguments,
        ostler_keeper::Settings { output: || None, notify: || None, snapshots: || false },
    ) {
        std::process::exit(code);
    }
    if arguments.iter().any(|argument| argument == "--list") {
        return;
    }
    let wanted = arguments.iter().skip(1).find(|argument| !argument.starts_with('-'));
    let mut failed = 0;
    for (name, test) in TESTS {
        if wanted.is_some_and(|wanted| !name.contains(wanted.as_str())) {
            continue;
        }
        let passed = std::panic::catch_unwind(test).is_ok();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        failed += i32::from(!passed);
    }
    std::process::exit(if failed == 0 { 0 } else { 101 });
}

/// An older holder opened less: no pidfd of the agent, no binary to start helpers from, no standard error, no pipe
/// between the agent's pipe and its file.
fn a_keeper_works_under_an_older_holder() {
    let mut fixture = Fixture::set();
    fixture.write_holder(r#"{"PROCESS","version":"0.0.1"}"#);
    for unheard_of in ["agent", "binary", "err", "stderr_read", "stderr_write", "passing_read", "passing_write"] {
        fixture.handles.retain(|(name, _)| name != unheard_of);
    }
    fixture.start_keeper(&[]);
    fixture.until_printed("hello\n");
    fixture.stop_as_its_holder();
    assert_eq!(fixture.outcome().kind, Kind::Stopped);
}

/// Bytes that had left the agent's pipe when a keeper was killed come before all that is still in it.
fn a_keeper_writes_first_what_its_predecessor_left_on_the_way() {
    let mut fixture = Fixture::set();
    fixture.write_holder(r#"{"PROCESS","version":"0.0.1"}"#);
    let passing = fixture.handles.iter().find(|(name, _)| name == "passing_write").unwrap();
    rustix::io::write(&passing.1, b"before ").unwrap();
    fixture.start_keeper(&[]);
    fixture.until_printed("before hello\n");
    fixture.stop_as_its_holder();
    assert_eq!(fixture.outcome().kind, Kind::Stopped);
}

/// A newer holder hands over more, sends more and writes more.
fn a_keeper_works_under_a_newer_holder() {
    let mut fixture = Fixture::set();
    fixture.write_holder(r#"{"PROCESS","version":"9.9.9","crashes":0,"gave_up":false,"mood":"fine"}"#);
    fixture.handles.push(("future".to_owned(), pipes::Pipe::blocking().unwrap().read));
    fixture.start_keeper(&["--future", "--and", "beyond"]);
    for packet in [&b"Z"[..], b"Zebra", b"\0", b"{\"news\":1}"] {
        socket::transmit(&fixture.line, packet).unwrap();
    }
    fixture.until_printed("hello\n");
    for packet in [&b"z"[..], b"eager"] {
        // The second begins like "the agent has exited", but the agent has not: only the files decide.
        socket::transmit(&fixture.line, packet).unwrap();
    }
    fixture.stop_as_its_holder();
    assert_eq!(fixture.outcome().kind, Kind::Stopped);
}

fn unknown_handles_reach_the_replacement_and_the_next_keeper() {
    let mut fixture = Fixture::set();
    let pipe = pipes::Pipe::blocking().unwrap();
    fixture.handles.push(("future".to_owned(), pipe.read));
    // A holder that is gone: the keeper starts a replacement.
    fixture.write_holder(r#"{"pid":2,"start":1,"boot":"another","version":"9.9.9"}"#);
    let keeper = fixture.start_keeper(&[]);
    let folder = fixture.path();
    let replacement = patience::until("a replacement holds the session", &[&folder], || {
        let holder = fixture.folder.holder().unwrap()?.process;
        (holder.may_live() && command_line(holder.pid()).get(1).is_some_and(|word| word == ostler_keeper::HOLDER))
            .then_some(holder)
    });
    let expected = Fixture::file_behind(pipe.write.as_fd());
    assert_eq!(handed_on(&replacement), Some(expected.clone()));

    fixture.kill(&keeper);
    let next = patience::until("the next keeper is up", &[&folder], || {
        let next = fixture.folder.keeper().unwrap()?.process;
        (next != keeper).then_some(next)
    });
    assert_eq!(handed_on(&next), Some(expected));
    fixture.request_stop();
    fixture.collect_agent();
    assert_eq!(fixture.outcome().kind, Kind::Stopped);
    patience::ended(&replacement);
}

/// Which file a process was handed under the unknown name.
fn handed_on(process: &Identity) -> Option<String> {
    let argument =
        command_line(process.pid()).into_iter().find_map(|word| Some(word.strip_prefix("future=")?.to_owned()))?;
    let link = std::fs::read_link(format!("/proc/{}/fd/{argument}", process.pid())).unwrap();
    Some(link.to_string_lossy().into_owned())
}

/// The session is launched as `ostler run` does it; its keepers give orders that its holder does not know.
fn a_holder_works_under_a_newer_keeper() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().to_string_lossy().into_owned();
    let home = Home::find(&|name| (name == "OSTLER_HOME").then(|| root.clone())).unwrap();
    let place = fixture::launch(&home);
    let folder = place.open().unwrap();
    let (holder, first) = patience::until("both helpers are up", &[&place.path], || {
        Some((folder.holder().unwrap()?.process, folder.keeper().unwrap()?.process))
    });
    fixture::kill(&first);
    let second = patience::until("the next keeper is up", &[&place.path], || {
        folder.keeper().unwrap().map(|keeper| keeper.process).filter(|next| *next != first)
    });
    assert!(holder.may_live() && second.may_live());
    fixture::request_stop(&folder);
    let run = folder.run(1).unwrap();
    let outcome = patience::until("it has ended", &[&place.path.join("runs/1")], || run.outcome().unwrap());
    assert_eq!(outcome.kind, Kind::Stopped);
    patience::ended(&holder);
    ostler_sys::spawn::collect(holder.pid());
}

/// Sends what a later version might send, then continues as a keeper of the present version.
fn speak_as_a_newer_keeper(arguments: &[String]) {
    let number = arguments.iter().find_map(|word| word.strip_prefix("holder_line=")?.parse().ok()).unwrap();
    let line = descriptors::inherited(number).unwrap();
    for packet in [&b"Q"[..], b"quite new", b"\xff"] {
        socket::transmit(&line, packet).unwrap();
    }
    socket::transmit_with_file(&line, b"Q", descriptors::own_binary().unwrap()).unwrap();
    // The keeper takes over the same descriptor number.
    std::mem::forget(line);
}
