//! A review cannot write, even with an agent whose settings allow everything: the agent's own read-only mode prevents
//! it.

use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;
use serde_json::json;
use std::path::Path;

/// Makes a repository with a session that has changed a file in its own worktree. Returns the path of that worktree.
fn reviewed(fixture: &Fixture) -> std::path::PathBuf {
    let work = fixture.work();
    std::fs::write(work.join("a.txt"), "one\n").unwrap();
    let git = |words: &[&str]| {
        let mut command = fixture.harness.command("git");
        command.current_dir(&work).args(["-c", "user.name=A", "-c", "user.email=a@localhost"]).args(words);
        ostler_testkit::Started::new(command, None).finish().exits(0);
    };
    git(&["init", "--quiet", "--initial-branch", "main"]);
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message", "first"]);
    let folder = work.to_str().unwrap();
    let prompt = "run-command echo two >> a.txt";
    fixture.harness.run(&["run", "-w", "--name", "work", "--cwd", folder, "demo", prompt]).exits(0);
    work.join(".worktrees/work")
}

/// Writes settings in which the user has allowed everything.
fn allow_everything(agent: Agent, home: &Path) {
    let write = |name: &str, text: String| {
        let file = home.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    let read = |name: &str| std::fs::read_to_string(home.join(name)).unwrap_or_default();
    match agent {
        Agent::Claude => {
            let settings = json!({"permissions": {"allow": ["Bash", "Write", "Edit"], "defaultMode": "acceptEdits"}});
            write(".claude/settings.json", settings.to_string());
        }
        Agent::Codex => {
            let settings = read(".codex/config.toml");
            write(".codex/config.toml", format!("sandbox_mode = \"danger-full-access\"\n{settings}"));
        }
        Agent::Gemini => {
            let mut settings: serde_json::Value = serde_json::from_str(&read(".gemini/settings.json")).unwrap();
            settings["tools"] = json!({"allowed": ["run_shell_command", "write_file", "replace"]});
            write(".gemini/settings.json", settings.to_string());
        }
        Agent::Qwen => {
            let mut settings: serde_json::Value = serde_json::from_str(&read(".qwen/settings.json")).unwrap();
            settings["tools"] = json!({"approvalMode": "yolo"});
            write(".qwen/settings.json", settings.to_string());
        }
        // Opencode allows everything by default.
        Agent::Opencode | Agent::ClaudeAcp | Agent::CodexAcp => {}
    }
}

/// The step of a script that writes a file with the agent's own tool, if it has one.
fn write_call(agent: Agent, file: &Path) -> Option<String> {
    let file = file.to_str().unwrap();
    let (name, arguments) = match agent {
        Agent::Claude | Agent::ClaudeAcp => ("Write", json!({"file_path": file, "content": "evil"})),
        Agent::Gemini | Agent::Qwen => ("write_file", json!({"file_path": file, "content": "evil"})),
        Agent::Opencode => ("write", json!({"filePath": file, "content": "evil"})),
        Agent::Codex | Agent::CodexAcp => return None,
    };
    Some(format!("tool {name} {arguments} ; "))
}

fn a_review_writes_nothing(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let tree = reviewed(&fixture);
    allow_everything(agent, &fixture.harness.root().join("home"));
    let shell = fixture.tool("echo evil > evil.txt; echo evil >> a.txt");
    let write = write_call(agent, &tree.join("written.txt")).unwrap_or_default();
    let prompt = fixture.harness.root().join("prompt.md");
    let said = json!({"verdict": "pass", "findings": [{"file": "a.txt", "line": 2, "text": "fine"}]});
    std::fs::write(&prompt, format!("{shell} ; {write}say {said} ; say")).unwrap();
    let review =
        fixture.harness.run(&["review", "work", "--json", "--by", agent.name(), "--prompt", prompt.to_str().unwrap()]);
    let review = review.exits(0).json();
    assert_eq!((review["verdict"].as_str(), &review["reason"]), (Some("pass"), &serde_json::Value::Null), "{review}");
    assert_eq!(std::fs::read_to_string(tree.join("a.txt")).unwrap(), "one\ntwo\n");
    for name in ["evil.txt", "written.txt"] {
        assert!(!tree.join(name).exists(), "{name}");
    }
    // The task and the changes have reached the model.
    let told = fixture.last_request();
    assert!(told.contains("run-command echo two") && told.contains("+two"), "{told}");
    fixture.proves("review: reads, cannot write");
}

for_every_agent!(a_review_writes_nothing:
    a_review_by_claude_writes_nothing Claude,
    a_review_by_codex_writes_nothing Codex,
    a_review_by_gemini_writes_nothing Gemini,
    a_review_by_opencode_writes_nothing Opencode,
    a_review_by_qwen_writes_nothing Qwen,
);
