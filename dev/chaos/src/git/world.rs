//! A repository of a person with unfinished work, on a disk of its own, and sessions with work in their trees.

use super::operation::Operation;
use crate::random::Random;
use ostler_core::id::SessionId;
use ostler_store::home::Place;
use ostler_sys::process::Identity;
use ostler_testkit::{Harness, Output, SmallDisk, Started};
use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Large enough for everything.
const ROOM: &str = "96m";

/// Which git process is killed, and when. `both`: together with the process that has started it.
pub struct Order {
    /// The number of the process, or a word among its arguments.
    pub which: String,
    pub after_us: usize,
    pub both: bool,
}

/// The `git` that comes first on PATH. The process that the order names is killed after the given time, or at its end
/// if that comes first.
const GIT: &str = r#"#!/bin/sh
order=ROOT/order
if [ -e "$order" ]; then
    n=$(( $(cat ROOT/count 2>/dev/null || echo 0) + 1 ))
    echo $n > ROOT/count
    read which after both < "$order"
    hit=no
    case "$which" in
        [0-9]*) [ $n -eq $which ] && hit=yes ;;
        *) case " $* " in *" $which "*) hit=yes ;; esac ;;
    esac
    if [ $hit = yes ]; then
        rm "$order"
        REAL "$@" <&0 &
        git=$!
        sleep $after
        [ "$both" = both ] && kill -9 $PPID
        kill -9 $git
        wait $git
        kill -9 $$
    fi
fi
exec REAL "$@"
"#;

pub struct World {
    /// Dropped before the disk, on which it works.
    pub harness: Harness,
    pub folder: PathBuf,
    disk: SmallDisk,
    ballast: Option<PathBuf>,
    /// Every piece of work that was ever done, as the text of a file. Each text exists once.
    pub work: RefCell<Vec<String>>,
    /// The name of the tree that the operation is about, and the name for a new one.
    pub names: (String, String),
}

impl World {
    pub fn new(program: &Path) -> World {
        let disk = SmallDisk::mount(ROOM);
        let mut harness = Harness::new(&program.to_string_lossy());
        harness.keep_sessions_below(disk.path());
        let folder = disk.path().join("repo");
        put_shim(&mut harness);
        std::fs::create_dir(&folder).expect("a folder");
        let world = World {
            harness,
            folder,
            disk,
            ballast: None,
            work: RefCell::default(),
            names: (String::new(), String::new()),
        };
        for words in [
            &["config", "--global", "user.name", "A Person"][..],
            &["config", "--global", "user.email", "person@example.com"],
            &["config", "--global", "gc.auto", "0"],
            &["init", "--quiet", "--initial-branch", "main"],
        ] {
            world.git(words);
        }
        world.write("a.txt", "one\n");
        world.write("mine.txt", "mine\n");
        world.write(".gitignore", "*.tmp\n");
        for number in 0..60 {
            world.write(&format!("many/{number}.txt"), &format!("{number}\n").repeat(50));
        }
        world.git(&["add", "--all"]);
        world.git(&["commit", "--quiet", "--message", "first"]);
        world.git(&["branch", "other"]);
        // The person's unfinished work.
        world.write("mine.txt", "mine, unfinished\n");
        world.write("staged.txt", "staged\n");
        world.git(&["add", "staged.txt"]);
        world.write("new.txt", "new\n");
        world.run(&["run", "--name", "conversation", "demo", "say hello"]).exits(0);
        world
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    #[track_caller]
    pub fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.folder, arguments).exits(0).stdout.trim_end().to_owned()
    }

    pub fn git_in(&self, folder: &Path, arguments: &[&str]) -> Output {
        let mut command = self.harness.command("git");
        command.current_dir(folder).args(arguments);
        Started::new(command, None).finish()
    }

    pub fn run(&self, words: &[&str]) -> Output {
        self.start_words(words).finish()
    }

    fn start_words(&self, words: &[&str]) -> Started {
        let mut command = self.harness.command(self.harness.program());
        command.current_dir(&self.folder).args(words);
        Started::new(command, None)
    }

    /// Makes a tree with work in it, or without work where the operation needs that.
    pub fn prepare(&mut self, operation: Operation, number: u64, random: &mut Random) {
        let (name, new) = (format!("t{number}"), format!("n{number}"));
        if operation.is_of_turns() {
            self.prepare_turns(operation, &name);
            self.names = (name, new);
            return;
        }
        let texts: Vec<String> =
            (0..3).map(|part| format!("work {name} part {part} {}\n", random.below(1 << 30))).collect();
        let script = match operation {
            Operation::Remove | Operation::Collect => "true".to_owned(),
            _ => format!(
                "printf '%s' '{}' > {name}-committed.txt; git add .; git commit -qm work; printf '%s' '{}' > {name}-staged.txt; \
                 git add {name}-staged.txt; printf '%s' '{}' > {name}-new.txt; \
                 for n in $(seq 60); do seq $n 2000 > many/$n.txt; seq $n 999 > many/{name}-$n.txt; done",
                texts[0], texts[1], texts[2]
            ),
        };
        self.run(&["run", "-w", &name, "--", "sh", "-c", &script]).exits(0);
        if !matches!(operation, Operation::Remove | Operation::Collect) {
            self.work.borrow_mut().extend(texts);
        }
        self.names = (name, new);
    }

    pub fn start(&self, operation: Operation) -> Started {
        let words = operation.words(&self.names.0, &self.names.1);
        self.start_words(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// How long an operation usually takes, in microseconds.
    pub fn usual(&self, operation: Operation) -> usize {
        match operation {
            Operation::LandChecked => 900_000,
            Operation::Land | Operation::LandMerged | Operation::LandRebased => 500_000,
            Operation::Worktree | Operation::Fork | Operation::Remove | Operation::RemoveByForce => 200_000,
            Operation::Collect => 300_000,
            Operation::Snapshot => 400_000,
            Operation::Rewind | Operation::Undo => 150_000,
        }
    }

    pub fn fill_disk(&mut self, left: u64) {
        let ballast = self.disk.fill();
        let file = File::options().write(true).open(&ballast).expect("ballast");
        let size = file.metadata().expect("ballast").len();
        file.set_len(size.saturating_sub(left)).expect("less ballast");
        self.ballast = Some(ballast);
    }

    pub fn free_disk(&mut self) {
        if let Some(ballast) = self.ballast.take() {
            std::fs::remove_file(ballast).expect("no ballast");
        }
    }

    pub fn leave_lock(&self) {
        std::fs::write(self.folder.join(".git/index.lock"), "").expect("a lock");
    }

    pub fn person_removes_lock(&self) {
        std::fs::remove_file(self.folder.join(".git/index.lock")).expect("the person's own lock was removed by ostler");
    }

    pub fn order_kill(&self, order: &Order) {
        let root = self.harness.root();
        // It does not exist if no process was counted yet.
        let _ = std::fs::remove_file(root.join("count"));
        let both = if order.both { "both" } else { "one" };
        let text = format!("{} 0.{:06} {both}\n", order.which, order.after_us);
        std::fs::write(root.join("order"), text).expect("an order");
    }

    /// Whether the order was carried out. Otherwise it is withdrawn.
    pub fn was_killed(&self) -> bool {
        std::fs::remove_file(self.harness.root().join("order")).is_err()
    }

    /// The holders or the keepers of all sessions.
    pub fn helpers(&self, holder: bool) -> Vec<Identity> {
        let sessions = self.harness.home().join("sessions");
        let ids = std::fs::read_dir(&sessions).into_iter().flatten().flatten();
        let ids = ids.filter_map(|entry| SessionId::parse(&entry.file_name().to_string_lossy()));
        let folders = ids.filter_map(|id| Place { id, path: sessions.join(id.as_str()), archived: false }.open().ok());
        let records =
            folders.filter_map(|folder| if holder { folder.holder() } else { folder.keeper() }.ok().flatten());
        records.map(|record| record.process).collect()
    }

    /// Waits for the processes that a fault has left. Then the next command cleans up.
    pub fn recover(&self, operation: Operation, what: &str) {
        // A git whose ostler was killed runs to its end.
        ostler_testkit::patience::until("git has ended", &[], || {
            let is_git = |process: &Identity| {
                ostler_sys::process::command_line(process.pid()).first().is_some_and(|word| word.ends_with("git"))
            };
            (!self.harness.alive().iter().any(is_git)).then_some(())
        });
        if operation.is_of_turns() {
            self.let_turns_end();
        }
        if matches!(operation, Operation::Worktree | Operation::Fork) {
            self.run(&["stop", "--all"]);
        }
        let collected = self.run(&["worktree", "gc"]);
        assert_eq!(collected.code, Some(0), "{what}: {collected:?}");
    }

    /// Runs the operation again, without a fault.
    pub fn repeat(&self, operation: Operation, what: &str) {
        let output = self.start(operation).finish();
        let fine: &[i32] = match operation {
            // The tree exists already, or is gone already.
            Operation::Worktree | Operation::Fork => &[0, 2],
            Operation::Remove | Operation::RemoveByForce => &[0, 3],
            // Work that had landed before the fault came was cleaned up.
            Operation::Land | Operation::LandChecked | Operation::LandMerged | Operation::LandRebased => &[0, 3],
            // Everything was undone before the fault came, and there is nothing more to undo.
            Operation::Undo => &[0, 2],
            Operation::Collect | Operation::Snapshot | Operation::Rewind => &[0],
        };
        assert!(output.code.is_some_and(|code| fine.contains(&code)), "{what}, repeated: {output:?}");
        if operation.is_of_turns() {
            self.judge_repeated_turns(operation, &format!("{what}, repeated: {output:?}"));
            return;
        }
        if output.code == Some(2) {
            // A tree that is in the way can be removed in any state.
            let removed = self.run(&["worktree", "rm", "--force", &self.names.1]);
            assert_eq!(removed.code, Some(0), "{what}: {removed:?} after {output:?}");
            let again = self.start(operation).finish();
            assert_eq!(again.code, Some(0), "{what}: {again:?}");
        }
        if operation.lands() {
            let main = self.git(&["rev-parse", "main"]);
            let files = self.git(&["ls-tree", "-r", "--name-only", &main]);
            assert!(files.contains(&format!("{}-new.txt", self.names.0)), "{what}: it has not landed: {output:?}");
        }
    }
}

fn put_shim(harness: &mut Harness) {
    let path = harness.variable("PATH").expect("PATH").into_string().expect("text");
    let real = path.split(':').map(|folder| Path::new(folder).join("git")).find(|file| file.is_file()).expect("git");
    let (root, shims) = (harness.root().to_owned(), harness.root().join("shims"));
    std::fs::create_dir(&shims).expect("a folder");
    let text = GIT.replace("ROOT", &root.to_string_lossy()).replace("REAL", &real.to_string_lossy());
    std::fs::write(shims.join("git"), text).expect("a file");
    std::fs::set_permissions(shims.join("git"), PermissionsExt::from_mode(0o755)).expect("permissions");
    harness.set("PATH", format!("{}:{path}", shims.display()));
}
