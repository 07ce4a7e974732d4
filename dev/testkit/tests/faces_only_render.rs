//! A face shows what the engine found and requests what a person wants. It opens no file, makes no kernel call, reads
//! no environment and knows no agent. A crate uses only crates below it. Only `sys` knows where this system keeps
//! information about processes (docs/ARCHITECTURE.md).

#![expect(clippy::unwrap_used, reason = "a test that cannot read a source file has failed")]

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The faces, as folders. The widgets and the terminal of a face (crates/tui) are below them.
const FACES: [&str; 2] = ["crates/cli/src", "crates/jobs/src"];

/// What a face must not name.
const BELOW: [&str; 17] = [
    "rustix",
    "libc",
    "std::fs",
    "File::open",
    "exists()",
    "is_dir()",
    "is_file()",
    "current_dir()",
    "env::var",
    "ostler_sys",
    "ostler_store",
    "ostler_view",
    "ostler_keeper",
    "ostler_notify",
    "ostler_agents",
    "ostler_writers",
    "ostler_git",
];

/// Files that still do. This list only shrinks: a file that no longer names any of these must be removed from here.
const STILL: [&str; 0] = [];

/// From the top of the product to its base. A crate uses crates of lower layers, and crates that come before it in its
/// own layer.
const LAYERS: [&[&str]; 6] = [
    &["ostler"],
    &["ostler-tui"],
    &["ostler-jobs"],
    &["ostler-engine"],
    &[
        "ostler-demo",
        "ostler-replay",
        "ostler-keeper",
        "ostler-notify",
        "ostler-git",
        "ostler-search",
        "ostler-writers",
        "ostler-view",
        "ostler-store",
    ],
    &["ostler-screen", "ostler-agents", "ostler-transcript", "ostler-sys", "ostler-core"],
];

#[test]
fn faces_name_nothing_below_the_engine() {
    let mut wrong = Vec::new();
    let mut searched = 0;
    let mut still: BTreeMap<&str, bool> = STILL.iter().map(|file| (*file, false)).collect();
    for file in FACES.iter().flat_map(|face| sources(&root().join(face))) {
        searched += 1;
        let name = file.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).unwrap();
        let named: Vec<String> = product_lines(&text)
            .flat_map(|(number, line)| named_in(line).map(move |word| format!("{number}: {word}: {}", line.trim())))
            .collect();
        match still.get_mut(name.as_str()) {
            Some(found) => *found = !named.is_empty(),
            None => wrong.extend(named.into_iter().map(|line| format!("{name}:{line}"))),
        }
    }
    assert!(searched > 60, "only {searched} files were found");
    assert!(wrong.is_empty(), "ask the engine for this:\n{}", wrong.join("\n"));
    let clean: Vec<&str> = still.into_iter().filter(|(_, found)| !found).map(|(file, _)| file).collect();
    assert!(clean.is_empty(), "these are clean or gone; remove them from STILL: {clean:?}");
}

#[test]
fn a_crate_uses_only_crates_below_it() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let order: Vec<&str> = LAYERS.iter().flat_map(|layer| layer.iter().copied()).collect();
    let place = |name: &str| order.iter().position(|known| *known == name);
    let mut wrong = Vec::new();
    let mut seen = 0;
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let folder = package["manifest_path"].as_str().unwrap();
        if !Path::new(folder).starts_with(root().join("crates")) {
            continue;
        }
        let Some(own) = place(name) else {
            wrong.push(format!("{name} has no layer"));
            continue;
        };
        seen += 1;
        for used in package["dependencies"].as_array().unwrap() {
            let (used, kind) = (used["name"].as_str().unwrap(), &used["kind"]);
            // Dependencies of tests are not part of the product; crates from a registry have no layer.
            if !kind.is_null() || !used.starts_with("ostler") {
                continue;
            }
            match place(used) {
                Some(place) if place > own => {}
                Some(_) => wrong.push(format!("{name} uses {used}, which is not below it")),
                None => wrong.push(format!("{name} uses {used}, which is not part of the product")),
            }
        }
    }
    assert_eq!(seen, order.len(), "a crate of LAYERS is gone");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_sys_reads_what_this_system_tells_about_processes() {
    let mut wrong = Vec::new();
    let mut searched = 0;
    for file in sources(&root().join("crates")) {
        let name = file.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        if name.starts_with("crates/sys/") || !name.contains("/src/") {
            continue;
        }
        searched += 1;
        let text = fs::read_to_string(&file).unwrap();
        let lines = product_lines(&text).filter(|(_, line)| line.contains("\"/proc") || line.contains("\"/sys/"));
        wrong.extend(lines.map(|(number, line)| format!("{name}:{number}: {}", line.trim())));
    }
    assert!(searched > 300, "only {searched} files were found");
    assert!(wrong.is_empty(), "ask crates/sys for this:\n{}", wrong.join("\n"));
}

#[test]
fn a_name_is_seen_as_a_word_and_not_in_tests_or_comments() {
    let seen = |line: &str| named_in(line).next().is_some();
    for line in
        ["use rustix::fs;", "let x = std::fs::read(path);", "    ostler_store::look::look(p)", "std::env::var(n)"]
    {
        assert!(seen(line), "{line}");
    }
    for line in ["//! what [`ostler_store`] has", "use ostler_engine::Place;", "let libcount = 1;"] {
        assert!(!seen(line), "{line}");
    }
    let numbers = |text: &str| product_lines(text).map(|(number, _)| number).collect::<Vec<_>>();
    assert_eq!(numbers("a\n#[cfg(test)]\n#[expect(x)]\nmod tests {\nb\n"), [1]);
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The lines of a file, with their numbers, up to its tests.
fn product_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(place, line)| (place + 1, line)).take_while(|(_, line)| *line != "#[cfg(test)]")
}

/// The forbidden names in a line of code.
fn named_in(line: &str) -> impl Iterator<Item = &'static str> {
    let code = line.split("//").next().unwrap_or_default();
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    BELOW.into_iter().filter(move |name| {
        code.match_indices(name).any(|(start, _)| {
            // `env::var` also stands for `var_os` and `vars`.
            let ends = name.ends_with("var") || !code[start + name.len()..].starts_with(is_part);
            ends && !code[..start].ends_with(is_part)
        })
    })
}
