//! The sessions of a group wait in a queue, and each has the limits of its own agent.

use crate::repo::Repo;
use crate::starting::members;
use ostler_core::view::Phase;
use ostler_testkit::{ProcessKind, patience};
use serde_json::Value;

/// Takes the only slot until the gate is written to.
fn block(repo: &Repo) {
    let gate = repo.harness.root().join("gate");
    assert!(repo.harness.command("mkfifo").arg(&gate).status().unwrap().success());
    let words = ["run", "-d", "--queue=q", "--", "sh", "-c", "read -r _ < \"$1\"", "sh", gate.to_str().unwrap()];
    let id = repo.ostler(&words).exits(0).stdout;
    // Before the blocker has the slot, a session with a higher priority would get it.
    repo.harness.session(id.trim()).until_look("the blocker runs", |view| view.state == Phase::Running);
}

fn release(repo: &Repo) {
    std::fs::write(repo.harness.root().join("gate"), "go\n").unwrap();
}

#[test]
fn members_start_when_the_queue_has_a_slot_and_by_their_priority() {
    let repo = Repo::new();
    repo.harness.configure("[queues.q]\nslots = 1\n");
    block(&repo);
    let log = repo.harness.root().join("log");
    let say = |word: &str| format!("run-command echo {word} >> {}", log.display());
    let low = repo.ostler(&["run", "-d", "--queue=q", "demo", &say("low")]).exits(0).stdout.trim().to_owned();
    // Each member has the slot while it works: if two worked at once, `mkdir` would fail.
    let alone = repo.harness.root().join("alone");
    let prompt = format!("{} && mkdir {folder} && sleep 0.2 && rmdir {folder}", say("high"), folder = alone.display());
    let asked = ["run", "-d", "--on", "demo:3", &prompt, "--name", "g", "--queue", "q", "--priority", "5"];
    repo.ostler(&asked).exits(0);
    let sessions = repo.harness.home().join("sessions");
    let waiting = patience::until("three are queued", &[&sessions], || {
        let found = members(&repo, "g");
        (found.len() == 3 && found.iter().all(|one| one["state"] == "queued")).then_some(found)
    });
    for one in &waiting {
        let queue = &one["waits"]["queue"];
        assert_eq!((&queue["name"], &queue["priority"]), (&"q".into(), &5.into()), "{one}");
    }
    assert!(!log.exists());
    release(&repo);
    let waited = repo.ostler(&["wait", "g", &low]);
    assert_eq!(waited.code, Some(0), "{waited:?}");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "high\nhigh\nhigh\nlow\n");
    assert!(members(&repo, "g").iter().all(|one| one["status"] == "succeeded"));
    let refused = repo.ostler(&["run", "--on", "demo", "say x", "--queue=nosuch"]).exits(2);
    assert!(refused.complaint().contains("there is no queue \"nosuch\""), "{refused:?}");
}

#[test]
fn queued_members_continue_with_their_group_after_everything_was_killed() {
    let repo = Repo::new();
    repo.harness.configure("[queues.q]\nslots = 1\n");
    block(&repo);
    let job = repo.ostler(&["run", "-d", "--on", "demo:2", "say hello", "--name", "g", "--queue", "q"]).exits(0).stdout;
    let queued = patience::until("both are queued", &[&repo.harness.home().join("sessions")], || {
        let found = members(&repo, "g");
        (found.len() == 2 && found.iter().all(|one| one["state"] == "queued")).then_some(found)
    });
    let ids: Vec<&str> = queued.iter().map(|one| one["id"].as_str().unwrap()).collect();
    for id in [job.trim()].iter().chain(&ids) {
        repo.harness.session(id).kill_together(&[ProcessKind::Agent, ProcessKind::Keeper, ProcessKind::Holder]);
    }
    let said = repo.ostler(&["recover"]).exits(0).stdout;
    assert_eq!(said, format!("g ({}): continued (a job)\n", job.trim()), "the job continues its members itself");
    patience::until("both are queued again", &[&repo.harness.home().join("sessions")], || {
        members(&repo, "g").iter().all(|one| one["state"] == "queued").then_some(())
    });
    release(&repo);
    let waited = repo.ostler(&["wait", "g"]);
    assert_eq!(waited.code, Some(0), "{waited:?}");
    for one in members(&repo, "g") {
        assert_eq!((&one["status"], &one["turns"]), (&"succeeded".into(), &1.into()), "{one}");
    }
}

#[test]
fn a_member_whose_processes_are_all_killed_continues_with_restart_and_is_lost_without() {
    let repo = Repo::new();
    for (restarts, status) in [(true, "succeeded"), (false, "lost")] {
        let (marker, gate) = (repo.harness.root().join(status), repo.harness.root().join(format!("gate-{status}")));
        // Not a pipe: a member that continues ends what its last run left, and then no process would read from the
        // pipe.
        let waits = format!("until test -e {}; do sleep 0.05; done", gate.display());
        let once = format!("test -e {0} || {{ echo > {0}; {waits}; }}", marker.display());
        let prompt = format!("run-command {once}");
        let mut words = vec!["run", "-d", "--on", "demo", &prompt, "--name", status];
        words.extend(restarts.then_some("--restart=on-failure"));
        repo.ostler(&words).exits(0);
        patience::until("it works", &[repo.harness.root()], || marker.exists().then_some(()));
        let id = members(&repo, status)[0]["id"].as_str().unwrap().to_owned();
        repo.harness.session(&id).kill_together(&[ProcessKind::Agent, ProcessKind::Keeper, ProcessKind::Holder]);
        // The member's tool ends by itself.
        std::fs::write(&gate, "").unwrap();
        repo.ostler(&["wait", status]).exits(if restarts { 0 } else { 1 });
        assert_eq!(members(&repo, status)[0]["status"], status);
    }
}

#[test]
fn a_group_waits_for_another_session_before_it_starts_its_members() {
    let repo = Repo::new();
    repo.harness.configure("[queues.q]\nslots = 1\n");
    block(&repo);
    let first = repo.ostler(&["run", "-d", "--queue=q", "demo", "say one"]).exits(0).stdout.trim().to_owned();
    repo.ostler(&["run", "-d", "--on", "demo:2", "say two", "--name", "g", "--after", &first]).exits(0);
    assert_eq!(repo.ostler(&["show", "--json", "g"]).exits(0).json()["state"], "queued");
    assert!(members(&repo, "g").is_empty());
    release(&repo);
    repo.ostler(&["wait", "g"]).exits(0);
    assert_eq!(members(&repo, "g").len(), 2);
}

#[test]
fn each_member_has_the_limits_of_its_own_agent() {
    let repo = Repo::new();
    repo.harness.configure(
        "[agents.demo]\ntimeout = \"1h\"\nmax_turns = 7\n\
         [agents.mine]\ncommand = [\"false\"]\nprotocol = \"acp\"\ntimeout = \"2h\"\n",
    );
    repo.ostler(&["run", "--on", "mine,demo", "say x", "--name", "g", "--turn-timeout", "5m"]);
    let found = members(&repo, "g");
    let rules = |agent: &str| -> Value {
        let one = found.iter().find(|one| one["name"] == format!("g-{agent}")).unwrap();
        let file = repo.harness.home().join("sessions").join(one["id"].as_str().unwrap()).join("session.json");
        serde_json::from_slice::<Value>(&std::fs::read(file).unwrap()).unwrap()["rules"].clone()
    };
    let (mine, demo) = (rules("mine"), rules("demo"));
    assert_eq!((&mine["timeout_ms"], &demo["timeout_ms"]), (&7_200_000.into(), &3_600_000.into()), "{mine} {demo}");
    assert_eq!((&mine["max_turns"], &demo["max_turns"]), (&Value::Null, &7.into()), "{mine} {demo}");
    assert!([mine, demo].iter().all(|rules| rules["turn_timeout_ms"] == 300_000));
}
