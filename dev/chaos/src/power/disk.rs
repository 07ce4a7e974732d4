//! A disk that loses data. It replays what was done to files, and returns what may be found after the power was cut:
//! any part of what was not synced may be missing.
//!
//! Stricter than the file systems that people use: a file's fsync keeps its bytes and not its name, and a folder's
//! fsync keeps the names in it and not the contents of the files.

use super::trace::Call;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

type Number = usize;

#[derive(Clone, Debug)]
enum Node {
    File { now: Vec<u8>, kept: Vec<u8> },
    Folder { now: BTreeMap<String, Number>, kept: BTreeMap<String, Number> },
}

/// What survives of the data that was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Survives {
    Nothing,
    /// Names, but no bytes.
    Names,
    /// Names, and zeros in the place of bytes.
    Zeros,
    /// Names, and the first half of the bytes.
    Half,
    Everything,
}

impl Survives {
    pub const ALL: [Survives; 5] =
        [Survives::Nothing, Survives::Names, Survives::Zeros, Survives::Half, Survives::Everything];
}

/// The disk below one folder.
#[derive(Debug)]
pub struct Disk {
    root: String,
    nodes: Vec<Node>,
    positions: HashMap<(u32, i64), u64>,
}

impl Disk {
    /// An empty folder that certainly exists.
    #[must_use]
    pub fn new(root: &Path) -> Disk {
        let folder = Node::Folder { now: BTreeMap::new(), kept: BTreeMap::new() };
        Disk { root: root.to_string_lossy().into_owned(), nodes: vec![folder], positions: HashMap::new() }
    }

    fn find(&self, path: &str) -> Option<Number> {
        let below = path.strip_prefix(&self.root)?;
        below.split('/').filter(|part| !part.is_empty() && *part != ".").try_fold(0, |at, part| match &self.nodes[at] {
            Node::Folder { now, .. } => now.get(part).copied(),
            Node::File { .. } => None,
        })
    }

    fn names(&mut self, path: &str) -> Option<(&mut BTreeMap<String, Number>, String)> {
        let (folder, name) = path.trim_end_matches('/').rsplit_once('/')?;
        let at = self.find(folder)?;
        match &mut self.nodes[at] {
            Node::Folder { now, .. } => Some((now, name.to_owned())),
            Node::File { .. } => None,
        }
    }

    fn add(&mut self, path: &str, node: Node) {
        let number = self.nodes.len();
        if let Some((names, name)) = self.names(path) {
            names.entry(name).or_insert(number);
            self.nodes.push(node);
        }
    }

    fn remove(&mut self, path: &str) -> Option<Number> {
        let (names, name) = self.names(path)?;
        names.remove(&name)
    }

    fn put(&mut self, path: &str, number: Number) {
        if let Some((names, name)) = self.names(path) {
            names.insert(name, number);
        }
    }

    fn bytes(&mut self, path: &str) -> Option<&mut Vec<u8>> {
        let at = self.find(path)?;
        match &mut self.nodes[at] {
            Node::File { now, .. } => Some(now),
            Node::Folder { .. } => None,
        }
    }

    /// Applies a call. True when that changed anything here. `real` returns the bytes that the kernel moved itself,
    /// which strace does not show.
    pub fn apply(&mut self, call: &Call, real: &dyn Fn(&str) -> Vec<u8>) -> bool {
        self.done(call, real).is_some()
    }

    fn done(&mut self, call: &Call, real: &dyn Fn(&str) -> Vec<u8>) -> Option<()> {
        match call.name.as_str() {
            "openat" => {
                let path = call.path_below(0)?;
                let flags = call.arguments.get(2)?;
                self.positions.insert((call.pid, call.result), 0);
                if flags.contains("O_CREAT") && self.find(&path).is_none() {
                    self.names(&path)?;
                    self.add(&path, Node::File { now: Vec::new(), kept: Vec::new() });
                    return Some(());
                }
                if flags.contains("O_TRUNC") {
                    self.bytes(&path)?.clear();
                    return Some(());
                }
                None
            }
            "mkdirat" => self.make_folder(&call.path_below(0)?),
            "mkdir" => self.make_folder(&String::from_utf8_lossy(&call.text(0))),
            "write" => {
                let (path, text) = (call.path_of(0)?, call.text(1));
                let at = self.position(call, &path)?;
                self.write(&path, at, &text)
            }
            "pwrite64" => self.write(&call.path_of(0)?, call.number(3), &call.text(1)),
            "splice" => {
                let path = call.path_of(2)?;
                let size = self.bytes(&path)?.len();
                let moved = real(&path).get(size..)?.get(..usize::try_from(call.result).ok()?)?.to_vec();
                self.write(&path, size as u64, &moved)
            }
            "ftruncate" | "fallocate" => {
                let size = if call.name == "ftruncate" { call.number(1) } else { call.number(2) + call.number(3) };
                self.bytes(&call.path_of(0)?)?.resize(usize::try_from(size).ok()?, 0);
                Some(())
            }
            "fsync" | "fdatasync" => {
                let at = self.find(&call.path_of(0)?)?;
                match &mut self.nodes[at] {
                    Node::File { now, kept } => kept.clone_from(now),
                    Node::Folder { now, kept } => kept.clone_from(now),
                }
                Some(())
            }
            "renameat" | "renameat2" => {
                let number = self.remove(&call.path_below(0)?)?;
                self.put(&call.path_below(2)?, number);
                Some(())
            }
            "linkat" => {
                let number = self.find(&call.path_below(0)?)?;
                self.put(&call.path_below(2)?, number);
                Some(())
            }
            "unlinkat" => self.remove(&call.path_below(0)?).map(drop),
            _ => None,
        }
    }

    fn make_folder(&mut self, path: &str) -> Option<()> {
        self.names(path)?;
        self.add(path, Node::Folder { now: BTreeMap::new(), kept: BTreeMap::new() });
        Some(())
    }

    /// The position of a plain write: the first write after an open goes to the end of the file, each later one
    /// continues after it.
    fn position(&mut self, call: &Call, path: &str) -> Option<u64> {
        let size = self.bytes(path)?.len() as u64;
        let position = self.positions.entry((call.pid, call.descriptor(0)?)).or_insert(size);
        let at = if *position == 0 { size } else { *position };
        *position = at + u64::try_from(call.result).ok()?;
        Some(at)
    }

    fn write(&mut self, path: &str, at: u64, text: &[u8]) -> Option<()> {
        let bytes = self.bytes(path)?;
        let at = usize::try_from(at).ok()?;
        if bytes.len() < at + text.len() {
            bytes.resize(at + text.len(), 0);
        }
        bytes[at..at + text.len()].copy_from_slice(text);
        Some(())
    }

    /// What is found after the power was cut now, as paths with their bytes; folders have none.
    #[must_use]
    pub fn after_the_cut(&self, survives: Survives) -> BTreeMap<String, Option<Vec<u8>>> {
        let mut found = BTreeMap::new();
        let mut open = vec![(String::new(), 0)];
        while let Some((path, number)) = open.pop() {
            match &self.nodes[number] {
                Node::Folder { now, kept } => {
                    let names = if survives == Survives::Nothing { kept } else { now };
                    open.extend(names.iter().map(|(name, number)| (format!("{path}/{name}"), *number)));
                    found.insert(path, None);
                }
                Node::File { now, kept } => {
                    found.insert(path, Some(bytes_after(now, kept, survives)));
                }
            }
        }
        found
    }
}

fn bytes_after(now: &[u8], kept: &[u8], survives: Survives) -> Vec<u8> {
    let new = now.get(kept.len()..).unwrap_or_default();
    match survives {
        Survives::Nothing | Survives::Names => kept.to_vec(),
        Survives::Zeros => [kept, &vec![0; new.len()]].concat(),
        Survives::Half => [kept, &new[..new.len() / 2]].concat(),
        Survives::Everything => now.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::trace::parse;
    use super::*;

    fn after(calls: &str, survives: Survives) -> BTreeMap<String, Option<Vec<u8>>> {
        let mut disk = Disk::new(Path::new("/d"));
        for call in parse(calls) {
            disk.apply(&call, &|_| Vec::new());
        }
        disk.after_the_cut(survives)
    }

    #[test]
    fn what_was_synced_is_there_and_of_the_rest_as_much_as_survives() {
        let calls = "1 openat(AT_FDCWD</d>, \"f\", O_CREAT) = 3</d/f>\n1 write(3</d/f>, \"kept\", 4) = 4\n\
                     1 fsync(3</d/f>) = 0\n1 write(3</d/f>, \"lost\", 4) = 4\n";
        assert_eq!(after(calls, Survives::Nothing), BTreeMap::from([(String::new(), None)]), "its name was not synced");
        let text = |survives| after(calls, survives)["/f"].clone().unwrap_or_default();
        assert_eq!(text(Survives::Names), b"kept");
        assert_eq!(text(Survives::Zeros), b"kept\0\0\0\0");
        assert_eq!(text(Survives::Half), b"keptlo");
        assert_eq!(text(Survives::Everything), b"keptlost");
        let synced = format!("{calls}1 fsync(4</d>) = 0\n");
        assert_eq!(after(&synced, Survives::Nothing)["/f"], Some(b"kept".to_vec()));
    }
}
