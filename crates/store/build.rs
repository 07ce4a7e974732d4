//! Which code understands sessions: a number that changes whenever it does. What another build has understood is not taken
//! over (see `progress`), so nobody has to remember to raise a version.

#![expect(clippy::unwrap_used, reason = "a build that cannot read its own sources fails")]

use std::path::{Path, PathBuf};

const SOURCES: [&str; 3] = ["../core/src", "../agents/src", "src"];

fn main() {
    let mut files = Vec::new();
    for folder in SOURCES {
        println!("cargo::rerun-if-changed={folder}");
        collect(Path::new(folder), &mut files);
    }
    files.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        for byte in std::fs::read(file).unwrap() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    println!("cargo::rustc-env=OSTLER_UNDERSTANDING={hash:016x}");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
