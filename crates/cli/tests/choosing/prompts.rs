//! The message that an agent gets: the prompt, whatever it begins with, and after it the text that was piped in.

use crate::harness;
use ostler_testkit::{Harness, Started, patience};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

/// The messages of the newest session, as the agent got them.
#[track_caller]
fn told(harness: &Harness) -> Vec<String> {
    let lines = harness.run(&["logs", "--json", "@last"]).exits(0).stdout;
    let items = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    items.filter(|item| item["kind"] == "told").map(|item| item["text"].as_str().unwrap().to_owned()).collect()
}

/// `ostler run demo "say first"`; the test chooses its standard input.
fn run_demo(harness: &Harness) -> Command {
    let mut command = harness.command(harness.program());
    command.args(["run", "demo", "say first"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn what_is_piped_in_comes_after_the_prompt() {
    let harness = harness();
    harness.run_with_input(&["run", "demo", "say review"], b"+ a line\n").exits(0);
    assert_eq!(told(&harness), ["say review\n\n+ a line\n"]);
    harness.run_with_input(&["resume", "@last", "say again"], b"- a line\n").exits(0);
    assert_eq!(told(&harness)[1], "say again\n\n- a line\n");
    let file = harness.root().join("prompt");
    std::fs::write(&file, "say from a file").unwrap();
    harness.run_with_input(&["run", "-f", file.to_str().unwrap(), "demo"], b"and more").exits(0);
    assert_eq!(told(&harness), ["say from a file\n\nand more"]);
    let output = run_demo(&harness).stdin(std::fs::File::open(&file).unwrap()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(told(&harness), ["say first\n\nsay from a file"]);
    for nothing in [&b""[..], b"\n"] {
        harness.run_with_input(&["run", "demo", "say alone"], nothing).exits(0);
        assert_eq!(told(&harness), ["say alone"]);
    }
    // Without a standard input.
    let mut shell = harness.command("sh");
    shell.args(["-c", "exec \"$0\" run demo 'say closed' <&-"]).arg(harness.program());
    Started::new(shell, None).finish().exits(0);
    assert_eq!(told(&harness), ["say closed"]);
}

#[test]
fn too_much_or_what_is_not_text_is_refused_before_anything_starts() {
    let harness = harness();
    let output = harness.run_with_input(&["run", "-d", "demo", "say x"], &vec![b'x'; 16 << 20]).exits(2);
    assert!(output.complaint().contains("16 MiB"), "{output:?}");
    let output = harness.run_with_input(&["run", "-d", "demo", "say x"], b"\xff").exits(2);
    assert!(output.complaint().contains("UTF-8"), "{output:?}");
    assert!(harness.ls().is_empty());
}

#[test]
fn an_inherited_pipe_that_stays_empty_is_given_up_with_a_message() {
    let harness = harness();
    // As from a CI runner, which keeps the write end open: once a pipe, and once a socket, as some languages make it.
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut socket = run_demo(&harness).stdin(std::os::fd::OwnedFd::from(theirs)).spawn().unwrap();
    let mut pipe = run_demo(&harness).stdin(Stdio::piped()).spawn().unwrap();
    let held = (ours, pipe.stdin.take(), socket.stdin.take());
    for child in [pipe, socket] {
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        assert!(stderr.contains("nothing came from the pipe") && stderr.contains("</dev/null"), "{stderr}");
    }
    assert_eq!(told(&harness), ["say first"]);
    drop(held);
}

#[test]
fn a_slow_program_before_ostler_in_a_pipeline_is_waited_for_with_a_message() {
    let harness = harness();
    let words = harness.root().join("words");
    let script = "mkfifo gate; (cat gate; echo late) | \"$0\" run demo 'say first' 2>words";
    let mut shell = harness.command("sh");
    shell.args(["-c", script]).arg(harness.program()).current_dir(harness.root());
    let started = Started::new(shell, None);
    patience::until("it says what it waits for", &[harness.root()], || {
        std::fs::read_to_string(&words).ok().filter(|text| text.contains("waiting for the end of standard input"))
    });
    std::fs::write(harness.root().join("gate"), "early\n").unwrap();
    started.finish().exits(0);
    assert_eq!(told(&harness), ["say first\n\nearly\nlate\n"]);
}

#[test]
fn a_prompt_may_begin_with_a_dash() {
    let harness = harness();
    for (words, prompt) in [
        (&["run", "demo", "- say this"][..], "- say this"),
        (&["run", "--name", "dashed", "demo", "-say\nthis"], "-say\nthis"),
        (&["run", "demo", "--", "- say that"], "- say that"),
        (&["run", "demo", "-p", "-say"], "-say"),
        (&["run", "--prompt=--say", "demo"], "--say"),
    ] {
        harness.run(words).exits(0);
        assert_eq!(told(&harness), [prompt], "{words:?}");
    }
    harness.configure("default_agent = 'demo'\n");
    harness.run(&["run", "- say it"]).exits(0);
    assert_eq!(told(&harness), ["- say it"]);
    harness.run(&["resume", "@last", "- and this"]).exits(0);
    harness.run(&["send", "@last", "-", "--list"]).exits(2).complaint();
    for words in [
        &["send", "@last", "- one"][..],
        &["send", "@last", "--", "-two"],
        &["send", "@last", "-m", "-three"],
        &["send", "@last", "--message=-four"],
    ] {
        harness.run(words).exits(0);
    }
    harness.run(&["resume", "@last"]).exits(0);
    assert_eq!(told(&harness), ["- say it", "- and this", "- one", "-two", "-three", "-four"]);
    harness.run(&["fork", "@last", "- the copy"]).exits(0);
    assert_eq!(told(&harness), ["- the copy"]);
    for twice in [&["run", "demo", "x", "-p", "y"][..], &["run", "demo", "-p", "y", "-f", "z"]] {
        harness.run(twice).exits(2).complaint();
    }
    harness.run(&["send", "@last", "x", "-m", "y"]).exits(2).complaint();
}
