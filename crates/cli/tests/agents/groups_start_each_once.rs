//! A group of six real agents, while its driver, its keepers, its holders and two of its agents are killed. The model's
//! record shows how often each prompt was asked.

use crate::fixture::Fixture;
use ostler_mock_llm::Request;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{Killed, Killer, ProcessKind, held, times};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Claude and codex in one home, in a repository with one commit.
fn both() -> Option<Fixture> {
    let mut fixture = Fixture::new(Agent::Claude)?;
    let home = fixture.harness.root().join("home");
    let path = fixture.harness.variable("PATH").unwrap().into_string().unwrap();
    let program = Agent::Codex.program().ok()?.last().unwrap().clone();
    for (name, value) in Agent::Codex.furnish(&home, &fixture.server.url()).unwrap() {
        fixture.harness.set(name, value);
    }
    // A proxy address at which no process listens keeps codex from the network. Claude would send its requests there as
    // well.
    fixture.harness.set("NO_PROXY", "127.0.0.1");
    fixture.harness.set("PATH", format!("{}:{path}", program.parent().unwrap().display()));
    commit_all(&fixture);
    Some(fixture)
}

/// Makes the working directory a repository with one commit.
pub fn commit_all(fixture: &Fixture) {
    let work = fixture.work();
    std::fs::write(work.join("a.txt"), "one\n").unwrap();
    for words in [
        &["config", "--global", "user.name", "A Person"][..],
        &["config", "--global", "user.email", "person@example.com"],
        &["init", "--quiet", "--initial-branch", "main"],
        &["add", "--all"],
        &["commit", "--quiet", "--message", "first"],
    ] {
        let output = fixture.harness.command("git").current_dir(&work).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
    }
}

#[test]
fn six_agents_are_asked_once_each_whatever_is_killed() {
    let Some(fixture) = both() else { return };
    let harness = &fixture.harness;
    let file = harness.root().join("six.toml");
    std::fs::write(
        &file,
        "agent = ['claude', 'codex']\nn = [1, 2, 3]\nprompt = 'say member {{agent}} {{n}} (held 1)'\n",
    )
    .unwrap();
    let work = fixture.work();
    let words = ["run", "-d", "--cwd", work.to_str().unwrap(), "--name", "six", "--matrix", file.to_str().unwrap()];
    let job = harness.run(&words).exits(0).stdout.trim_end().to_owned();
    let count = times(20, 50);
    let mut killer = Killer::new(0x5eed, 350);
    // Not more than two members may lose their agent: a killed member is not asked again. A member that loses both
    // helpers at once has lost its input, so it counts as well; on a busy machine a helper may not be replaced yet when
    // the other one is chosen.
    let is_last_helper = |one: &Killed| {
        let other = match one.who {
            ProcessKind::Agent => return false,
            ProcessKind::Holder => ProcessKind::Keeper,
            ProcessKind::Keeper => ProcessKind::Holder,
        };
        !harness.session(&one.id).recorded_if_there(other).is_some_and(|helper| helper.may_live())
    };
    let hit = RefCell::new(BTreeSet::new());
    let may = |one: &Killed| {
        let mut hit = hit.borrow_mut();
        let cuts_off = one.together || one.who == ProcessKind::Agent || is_last_helper(one);
        if one.id == job || !cuts_off || hit.contains(&one.id) {
            return true;
        }
        // This is called for every candidate. A member that is entered here counts as one of the two, even if it is not
        // killed.
        if hit.len() < 2 { hit.insert(one.id.clone()) } else { false }
    };
    killer.kill_up_to(harness, count, || harness.session(&job).look().ended, may);
    fixture.server.release(1);
    assert_eq!(killer.killed().len(), count);
    let kills = killer.counted();
    let ended = harness.run(&["wait", &job]);
    let compared = harness.run(&["compare", "six", "--json"]).exits(0).json();
    let members = compared.as_array().unwrap();
    let names: BTreeSet<&str> = members.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!((members.len(), names.len()), (6, 6), "{compared}");
    let (mut all_asked, mut succeeded) = (0, 0);
    for member in members {
        let (agent, name) = (member["agent"].as_str().unwrap(), member["name"].as_str().unwrap());
        let prompt = format!("say member {agent} {} (held 1)", name.rsplit('-').next().unwrap());
        let first = |request: &&Request| {
            request.turn().is_some_and(|turn| turn.answers == 0 && turn.user_messages.contains(&prompt))
        };
        let asked = fixture.server.requests().iter().filter(first).count();
        all_asked += asked;
        if member["status"] == "succeeded" {
            assert_eq!(asked, 1, "{prompt:?}; killed: {kills}; {member}");
            succeeded += 1;
        } else {
            assert!(asked <= 1, "{prompt:?} was asked {asked} times; killed: {kills}");
            let killed = hit.borrow().contains(member["id"].as_str().unwrap());
            assert!(killed, "{prompt:?} was not killed; killed: {kills}; {member}");
        }
    }
    assert!(succeeded >= 4, "killed: {kills}; {compared}");
    assert_eq!(ended.code, Some(i32::from(succeeded < 6)), "{ended:?}");
    let seen = format!("seed {:#x}: {kills}; {all_asked} times asked, {succeeded} of 6 succeeded", killer.seed());
    held("SIGKILL in a group of 6, claude and codex", count, &seen);
    ostler_testkit::proves("claude", "a group of six, killed at random: every prompt reaches the model once");
    ostler_testkit::proves("codex", "a group of six, killed at random: every prompt reaches the model once");
}
