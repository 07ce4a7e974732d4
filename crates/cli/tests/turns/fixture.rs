//! A session in a repository, whose turns run commands.

use crate::repo::Repo;
use ostler_sys::pause_points::{self, Point, Role};
use ostler_testkit::patience;
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A session that has had one turn, which changed nothing.
pub struct Turns {
    pub repo: Repo,
    pub id: String,
}

impl Turns {
    pub fn new() -> Turns {
        Turns::in_repo(Repo::new())
    }

    pub fn in_repo(repo: Repo) -> Turns {
        repo.ostler(&["run", "demo", "say hello"]).exits(0);
        let id = repo.ostler(&["show", "--json", "@last"]).exits(0).json()["id"].as_str().unwrap().to_owned();
        let turns = Turns { repo, id };
        turns.noted(1);
        turns
    }

    /// One more turn, which runs this command; its snapshot has been taken.
    pub fn turn(&self, command: &str) -> u32 {
        let turn = self.turn_without_snapshot(command);
        self.noted(turn);
        turn
    }

    pub fn turn_without_snapshot(&self, command: &str) -> u32 {
        self.repo.ostler(&["resume", &self.id, &format!("run-command {command}")]).exits(0);
        let shown = self.repo.ostler(&["show", "--json", &self.id]).exits(0).json();
        u32::try_from(shown["turns"].as_u64().unwrap()).unwrap()
    }

    /// Waits until it is noted that there is a snapshot of this turn, or that there is none.
    pub fn noted(&self, turn: u32) {
        let about = |line: &Value| line["turn"] == turn && line["what"] != "begun";
        patience::until("a snapshot", &[&self.session_folder()], || self.lines().iter().any(about).then_some(()));
    }

    pub fn session_folder(&self) -> PathBuf {
        self.repo.harness.home().join("sessions").join(&self.id)
    }

    pub fn store(&self) -> PathBuf {
        self.repo.harness.home().join("turns").join(&self.id)
    }

    /// What is noted about snapshots.
    pub fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.session_folder().join("turns.jsonl")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// What is noted about the snapshot of a turn.
    pub fn line(&self, turn: u32) -> Value {
        self.lines().into_iter().find(|line| line["turn"] == turn && line["what"] == "ended").unwrap()
    }

    #[track_caller]
    pub fn diff(&self, turn: u32) -> String {
        self.repo.ostler(&["diff", &self.id, "--turn", &turn.to_string()]).exits(0).stdout
    }

    /// The names and modes of the files in the snapshot of a turn.
    pub fn listed(&self, turn: u32) -> String {
        self.in_store(&["ls-tree", "-r", "--format=%(objectmode) %(path)", self.line(turn)["commit"].as_str().unwrap()])
    }

    pub fn in_store(&self, arguments: &[&str]) -> String {
        let store = format!("--git-dir={}", self.store().display());
        self.repo.git(&[&[store.as_str()], arguments].concat())
    }

    /// Everything in the tree and in `.git`, byte for byte, with modes and dates.
    pub fn everything(&self) -> BTreeMap<PathBuf, (u32, SystemTime, Vec<u8>)> {
        let mut found = BTreeMap::new();
        collect(&self.repo.folder, &mut found);
        found
    }

    /// The files of the tree, without `.git`.
    pub fn files(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let git = self.repo.folder.join(".git");
        // Git does not record empty folders.
        let all = self
            .everything()
            .into_iter()
            .filter(|(path, _)| !path.starts_with(&git) && (path.is_symlink() || !path.is_dir()));
        all.map(|(path, (mode, _, bytes))| (path, (mode, bytes))).collect()
    }
}

fn collect(folder: &Path, found: &mut BTreeMap<PathBuf, (u32, SystemTime, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stat = path.symlink_metadata().unwrap();
        let bytes = match () {
            () if stat.is_symlink() => std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
            () if stat.is_file() => std::fs::read(&path).unwrap(),
            () => Vec::new(),
        };
        if stat.is_dir() {
            collect(&path, found);
        }
        found.insert(path, (stat.mode(), stat.modified().unwrap(), bytes));
    }
}

/// The process of this role will be killed when it passes this point for the n-th time. Returns the file that is
/// removed when this has happened.
pub fn kill_at(repo: &mut Repo, role: Role, point: Point, nth: usize) -> PathBuf {
    let folder = repo.harness.root().join("pauses");
    std::fs::create_dir_all(&folder).unwrap();
    repo.harness.set(pause_points::VARIABLE, folder.clone());
    let file = folder.join(format!("{}.kill", pause_points::token(role, point)));
    std::fs::write(&file, "x".repeat(nth)).unwrap();
    file
}
