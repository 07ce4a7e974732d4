//! Conversations that real agents began outside ostler: adopting asks the model nothing, the earlier messages are
//! shown, the agent continues the conversation, and a process that has the conversation open is named, or is ended with
//! its turn saved.

use crate::fixture::{Fixture, for_every_agent};
use crate::person::Person;
use crate::terminals_show_their_screen::ready;
use ostler_mock_llm::Request;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{Started, patience};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

/// The agent itself, without ostler, in the working directory.
fn outside(fixture: &Fixture, arguments: &[&str], prompt: &str) -> Child {
    let words = fixture.agent.program().unwrap();
    let mut command = fixture.harness.command(&words[0]);
    command.args(&words[1..]).args(arguments).current_dir(fixture.work());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(prompt.as_bytes()).unwrap();
    child
}

/// Its arguments for one turn, with the prompt on standard input and the output as JSON.
fn one_turn(agent: Agent) -> &'static [&'static str] {
    match agent {
        Agent::Claude | Agent::ClaudeAcp => &["-p", "--output-format", "json", "--allowedTools", "Bash"],
        Agent::Codex | Agent::CodexAcp => {
            &["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-"]
        }
        Agent::Gemini => &["--output-format", "stream-json"],
        Agent::Qwen => &["--output-format", "stream-json", "--yolo"],
        Agent::Opencode => &["run", "--format", "json"],
    }
}

/// Runs one turn outside ostler. Returns the agent's id of the conversation.
fn converse(fixture: &Fixture, prompt: &str) -> String {
    let output = outside(fixture, one_turn(fixture.agent), prompt).wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let id = lines.into_iter().find_map(|line| {
        let names = ["session_id", "thread_id", "sessionID"];
        names.iter().find_map(|name| line[name].as_str().map(str::to_owned))
    });
    id.unwrap_or_else(|| panic!("no id of the conversation: {text}"))
}

fn turns(fixture: &Fixture) -> usize {
    fixture.server.requests().iter().filter(|request: &&Request| request.turn().is_some()).count()
}

#[track_caller]
fn logs(fixture: &Fixture, id: &str) -> String {
    fixture.harness.run(&["logs", id]).exits(0).stdout
}

fn is_adopted(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let tool = fixture.tool("echo from the tool");
    let native_id = converse(&fixture, &format!("{tool} ; say one"));
    let asked = turns(&fixture);
    is_found_outside(&fixture, &native_id);
    // A prefix that is long enough to be unique.
    let adopted = fixture.harness.run(&["adopt", &native_id[..native_id.len() - 3], "--name", "mine"]).exits(0);
    let id = adopted.stdout.trim_end().to_owned();
    assert!(adopted.stderr.contains(&format!("adopted as {id}: {} {native_id}", agent.name())), "{adopted:?}");
    assert_eq!(turns(&fixture), asked, "adopting asks the model nothing");
    let before = logs(&fixture, &id);
    for said in ["say one", "from the tool", "\none\n"] {
        assert!(before.contains(said), "{said:?} was said before: {before}");
    }
    let shown = fixture.harness.run(&["show", "--json", &id]).exits(0).json();
    assert_eq!(shown["native_id"], native_id.as_str());
    assert_eq!(shown["adopted"]["messages"], 2, "{shown}");
    assert_eq!((&shown["alive"], &shown["last"]), (&Value::from(false), &Value::from("one")), "{shown}");
    let words = fixture.harness.run(&["show", "mine"]).exits(0).stdout;
    assert!(words.contains("started outside ostler, 2 messages before; by tester"), "{words}");
    let events = fixture.harness.run(&["events"]).exits(0).stdout;
    assert_eq!(events.matches("\"adopted\"").count(), 1, "{events}");
    let again = fixture.harness.run(&["adopt", &native_id]).exits(7);
    assert!(
        again.complaint().contains(&format!(
            "this conversation already belongs to session mine ({id}); continue it: ostler resume {id}"
        )),
        "{again:?}"
    );

    let output = fixture.harness.run(&["resume", "mine", "say two"]).exits(0);
    assert_eq!(output.stdout, "two\n", "{output:?}");
    let told = fixture.last_request();
    assert!(told.contains("say one") && told.contains("say two"), "{told}");
    let all = logs(&fixture, &id);
    assert!(all.starts_with(&before), "what was said before stays: {all}");
    for said in ["say one", "\none\n", "say two", "\ntwo\n"] {
        assert_eq!(all.matches(said).count(), 1, "{said:?} once: {all}");
    }
    let view = fixture.harness.session(&id).show();
    assert_eq!((view.outcome().kind.as_str(), view.turns), ("succeeded", 1), "{view:?}");
    assert_ne!(view.outcome().saved, "unverified");
    fixture.proves("adopts a conversation from outside, with what was said before");

    let hit = hit(&fixture, &["two", "--ours", "--role", "agent"]);
    assert_eq!(
        (hit["session"].as_str(), hit["native_id"].as_str()),
        (Some(id.as_str()), Some(native_id.as_str())),
        "{hit}"
    );
    assert_eq!(hit["command"], serde_json::json!(["ostler", "resume", id]));
    fixture.harness.run(&["resume", &id, "say three"]).exits(0);
    fixture.proves("is found by search, read and continued from there");
}

/// The newest message that contains these words.
#[track_caller]
fn hit(fixture: &Fixture, words: &[&str]) -> Value {
    fixture.harness.run(&[&["search", "--json"], words].concat()).exits(0).json()[0].clone()
}

/// Before the conversation is a session, search finds it and names the command that adopts it, and `logs --foreign`
/// shows it.
fn is_found_outside(fixture: &Fixture, native_id: &str) {
    for words in [&["from the tool", "--role", "tool"][..], &["one", "--role", "agent"], &["say one", "--role", "user"]]
    {
        let hit = hit(fixture, words);
        assert_eq!(
            (hit["agent"].as_str(), hit["native_id"].as_str()),
            (Some(fixture.agent.name()), Some(native_id)),
            "{hit}"
        );
        assert_eq!((hit["session"].is_null(), hit["cwd"].as_str()), (true, fixture.work().to_str()), "{hit}");
        assert!(hit["at"].as_str().is_some_and(|at| at.starts_with("20")), "{hit}");
        assert_eq!(hit["command"], serde_json::json!(["ostler", "adopt", native_id]));
    }
    let read = fixture.harness.run(&["logs", "--foreign", native_id]).exits(0).stdout;
    assert!(read.contains("from the tool") && read.contains("\none\n"), "{read}");
    fixture.harness.run(&["search", "one", "--ours"]).exits(1);
}

for_every_agent!(is_adopted:
    a_claude_from_outside_is_adopted Claude,
    a_codex_from_outside_is_adopted Codex,
    a_gemini_from_outside_is_adopted Gemini,
    an_opencode_from_outside_is_adopted Opencode,
    a_qwen_from_outside_is_adopted Qwen,
);

/// At a terminal an adopted conversation opens in the agent's own terminal mode.
fn opens_in_a_terminal(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    agent.trust(&fixture.harness.root().join("home"), &fixture.work()).unwrap();
    let native_id = converse(&fixture, "stream 3 1");
    let mut person = Person::runs(&fixture.harness, (40, 120), &["adopt", &native_id]);
    person.sees("word1 word2 word3");
    let session = fixture.last();
    let shown = session.show();
    assert_eq!(shown.mode, "terminal");
    // And not the text that the agent draws below the conversation.
    assert_eq!(shown.last.as_deref(), Some("word1 word2 word3"));
    fixture.harness.run(&["send", session.id(), "stream 5 1"]).exits(0);
    person.sees("word4 word5");
    let told = fixture.last_request();
    assert!(told.contains("stream 3 1") && told.contains("stream 5 1"), "{told}");
    person.types(b"\x1c");
    person.is_left_with(0);
    fixture.harness.run(&["stop", session.id()]).exits(0);
    // The same after a resume without a message.
    let (last, run) = (session.show().last.unwrap_or_default(), session.show().run);
    assert!(last.contains("word4 word5"), "{last}");
    fixture.harness.run(&["resume", "-d", session.id()]).exits(0);
    let out = session.path().join(format!("runs/{}/out", run + 1));
    session.until("it draws", || std::fs::metadata(&out).is_ok_and(|stat| stat.len() > 2000).then_some(()));
    assert_eq!(session.show().last.as_deref(), Some(last.as_str()));
    fixture.harness.run(&["stop", session.id()]).exits(0);
    assert_eq!(session.show().last, Some(last));
    fixture.proves("terminal: opens an adopted conversation");
}

for_every_agent!(opens_in_a_terminal:
    an_adopted_claude_opens_in_a_terminal Claude,
    an_adopted_codex_opens_in_a_terminal Codex,
    an_adopted_gemini_opens_in_a_terminal Gemini,
    an_adopted_opencode_opens_in_a_terminal Opencode,
);

const TAKEN_OVER: &str = "terminal: adopts a conversation that a process has open, with `--takeover`";

/// The agent in a person's terminal, after one turn.
fn at_a_terminal(fixture: &Fixture) -> Person {
    fixture.agent.trust(&fixture.harness.root().join("home"), &fixture.work()).unwrap();
    let program = fixture.agent.program().unwrap();
    let work = fixture.work();
    let mut words = vec!["env", "-C", work.to_str().unwrap(), "GEMINI_CLI_NO_RELAUNCH=true"];
    words.extend(program.iter().map(|word| word.to_str().unwrap()));
    if fixture.agent == Agent::Codex {
        // Otherwise the conversation is in a server that other terminals share.
        words.push("--no-daemon");
    }
    let mut person = Person::runs_program(&fixture.harness, (40, 120), &words);
    person.sees(ready(fixture.agent));
    person.types(b"stream 3 1");
    person.sees("stream 3 1");
    // Gemini takes a return that comes within 30 ms of the text for a line break of something pasted. So it is pressed
    // again until the model was asked.
    let asked = |requests: &[Request]| requests.iter().any(|request| request.turn().is_some());
    loop {
        person.types(b"\r");
        if fixture.server.wait_for_within(Duration::from_secs(1), asked).is_ok() {
            break;
        }
    }
    person.sees("word1 word2 word3");
    person
}

/// Waits until a transcript has this text: agents write a moment after they have shown something, and a conversation
/// that is not on disk cannot be adopted.
fn is_on_disk(fixture: &Fixture, text: &str) {
    fn found(folder: &Path, text: &str) -> bool {
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).any(|path| {
            if path.is_dir() {
                found(&path, text)
            } else {
                path.extension().is_some_and(|end| end == "jsonl")
                    && std::fs::read_to_string(&path).is_ok_and(|lines| lines.contains(text))
            }
        })
    }
    let home = fixture.harness.root().join("home");
    let transcripts = [home.join(".claude/projects"), home.join(".codex/sessions")];
    patience::until(&format!("{text:?} is on disk"), &[&home], || {
        transcripts.iter().any(|folder| found(folder, text)).then_some(())
    });
}

fn is_taken_over(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let mut person = at_a_terminal(&fixture);
    // opencode keeps its conversations in a database, from the first message on.
    if agent != Agent::Opencode {
        is_on_disk(&fixture, "word3");
    }
    let home = fixture.harness.root().join("home");
    let holder = patience::until("it is seen", &[&home], || {
        let listed = fixture.harness.run(&["ls", "--foreign", "--json"]).exits(0).json();
        let is_known = |process: &&Value| agent == Agent::Opencode || process["native_id"].is_string();
        listed.as_array().unwrap().iter().find(is_known).cloned()
    });
    // opencode's processes are found, but not which conversation each has open.
    let id = holder["native_id"].as_str().unwrap_or("ses_").to_owned();
    let name = format!("process {} (pts/", holder["pid"]);
    let refused = fixture.harness.run(&["adopt", &id]).exits(7);
    assert!(refused.complaint().contains(&name), "{refused:?}");
    assert!(refused.complaint().contains("take over: ostler adopt --takeover "), "{refused:?}");
    assert_eq!(fixture.harness.ls().len(), 0, "no session was made");
    let output = fixture.harness.run(&["adopt", "--takeover", &id, "say after"]).exits(0);
    assert!(output.stderr.contains(&format!("ended {name}")), "{output:?}");
    assert!(output.stderr.contains("its last turn is in the "), "{output:?}");
    assert_eq!(output.stdout, "after\n");
    person.waits();
    let told = fixture.last_request();
    assert!(told.contains("stream 3 1") && told.contains("say after"), "{told}");
    let said = logs(&fixture, "@last");
    assert_eq!(said.matches("word1 word2 word3").count(), 1, "{said}");
    assert_eq!(said.matches("after\n").count(), 2, "in the prompt and in the answer: {said}");
    fixture.proves(TAKEN_OVER);
}

for_every_agent!(is_taken_over:
    a_claude_in_a_terminal_is_taken_over Claude,
    a_codex_in_a_terminal_is_taken_over Codex,
    an_opencode_in_a_terminal_is_taken_over Opencode,
);

#[test]
fn adopt_says_that_a_gemini_in_a_terminal_cannot_be_detected() {
    let Some(fixture) = Fixture::new(Agent::Gemini) else { return };
    let _person = at_a_terminal(&fixture);
    let chats = |project: PathBuf| std::fs::read_dir(project.join("chats")).into_iter().flatten().flatten();
    let tmp = fixture.harness.root().join("home/.gemini/tmp");
    let file = patience::until("its file is there", &[&tmp], || {
        let projects = std::fs::read_dir(&tmp).ok()?.flatten().map(|entry| entry.path());
        let is_answered = |file: &PathBuf| std::fs::read_to_string(file).is_ok_and(|text| text.contains("word3"));
        projects.flat_map(chats).map(|entry| entry.path()).find(is_answered)
    });
    let adopted = fixture.harness.run(&["adopt", "-d", file.to_str().unwrap()]).exits(0);
    assert!(adopted.stderr.contains("gemini does not record which process has a conversation open"), "{adopted:?}");
    fixture.proves_impossible(TAKEN_OVER, "It leaves no trace of which process has a conversation open.");
}

#[test]
fn a_turn_that_takeover_cuts_off_leaves_no_tool_running() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let (tool, words) = fixture.endless_tool();
    let mut claude = outside(&fixture, one_turn(fixture.agent), &tool);
    let tool = fixture.process(words);
    is_on_disk(&fixture, "mkfifo gate");
    let home = fixture.harness.root().join("home");
    let id = patience::until("it is seen", &[&home], || {
        let listed = fixture.harness.run(&["ls", "--foreign", "--json"]).exits(0).json();
        listed[0]["native_id"].as_str().map(str::to_owned)
    });
    let adopted = fixture.harness.run(&["adopt", "-d", "--takeover", &id]).exits(0);
    assert!(adopted.stderr.contains(&format!("ended process {} (", claude.id())), "{adopted:?}");
    claude.wait().unwrap();
    assert!(!tool.may_live(), "the tool has ended with it");
    fixture.harness.run(&["resume", "@last", "say two"]).exits(0);
    assert!(fixture.last_request().contains("mkfifo gate"), "the prompt that was cut off is not lost");
}

#[test]
fn a_conversation_of_a_session_in_another_home_is_not_adopted() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let elsewhere = |words: &[&str]| {
        let mut command = fixture.harness.command(fixture.harness.program());
        command.args(words).env("OSTLER_HOME", fixture.harness.root().join("another")).current_dir(fixture.work());
        Started::new(command, None).finish()
    };
    let id = elsewhere(&["run", "-d", "--keep", "claude", "say one"]).exits(0).stdout;
    let id = id.trim_end();
    elsewhere(&["wait", "--until", "turn", id]).exits(0);
    let shown = elsewhere(&["show", "--json", id]).exits(0).json();
    let native_id = shown["native_id"].as_str().unwrap();
    // Claude writes its transcript a little late.
    let transcript = PathBuf::from(shown["transcript"].as_str().unwrap());
    patience::until("its transcript is on disk", &[&fixture.harness.root().join("home")], || {
        transcript.exists().then_some(())
    });
    for flags in [&["adopt"][..], &["adopt", "--takeover"]] {
        let refused = fixture.harness.run(&[flags, &[native_id]].concat()).exits(7);
        assert!(refused.complaint().contains(&format!("session {id} in ")), "{refused:?}");
    }
    assert_eq!(fixture.harness.ls().len(), 0);
    elsewhere(&["stop", id]).exits(0);
}
