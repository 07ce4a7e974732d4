//! `ostler agents` lists every agent, installed or not.

use crate::harness_with;
use serde_json::Value;

#[test]
fn every_agent_is_listed_with_its_path_its_version_and_what_works() {
    let (harness, folder) = harness_with(&["claude", "codex"]);
    harness.configure("[agents.mine]\ncommand = ['cat', '-u']\nmode = 'terminal'\n");
    let listed = harness.run(&["agents", "--json"]).exits(0).json();
    let of = |name: &str| -> Value {
        listed.as_array().unwrap().iter().find(|agent| agent["name"] == name).cloned().unwrap_or_default()
    };
    assert_eq!(of("claude")["installed"], true);
    assert_eq!(of("claude")["version"], "7.8.9");
    assert_eq!(of("claude")["program"], folder.join("claude").to_str().unwrap());
    assert_eq!(of("claude")["messages"], "one_process");
    assert_eq!(of("codex")["messages"], "process_per_turn");
    assert_eq!(of("gemini")["installed"], false);
    assert_eq!(of("gemini")["npm_package"], "@google/gemini-cli");
    assert_eq!((&of("demo")["installed"], &of("demo")["own"]), (&true.into(), &false.into()));
    assert_eq!((&of("mine")["own"], &of("mine")["version"]), (&true.into(), &Value::Null));
    assert!(of("command").is_null(), "a command is not an agent");

    let words = harness.run(&["agents"]).exits(0).stdout;
    assert!(words.contains("not installed: npm install -g @google/gemini-cli"), "{words}");
    assert!(words.lines().any(|line| line.contains("claude") && line.contains("7.8.9")), "{words}");
}
