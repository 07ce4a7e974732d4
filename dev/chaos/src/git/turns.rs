//! Turns of a session in a tree of its own: what each turn has written is in the tree or in a snapshot after every
//! fault.

use super::fault::kill;
use super::operation::Operation;
use super::world::World;
use ostler_sys::process::{Identity, command_line};
use ostler_testkit::{Started, patience};
use serde_json::Value;
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The contents of a session's file at the end of a turn.
fn text(name: &str, turn: u32) -> String {
    format!("turn {turn} of {name}\n")
}

/// What a person has written there, outside of any turn.
fn unfinished(name: &str) -> String {
    format!("a person in {name}\n")
}

/// The message of a turn: it changes its file and some others, makes new ones and deletes those of the turn before.
#[must_use]
pub fn turn(name: &str, turn: u32) -> String {
    format!(
        "run-command printf 'turn {turn} of {name}\\n' > turn.txt; rm -f many/before-*; \
         for n in $(seq 40); do seq $n {turn}500 > many/$n.txt; seq $n 30{turn} > many/before-{turn}-$n.txt; done; \
         echo {turn} > ignored.tmp"
    )
}

impl World {
    /// A session that has had two turns; for undoing, also a rewind to the first.
    pub fn prepare_turns(&mut self, operation: Operation, name: &str) {
        self.run(&["run", "-w", name, "demo", &turn(name, 1)]).exits(0);
        self.until_noted(name, 1);
        self.run(&["resume", name, &turn(name, 2)]).exits(0);
        self.until_noted(name, 2);
        self.work.borrow_mut().extend([text(name, 1), text(name, 2)]);
        if operation != Operation::Snapshot {
            std::fs::write(self.tree(name).join("person.txt"), unfinished(name)).expect("a file");
            self.work.borrow_mut().push(unfinished(name));
        }
        if operation == Operation::Undo {
            self.run(&["rewind", name, "--turn", "1", "--files"]).exits(0);
        }
    }

    fn tree(&self, name: &str) -> PathBuf {
        self.folder.join(".worktrees").join(name)
    }

    fn session_of(&self, name: &str) -> String {
        let shown = self.run(&["show", "--json", name]).exits(0).json();
        shown["id"].as_str().expect("an id").to_owned()
    }

    /// The commits of the snapshots at the end of turns, with their turns.
    fn snapshots(&self, id: &str) -> Vec<(u64, String)> {
        let file = self.harness.home().join("sessions").join(id).join("turns.jsonl");
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let ended = lines.filter(|line| line["what"] == "ended");
        ended.filter_map(|line| Some((line["turn"].as_u64()?, line["commit"].as_str()?.to_owned()))).collect()
    }

    fn until_noted(&self, name: &str, turn: u64) {
        let id = self.session_of(name);
        let folder = self.harness.home().join("sessions").join(&id);
        patience::until("a snapshot is noted", &[&folder], || {
            self.snapshots(&id).iter().any(|(noted, _)| *noted == turn).then_some(())
        });
    }

    /// Processes that take a snapshot.
    fn snapshotting(&self) -> Vec<Identity> {
        let takes = |process: &Identity| command_line(process.pid()).get(1).is_some_and(|word| word == "__turn");
        self.harness.alive().into_iter().filter(takes).collect()
    }

    /// Kills a process that takes a snapshot: at the end of the turn or at its start.
    pub(super) fn kill_snapshot(&self, after: Duration, started: &Started) -> bool {
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut ended = false;
        while !ended && Instant::now() < deadline {
            // Checked once more after the command has exited: the last snapshot is taken then.
            ended = !started.process().may_live();
            if let Some(process) = self.snapshotting().first() {
                patience::let_pass(after);
                return kill(process);
            }
        }
        false
    }

    /// Waits until the session has ended, and its snapshots are taken or given up.
    pub fn let_turns_end(&self) {
        self.run(&["wait", &self.names.0]);
        patience::until("no snapshot is being taken", &[], || self.snapshotting().is_empty().then_some(()));
    }

    /// Waits until a session waits because of a full disk, or the command has exited.
    pub(super) fn until_held_or_over(&self, started: &Started) {
        patience::until("the disk is full for it, or it is over", &[], || {
            let shown = || self.run(&["ls", "--json"]).stdout;
            (!started.process().may_live() || shown().contains("the disk is full")).then_some(())
        });
    }

    fn stores(&self) -> Vec<PathBuf> {
        let folders = std::fs::read_dir(self.harness.home().join("turns")).into_iter().flatten().flatten();
        folders.map(|folder| folder.path()).filter(|path| path.join("HEAD").exists()).collect()
    }

    /// Every store of snapshots is intact, and has what is noted to be in it.
    pub fn judge_stores(&self, what: &str) {
        for store in self.stores() {
            let git_dir = format!("--git-dir={}", store.display());
            let whole = self.git_in(&self.folder, &[&git_dir, "fsck", "--no-dangling", "--full"]);
            assert_eq!(whole.code, Some(0), "{what}: the snapshots are broken: {whole:?}");
            let id = store.file_name().expect("a name").to_string_lossy().into_owned();
            let references = self.git_in(&self.folder, &[&git_dir, "for-each-ref", "--format=%(objectname)"]).exits(0);
            for (turn, commit) in self.snapshots(&id) {
                let kept = references.stdout.lines().any(|line| line == commit);
                assert!(kept, "{what}: the snapshot {commit} of turn {turn} of {id} is gone");
            }
        }
    }

    /// All objects that snapshots have.
    pub fn in_stores(&self) -> HashSet<String> {
        let mut found = HashSet::new();
        for store in self.stores() {
            let git_dir = format!("--git-dir={}", store.display());
            let listed = self.git_in(&self.folder, &[&git_dir, "rev-list", "--objects", "--all"]).exits(0).stdout;
            found.extend(listed.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned));
        }
        found
    }

    /// After the operation was repeated without a fault: the files are as the operation leaves them, and each turn can
    /// be restored.
    pub fn judge_repeated_turns(&self, operation: Operation, what: &str) {
        self.let_turns_end();
        let (name, tree) = (self.names.0.as_str(), self.tree(&self.names.0));
        let read = |file: &str| std::fs::read_to_string(tree.join(file)).unwrap_or_default();
        let id = self.session_of(name);
        let git_dir = format!("--git-dir={}", self.harness.home().join("turns").join(&id).display());
        let (wanted, person) = match operation {
            Operation::Snapshot => (text(name, 3), String::new()),
            Operation::Rewind => (text(name, 1), unfinished(name)),
            _ => (text(name, 2), unfinished(name)),
        };
        {
            let names = std::fs::read_dir(tree.join("many")).into_iter().flatten().flatten();
            let names: Vec<String> = names.map(|name| name.file_name().to_string_lossy().into_owned()).collect();
            let of = |turn: u32| names.iter().filter(|name| name.starts_with(&format!("before-{turn}-"))).count();
            assert!((1..=3).all(|turn| [0, 40].contains(&of(turn))), "{what}: of two turns: {names:?}");
        }
        assert_eq!(read("turn.txt"), wanted, "{what}");
        // A rewind removes what no turn has written, and undoing restores it.
        if operation != Operation::Rewind {
            assert_eq!(read("person.txt"), person, "{what}");
        }
        let snapshots = self.snapshots(&id);
        for (turn, commit) in &snapshots {
            let shown = self.git_in(&self.folder, &[&git_dir, "cat-file", "-p", &format!("{commit}:turn.txt")]);
            let known = (1..=3).map(|turn| text(name, turn)).any(|text| text == shown.stdout);
            // On a full disk a turn may have written nothing.
            assert!(known || shown.stdout.is_empty(), "{what}: turn {turn}: {shown:?}");
            if *turn <= 2 {
                assert_eq!(shown.stdout, text(name, u32::try_from(*turn).unwrap_or(0)), "{what}: turn {turn}");
            }
        }
        if operation == Operation::Snapshot {
            let newest = snapshots.last().expect("snapshots");
            let shown = self.git_in(&self.folder, &[&git_dir, "cat-file", "-p", &format!("{}:turn.txt", newest.1)]);
            assert_eq!(shown.stdout, wanted, "{what}: the newest snapshot is that of turn {}", newest.0);
        }
        // In both directions, after any fault.
        for (turn, words) in [(2, "2"), (1, "1")] {
            let rewound = self.run(&["rewind", name, "--turn", words, "--files"]);
            assert_eq!(rewound.code, Some(0), "{what}: {rewound:?}");
            assert_eq!(read("turn.txt"), text(name, turn), "{what}: rewound to turn {turn}");
        }
        let left = self.git_in(&tree, &["rev-parse", "--git-dir"]).exits(0).stdout;
        let left = tree.join(left.trim_end()).join("ostler.rewind");
        assert!(!left.exists(), "{what}: {} is left", left.display());
    }
}
