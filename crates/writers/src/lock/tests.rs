use super::*;
use std::path::Path;
use std::process::{Child, Command};

struct Fixture {
    _alone: std::sync::MutexGuard<'static, ()>,
    root: tempfile::TempDir,
    conversation: Conversation,
}

impl Fixture {
    fn new() -> Fixture {
        let alone = crate::alone();
        let root = tempfile::tempdir().unwrap();
        for folder in ["one", "two"] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
        }
        let conversation =
            Conversation { agent: "demo".to_owned(), config: root.path().to_owned(), native_id: "x".to_owned() };
        Fixture { _alone: alone, root, conversation }
    }

    fn writers(&self) -> Writers {
        let home = self.root.path().to_string_lossy().into_owned();
        Writers::open(&|name| (name == "HOME").then(|| home.clone())).unwrap()
    }

    /// The session in one of the two folders, with this agent; its helpers have exited.
    fn session(&self, folder: &str, agent: Option<&Identity>) -> Occupant {
        let dir = Folder::new(Dir::open(self.root.path().join(folder)).unwrap());
        let occupant = Occupant::new(&self.conversation, SessionId::from_random(1), &dir, agent.cloned()).unwrap();
        Occupant { helper: gone(), ..occupant }
    }

    fn is_free(&self) -> bool {
        self.writers().occupant(&self.conversation).unwrap().is_none()
    }
}

fn gone() -> Identity {
    serde_json::from_value(serde_json::json!({"pid": 4_000_000, "start": 1, "boot": "another"})).unwrap()
}

/// A process that has a copy of a file open, like an agent or its tool.
struct Process(Child, Identity);

impl Process {
    fn with(file: Option<&OwnedFd>) -> Process {
        let mut command = Command::new("sleep");
        command.arg("600");
        if let Some(file) = file {
            command.stdin(rustix::io::fcntl_dupfd_cloexec(file, 3).unwrap());
        }
        let child = command.spawn().unwrap();
        let who = Identity::of(i32::try_from(child.id()).unwrap()).unwrap().unwrap();
        Process(child, who)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // If the process has already exited, both calls only report that.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn take(fixture: &Fixture, me: &Occupant) -> Option<OwnedFd> {
    match fixture.writers().take(&fixture.conversation, me).unwrap() {
        Taken::Yes(file) => Some(file),
        Taken::No(_) | Taken::ByUnknown => None,
    }
}

#[test]
fn a_second_session_is_refused_by_name_of_the_first_until_that_is_gone() {
    let fixture = Fixture::new();
    let agent = Process::with(None);
    let first = fixture.session("one", Some(&agent.1));
    let held = take(&fixture, &first).unwrap();
    let refused = fixture.writers().take(&fixture.conversation, &fixture.session("two", None)).unwrap();
    let Taken::No(occupant) = refused else { panic_with(&refused) };
    assert_eq!(*occupant, first);
    let words = occupant.words();
    assert!(words.contains(&format!("process {} (", agent.1.pid())) && words.contains("since "), "{words}");
    assert!(words.contains(&fixture.root.path().join("one").display().to_string()), "{words}");
    drop((agent, held));
    assert!(take(&fixture, &fixture.session("two", None)).is_some());
}

#[expect(clippy::panic, reason = "a test that finds no value has failed")]
fn panic_with(what: &Taken) -> ! {
    panic!("{what:?}")
}

#[test]
fn a_reused_pid_does_not_block_the_conversation() {
    let fixture = Fixture::new();
    let agent = Process::with(None);
    let mut record = serde_json::to_value(&agent.1).unwrap();
    record["start"] = (agent.1.start() + 1).into();
    let before: Identity = serde_json::from_value(record).unwrap();
    let held = take(&fixture, &fixture.session("one", Some(&before))).unwrap();
    let _leaked = Process::with(Some(&held));
    assert!(take(&fixture, &fixture.session("two", None)).is_some());
}

#[test]
fn a_lock_that_was_dropped_protects_its_writer_as_long_as_it_lives() {
    let fixture = Fixture::new();
    let agent = Process::with(None);
    drop(take(&fixture, &fixture.session("one", Some(&agent.1))).unwrap());
    assert!(take(&fixture, &fixture.session("two", None)).is_none(), "the lock is free and the agent is not gone");
    drop(agent);
    assert!(take(&fixture, &fixture.session("two", None)).is_some());
}

#[test]
fn a_lock_leaked_into_a_tool_does_not_block_after_its_writer_has_exited() {
    let fixture = Fixture::new();
    let agent = Process::with(None);
    let held = take(&fixture, &fixture.session("one", Some(&agent.1))).unwrap();
    let tool = Process::with(Some(&held));
    drop(held);
    assert!(take(&fixture, &fixture.session("two", None)).is_none());
    drop(agent);
    let second = fixture.session("two", Some(&tool.1));
    let _held = take(&fixture, &second).unwrap();
    assert_eq!(fixture.writers().occupant(&fixture.conversation).unwrap(), Some(second), "and the new one is safe");
}

#[test]
fn in_another_pid_namespace_only_the_lock_counts() {
    let fixture = Fixture::new();
    let elsewhere = Occupant { namespace: "pid:[1]".to_owned(), ..fixture.session("one", Some(&gone())) };
    let held = take(&fixture, &elsewhere).unwrap();
    assert!(take(&fixture, &fixture.session("two", None)).is_none());
    drop(held);
    assert!(fixture.is_free());
}

#[test]
fn a_lock_without_a_record_counts_while_it_is_held() {
    let fixture = Fixture::new();
    let held = take(&fixture, &fixture.session("one", None)).unwrap();
    std::fs::write(fixture.root.path().join(".local/state/ostler/writers").join(fixture.conversation.file_name()), "?")
        .unwrap();
    let refused = fixture.writers().take(&fixture.conversation, &fixture.session("two", None)).unwrap();
    assert!(matches!(refused, Taken::ByUnknown), "{refused:?}");
    drop(held);
    assert!(take(&fixture, &fixture.session("two", None)).is_some());
}

#[test]
fn release_frees_it_despite_copies_and_never_another_sessions_lock() {
    let fixture = Fixture::new();
    let agent = Process::with(None);
    let held = take(&fixture, &fixture.session("one", Some(&agent.1))).unwrap();
    fixture.writers().release(&fixture.conversation, &held).unwrap();
    assert!(fixture.is_free());
    assert_eq!(fixture.writers().noted(&held).unwrap(), None, "and the process that still has it can tell");
    let second = fixture.session("two", Some(&agent.1));
    let _second = take(&fixture, &second).unwrap();
    fixture.writers().release(&fixture.conversation, &held).unwrap();
    assert_eq!(fixture.writers().occupant(&fixture.conversation).unwrap(), Some(second));
}

#[test]
fn only_the_session_that_lost_its_lock_can_take_it_again() {
    let fixture = Fixture::new();
    let agent = Process::with(None);
    let me = fixture.session("one", Some(&agent.1));
    drop(take(&fixture, &me).unwrap());
    let held = take(&fixture, &me).unwrap();
    assert!(take(&fixture, &fixture.session("two", None)).is_none());
    std::fs::remove_file(
        fixture.root.path().join(".local/state/ostler/writers").join(fixture.conversation.file_name()),
    )
    .unwrap();
    assert_eq!(fixture.writers().noted(&held).unwrap(), None, "deleted under it");
    assert!(take(&fixture, &me).is_some());
}

#[test]
fn of_many_concurrent_takers_exactly_one_gets_it() {
    let fixture = Fixture::new();
    let agent = Process::with(None);
    let taken = std::thread::scope(|scope| {
        let takers: Vec<_> = (0..50)
            .map(|number| {
                let me = Occupant { folder_id: (0, number), ..fixture.session("one", Some(&agent.1)) };
                let fixture = &fixture;
                scope.spawn(move || take(fixture, &me))
            })
            .collect();
        takers.into_iter().filter_map(|taker| taker.join().unwrap()).count()
    });
    assert_eq!(taken, 1);
}

#[test]
fn a_copied_home_is_another_session_and_a_moved_one_is_the_same() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.session("one", None), fixture.session("two", None));
    assert!(!one.is_same_session(&two));
    std::fs::rename(Path::new(&one.folder), fixture.root.path().join("moved")).unwrap();
    assert!(one.is_same_session(&fixture.session("moved", None)));
}
