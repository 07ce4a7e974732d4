//! Deletes old snapshots, and the objects that only they needed.

use super::store::{REFS, TurnStore};
use crate::Result;
use crate::git::done;

/// When there are this many packs of our own, they are combined into one. Each snapshot writes one pack.
const PACKS: usize = 50;

pub(super) fn keep(store: &TurnStore, names: &[String]) -> Result<()> {
    let listed = store.git.run(&store.folder, ["for-each-ref", "--format=%(refname)", &format!("{REFS}/")])?;
    let listed = String::from_utf8_lossy(&listed);
    let prefix = format!("{REFS}/");
    let gone: String = listed
        .lines()
        .filter(|line| line.strip_prefix(&prefix).is_some_and(|name| !names.iter().any(|kept| kept == name)))
        .map(|line| format!("delete {line}\n"))
        .collect();
    if !gone.is_empty() {
        let words = ["update-ref", "--stdin"];
        done(&words.map(Into::into), store.git.feed(&store.folder, words, gone.as_bytes())?)?;
    }
    if own_packs(store) > PACKS {
        // Linked packs are kept as they are.
        store.git.run(&store.folder, ["-c", "repack.writeBitmaps=false", "repack", "-a", "-d", "-q", "-l"])?;
        store.git.run(&store.folder, ["pack-refs", "--all"])?;
    }
    Ok(())
}

/// Packs that are not links.
fn own_packs(store: &TurnStore) -> usize {
    let Ok(names) = std::fs::read_dir(store.folder.join("objects/pack")) else { return 0 };
    let packs = names.flatten().map(|entry| entry.path());
    packs
        .filter(|path| path.extension().is_some_and(|end| end == "pack") && !path.with_extension("keep").exists())
        .count()
}
