//! Each copy of a session works on one prompt. The results come back as one message, sent once, whichever process is
//! killed.

use crate::repo::Repo;
use crate::{shown, told};
use ostler_testkit::{Killer, ProcessKind, patience};

const PROMPTS: [&str; 5] = ["say one", "say two", "say three", "say four", "say five"];
const ANSWERS: [&str; 5] = ["one", "two", "three", "four", "five"];

/// The session that is copied.
fn original(repo: &Repo) -> String {
    repo.ostler(&["run", "--name", "origin", "demo", "say the beginning"]).exits(0);
    shown(repo, "origin")["id"].as_str().unwrap().to_owned()
}

/// Fails unless each copy was made once and got its prompt once, and the original session got one message with all
/// results.
#[track_caller]
fn made_and_sent_once(repo: &Repo, id: &str, prompts: &[String]) {
    let children: Vec<String> = shown(repo, id)["children"]
        .as_array()
        .unwrap()
        .iter()
        .map(|child| child.as_str().unwrap().to_owned())
        .filter(|child| shown(repo, child)["job"].is_null())
        .collect();
    let mut got: Vec<Vec<String>> = children.iter().map(|child| told(repo, child)).collect();
    got.sort();
    let mut expected: Vec<Vec<String>> = prompts.iter().map(|prompt| vec![prompt.clone()]).collect();
    expected.sort();
    assert_eq!(got, expected, "one copy for each prompt, which gets it once");
    let messages = told(repo, id);
    assert_eq!(messages.len(), 2, "{messages:?}");
    for (prompt, answer) in prompts.iter().zip(ANSWERS) {
        assert!(messages[1].contains(&format!("<prompt>\n{prompt}\n</prompt>\n{answer}\n")), "{}", messages[1]);
    }
}

#[test]
fn the_results_come_back_as_one_message() {
    let repo = Repo::new();
    let id = original(&repo);
    let ended = repo.ostler(&[&["fan", "origin"], &PROMPTS[..]].concat()).exits(0);
    assert!(ended.stdout.ends_with(&format!("5 of 5 copies succeeded, {id} has replied\n")), "{ended:?}");
    made_and_sent_once(&repo, &id, &PROMPTS.map(str::to_owned));
    // The copies are children of the job and are listed below it.
    let listed = repo.ostler(&["ls", "-a"]).exits(0).stdout;
    assert_eq!(listed.matches('└').count(), 5, "{listed}");
    let all = repo.ostler(&["ls", "-a", "--json"]).exits(0).json();
    let job =
        all.as_array().unwrap().iter().find(|one| one["job"] == "fan").unwrap()["id"].as_str().unwrap().to_owned();
    assert_eq!(shown(&repo, &job)["children"].as_array().unwrap().len(), 5);
    // The copies have the conversation so far.
    let copy = shown(&repo, &id)["children"][0].as_str().unwrap().to_owned();
    let transcript = std::fs::read_to_string(shown(&repo, &copy)["transcript"].as_str().unwrap()).unwrap();
    assert!(transcript.contains("say the beginning"), "{transcript}");
}

#[test]
fn one_copy_is_called_one() {
    let repo = Repo::new();
    let id = original(&repo);
    repo.ostler(&["fan", "origin", "say one"]).exits(0);
    let all = repo.ostler(&["ls", "-a", "--json"]).exits(0).json();
    let job = all.as_array().unwrap().iter().find(|one| one["job"] == "fan").unwrap();
    assert_eq!(job["title"], format!("1 copy of {id}"));
}

#[test]
fn a_copy_that_fails_is_reported_and_fails_the_job() {
    let repo = Repo::new();
    let id = original(&repo);
    let ended = repo.ostler(&["fan", "origin", "say one", "fail on purpose"]).exits(1);
    assert!(ended.stdout.ends_with(&format!("1 of 2 copies succeeded, {id} has replied\n")), "{ended:?}");
    assert!(told(&repo, &id)[1].contains("outcome=\"failed"), "{:?}", told(&repo, &id));
}

/// How many processes of the job are killed while its copies work, before the kills at each step.
const KILLS: usize = 12;
/// How many of its processes at least are killed at a step.
const KILLS_AT_STEPS: usize = 4;

#[test]
fn killed_drivers_and_helpers_copy_and_send_once() {
    let repo = Repo::new();
    let id = original(&repo);
    // The copies work until the file `gate` exists. Their answer is the second line of the prompt.
    let gate = repo.harness.root().join("gate");
    let prompts =
        ANSWERS.map(|answer| format!("run-line until test -e {}; do sleep 0.05; done\n{answer}", gate.display()));
    let mut words = vec!["fan", "origin"];
    words.extend(prompts.iter().map(String::as_str));
    // The command that follows the job continues it when its driver, holder and keeper were killed together.
    let follower = repo.start_in(&repo.folder, &words);
    let job = patience::until("the job is there", &[repo.harness.root()], || {
        Some(repo.harness.ls().into_iter().find(|one| one.agent == "job")?.id)
    });
    let mut killer = Killer::new(0x6661_6e00, 150);
    killer.kill_up_to(&repo.harness, KILLS, || !follower.runs(), |one| one.id == job);
    std::fs::write(&gate, "").unwrap();
    // Then one kill for each step that is noted, whether or not the other processes that were killed have replacements
    // yet.
    let session = repo.harness.session(&job);
    let record = session.path().join("job.jsonl");
    let (mut kills, mut size) = (0, 0);
    patience::until("the job has ended", &[repo.harness.root(), &session.path()], || {
        let now = std::fs::metadata(&record).map_or(0, |file| file.len());
        let who = [ProcessKind::Agent, ProcessKind::Keeper, ProcessKind::Agent, ProcessKind::Holder][kills % 4];
        if now > size && session.kill_if_alive(who) {
            size = now;
            kills += 1;
        }
        (!follower.runs()).then_some(())
    });
    let ended = follower.finish().exits(0);
    assert!(ended.stdout.ends_with(&format!("5 of 5 copies succeeded, {id} has replied\n")), "{ended:?}");
    assert_eq!(killer.killed().len(), KILLS);
    assert!(kills >= KILLS_AT_STEPS, "only {kills} kills at steps");
    made_and_sent_once(&repo, &id, &prompts);
    let mut lines: Vec<&str> = ended.stdout.lines().collect();
    let said = lines.len();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), said, "each line is printed once: {ended:?}");
}

#[test]
fn what_cannot_be_copied_is_refused() {
    let repo = Repo::new();
    repo.ostler(&["run", "--name", "command", "--", "true"]).exits(0);
    repo.ostler(&["fan", "command", "say one"]).exits(2).complaint();
    original(&repo);
    repo.ostler(&["fan", "origin", " "]).exits(2).complaint();
    assert_eq!(repo.ostler(&["ls", "-a", "--json"]).exits(0).json().as_array().unwrap().len(), 2);
}
