//! Agents that do not record their running processes are found by their locks and by the files that they hold open.

use crate::one_home::OneHome;
use ostler_mock_llm::agents::Agent;

#[test]
fn a_foreign_codex_is_named_by_its_lock_until_it_is_killed() {
    let Some(home) = OneHome::new(Agent::Codex) else { return };
    let mut foreign = home.start(&["exec", "--json", "--skip-git-repo-check", "-"], "hang");
    foreign.end_prompt();
    home.asked();
    let shown = home.until_foreign(&foreign);
    assert_eq!((shown["agent"].as_str(), shown["known_by"].as_str()), (Some("codex"), Some("lock")));
    let native_id = shown["native_id"].as_str().unwrap();
    assert_eq!(home.who(native_id), [(foreign.pid(), false)]);
    foreign.kill();
    assert_eq!(home.foreign(&foreign), None);
    assert_eq!(home.who(native_id), []);
    ostler_testkit::proves("codex", "foreign: named with its process, gone when it is");
}

#[test]
fn a_foreign_opencode_is_named_while_it_holds_its_database() {
    let Some(home) = OneHome::new(Agent::Opencode) else { return };
    let mut foreign = home.start(&["run", "--format", "json"], "hang");
    foreign.end_prompt();
    home.asked();
    let shown = home.until_foreign(&foreign);
    assert_eq!((shown["agent"].as_str(), shown["known_by"].as_str()), (Some("opencode"), Some("open_file")));
    assert!(shown["native_id"].is_null(), "which of its conversations it uses cannot be seen from outside");
    assert_eq!(shown["cwd"], home.work().to_str().unwrap());
    foreign.kill();
    assert_eq!(home.foreign(&foreign), None);
    ostler_testkit::proves("opencode", "foreign: named with its process, gone when it is");
}
