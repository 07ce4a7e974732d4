//! `cargo xtask fuzz`: looks for bytes that break a parser, with cargo-fuzz, each target for a while.
//!
//! It starts from the seeds in `dev/fuzz/seeds`. What it learns is kept below `target/fuzz`. An input that breaks a
//! parser is named, and has to be added to the seeds once the parser is repaired. Sanitizers need a nightly compiler
//! and are left out: nothing but the kernel module is `unsafe`, and a panic, an overflow or an endless loop is found
//! without them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace;

/// An input that takes more time or more memory than this counts as one that breaks the parser.
const SECONDS_PER_INPUT: u32 = 10;
const MEGABYTES: u32 = 512;
/// Long enough for every kind of line, short enough to try many.
const LONGEST_INPUT: u32 = 16 * 1024;

struct Asked {
    targets: Vec<String>,
    seconds: u32,
}

impl Asked {
    fn parse(arguments: &[String], known: &[String]) -> Result<Asked> {
        let mut asked = Asked { targets: Vec::new(), seconds: 60 };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--seconds" => asked.seconds = words.next().context("--seconds how many?")?.parse()?,
                name if known.iter().any(|target| target == name) => asked.targets.push(name.to_owned()),
                unknown => bail!("no target {unknown}; there are {}", known.join(", ")),
            }
        }
        if asked.targets.is_empty() {
            asked.targets = known.to_vec();
        }
        Ok(asked)
    }
}

pub fn run(arguments: &[String]) -> Result<()> {
    let seeds = workspace::root().join("dev/fuzz/seeds");
    let asked = Asked::parse(arguments, &names(&seeds)?)?;
    let fuzzer = cargo_fuzz()?;
    workspace::run_visibly(fuzzing(&fuzzer, "build").arg("any"))?;
    let mut broken = Vec::new();
    for target in &asked.targets {
        let learnt = workspace::target().join("fuzz").join("corpus").join(target);
        let found = workspace::target().join("fuzz").join("found").join(target);
        std::fs::create_dir_all(&learnt)?;
        std::fs::create_dir_all(&found)?;
        let mut command = fuzzing(&fuzzer, "run");
        command.env("OSTLER_FUZZ", target).arg("any").arg(&learnt).arg(seeds.join(target)).arg("--");
        command.args([
            format!("-max_total_time={}", asked.seconds),
            format!("-timeout={SECONDS_PER_INPUT}"),
            format!("-rss_limit_mb={MEGABYTES}"),
            format!("-max_len={LONGEST_INPUT}"),
            format!("-artifact_prefix={}/", found.display()),
            "-print_final_stats=1".to_owned(),
        ]);
        if let Err(error) = workspace::run_visibly(&mut command) {
            broken.push(format!("{target}: see {} ({error:#})", found.display()));
        }
    }
    if broken.is_empty() { Ok(()) } else { bail!("{}", broken.join("\n  ")) }
}

/// The names of all targets. Every target has a folder of seeds, and a test checks that.
fn names(seeds: &Path) -> Result<Vec<String>> {
    let folders = std::fs::read_dir(seeds).with_context(|| format!("no seeds in {}", seeds.display()))?;
    let mut names: Vec<String> = folders.flatten().filter_map(|folder| folder.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// `cargo fuzz WORD`, with everything that it builds below target/.
fn fuzzing(fuzzer: &Path, word: &str) -> Command {
    let mut command = workspace::cargo();
    let folder = fuzzer.parent().unwrap_or(Path::new("/")).to_owned();
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(folder).chain(std::env::split_paths(&others));
    // Cargo cannot search a folder with a colon in its name.
    command.env("PATH", std::env::join_paths(path).unwrap_or(others.clone()));
    command.args(["fuzz", word, "--sanitizer", "none", "--fuzz-dir"]).arg(workspace::root().join("dev/fuzz"));
    command.arg("--target-dir");
    command.arg(workspace::target().join("fuzz").join("build"));
    command
}

/// The cargo-fuzz on PATH, or one that is built below target/.
fn cargo_fuzz() -> Result<PathBuf> {
    if let Some(there) = crate::apt::on_path("cargo-fuzz") {
        return Ok(there);
    }
    let folder = workspace::root().join("target").join("tools");
    let program = folder.join("bin").join("cargo-fuzz");
    if !program.is_file() {
        let mut cargo = workspace::cargo();
        cargo.current_dir("/").env("CARGO_TARGET_DIR", folder.join("build"));
        workspace::run_visibly(cargo.args(["install", "--locked", "cargo-fuzz", "--root"]).arg(&folder))?;
    }
    Ok(program)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;

    #[test]
    fn targets_are_named_or_all_of_them_and_a_wrong_name_is_said() {
        let known = ["wire".to_owned(), "text".to_owned()];
        let parse =
            |words: &[&str]| Asked::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), &known);
        assert_eq!(parse(&[]).unwrap().targets, known);
        let asked = parse(&["text", "--seconds", "5"]).unwrap();
        assert_eq!((asked.targets, asked.seconds), (vec!["text".to_owned()], 5));
        assert!(parse(&["nothing"]).is_err());
    }
}
