//! Every input below `dev/fuzz/seeds` is handled without a panic: what fuzzing has found once stays repaired.

use std::path::Path;

#[test]
#[expect(clippy::unwrap_used, reason = "a test that finds no value has failed")]
fn every_seed_of_every_parser_is_survived() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds");
    for target in ostler_fuzz_targets::targets() {
        let inputs: Vec<_> =
            std::fs::read_dir(seeds.join(target.name)).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(!inputs.is_empty(), "{} has no seeds", target.name);
        (target.run)(&[]);
        for input in inputs {
            eprintln!("{}", input.display());
            (target.run)(&std::fs::read(&input).unwrap());
        }
    }
}

#[test]
#[expect(clippy::unwrap_used, reason = "a test that finds no value has failed")]
fn every_folder_of_seeds_has_its_parser() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds");
    let names: Vec<&str> = ostler_fuzz_targets::targets().iter().map(|target| target.name).collect();
    for folder in std::fs::read_dir(seeds).unwrap() {
        let name = folder.unwrap().file_name().into_string().unwrap();
        assert!(names.contains(&name.as_str()), "no target reads dev/fuzz/seeds/{name}");
    }
}
