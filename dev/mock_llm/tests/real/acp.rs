//! The Agent Client Protocol, used by two agents themselves and by two adapters: one prompt, with a tool and a reply.

use crate::fixture::Fixture;
use crate::running::Running;
use ostler_mock_llm::agents::Agent;
use rustix::process::Signal;
use serde_json::{Value, json};

fn call(agent: &mut Running, id: u64, method: &str, params: Value) {
    agent.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
}

/// The answer to the request with this id. Questions on the way are answered with the first option that allows.
fn answered(agent: &mut Running, id: u64, said: &mut String) -> Value {
    loop {
        let (_, message) = agent.until("message", |message| message["jsonrpc"] == "2.0");
        match message["method"].as_str() {
            Some("session/request_permission") => {
                let options = message["params"]["options"].as_array().unwrap();
                let allow = options.iter().find(|option| option["kind"] == "allow_once").unwrap();
                let outcome = json!({"outcome": "selected", "optionId": allow["optionId"]});
                agent.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": {"outcome": outcome}}));
            }
            Some("session/update") if message["params"]["update"]["sessionUpdate"] == "agent_message_chunk" => {
                said.push_str(
                    message.pointer("/params/update/content/text").and_then(Value::as_str).unwrap_or_default(),
                );
            }
            Some(_) => {}
            None if message["id"] == id => {
                assert!(message.get("error").is_none(), "{message}");
                return message["result"].clone();
            }
            None => {}
        }
    }
}

/// One session with one prompt.
fn converse(agent: Agent, arguments: &[&str], tool: &str) {
    let Some(fixture) = Fixture::for_agent(agent) else { return };
    let mut running = fixture.start(arguments);
    let mut said = String::new();
    call(&mut running, 1, "initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}));
    assert_eq!(answered(&mut running, 1, &mut said)["protocolVersion"], 1);
    call(&mut running, 2, "session/new", json!({"cwd": fixture.work(), "mcpServers": []}));
    let session = answered(&mut running, 2, &mut said)["sessionId"].clone();
    said.clear();
    let script = format!("tool {tool} ; say all done");
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": script}]});
    call(&mut running, 3, "session/prompt", prompt);
    let end = answered(&mut running, 3, &mut said);
    assert_eq!(end["stopReason"], "end_turn");
    assert!(said.ends_with("all done"), "{said:?}");
    assert_eq!(fixture.written("proof"), "ran\n", "{:?}", fixture.returned());
    assert_eq!(fixture.seen(), [script]);
    // The adapters keep running at the end of stdin; all exit on SIGTERM.
    running.signal(Signal::TERM);
    running.finish();
}

#[test]
fn gemini_speaks_it() {
    converse(Agent::Gemini, &["--acp"], r#"run_shell_command {"command":"echo ran > proof"}"#);
}

#[test]
fn opencode_speaks_it() {
    converse(Agent::Opencode, &["acp"], r#"bash {"command":"echo ran > proof","description":"proves it"}"#);
}

#[test]
fn the_adapter_of_claude_speaks_it() {
    converse(Agent::ClaudeAcp, &[], r#"Bash {"command":"echo ran > proof"}"#);
}

#[test]
fn the_adapter_of_codex_speaks_it() {
    // Its package contains no bubblewrap, without which its sandbox runs nothing.
    let unconfined = ["-c", "sandbox_mode=danger-full-access"];
    converse(Agent::CodexAcp, &unconfined, r#"exec_command {"cmd":"echo ran > proof"}"#);
}
