//! A test that is not compiled proves nothing.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).map(|found| found.map(|entry| entry.unwrap().path()).collect()).unwrap_or_default()
}

/// The files of a test binary's folder that its `main.rs` does not name.
fn forgotten(folder: &Path) -> Vec<PathBuf> {
    let Ok(wired) = std::fs::read_to_string(folder.join("main.rs")) else { return Vec::new() };
    let is_forgotten = |path: &PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap();
        path.extension().is_some_and(|extension| extension == "rs")
            && name != "main"
            && !wired.contains(&format!("\nmod {name};\n"))
    };
    entries(folder).into_iter().filter(is_forgotten).collect()
}

#[test]
fn every_file_beside_a_main_is_a_module_of_that_test_binary() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let packages = ["crates", "dev"].iter().flat_map(|folder| entries(&workspace.join(folder)));
    let folders: Vec<PathBuf> = packages.flat_map(|package| entries(&package.join("tests"))).collect();
    assert!(folders.iter().filter(|folder| folder.join("main.rs").exists()).count() > 10, "the folders are elsewhere");
    let forgotten: Vec<PathBuf> = folders.iter().flat_map(|folder| forgotten(folder)).collect();
    assert!(forgotten.is_empty(), "not wired in: {forgotten:?}");
}
