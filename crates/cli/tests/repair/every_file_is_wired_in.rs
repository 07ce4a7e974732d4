//! A test that nobody compiles holds no promise.

#[test]
fn every_file_in_this_folder_is_a_module_of_the_test_binary() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/repair");
    let wired = include_str!("main.rs");
    let forgotten: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".rs").map(str::to_owned))
        .filter(|name| name != "main" && !wired.contains(&format!("\nmod {name};\n")))
        .collect();
    assert!(forgotten.is_empty(), "not wired in: {forgotten:?}");
}
