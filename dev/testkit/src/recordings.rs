//! The recordings of real agents that `cargo xtask record` made.

use ostler_replay::Recording;
use std::path::{Path, PathBuf};

/// One recording.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The agent and the scene, like the names of snapshots.
    pub name: String,
    pub file: PathBuf,
    pub recording: Recording,
}

/// All recordings, in the order of their names.
#[must_use]
pub fn recordings() -> Vec<Recorded> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings").canonicalize().expect("recordings");
    let entries = |folder: &Path| {
        let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
        entries.collect::<Vec<_>>()
    };
    let mut all: Vec<Recorded> = entries(&folder).iter().flat_map(|agent| entries(agent)).map(read).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    assert!(!all.is_empty(), "no recordings in {}", folder.display());
    all
}

/// The recording of this agent and scene.
#[must_use]
pub fn recorded(name: &str) -> Recorded {
    recordings().into_iter().find(|one| one.name == name).unwrap_or_else(|| panic!("no recording {name}"))
}

fn read(file: PathBuf) -> Recorded {
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let recording = Recording::read(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let name = format!("{}-{}", recording.agent, recording.scene);
    let place = Path::new(&recording.agent).join(&recording.scene).with_extension("rec");
    assert!(file.ends_with(place), "{} is in the wrong place for {name}", file.display());
    Recorded { name, file, recording }
}

/// Fails unless a folder has a snapshot for each recording and no others.
pub fn each_has_a_snapshot(folder: &str) {
    let expected: Vec<String> = recordings().into_iter().map(|one| format!("{}.snap", one.name)).collect();
    let mut found: Vec<String> = std::fs::read_dir(folder)
        .expect("a folder of snapshots")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    found.sort();
    assert_eq!(found, expected, "INSTA_UPDATE=always cargo test accepts what has changed; delete what is left over");
}
