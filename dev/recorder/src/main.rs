//! `cargo xtask record [AGENT…] [--scene NAME]`: records what the real agents print and write.
//!
//! Each [`scene`] runs an agent exactly as ostler would start it, in an empty home and with a scripted model. Names,
//! times and places are normalised ([`normal`]), and other random differences are taken over from the earlier recording
//! ([`likeness`]). So after an update of an agent this one command is enough, and the diff shows what has changed.

mod fixture;
mod likeness;
mod normal;
mod process;
mod scene;
mod words;

use anyhow::{Context, Result, bail};
use ostler_replay::Recording;
use scene::{AGENTS, Scene};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("record: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut words: impl Iterator<Item = String>) -> Result<()> {
    let (mut agents, mut scene) = (Vec::new(), None);
    while let Some(word) = words.next() {
        match AGENTS.into_iter().find(|agent| agent.name() == word) {
            Some(agent) => agents.push(agent),
            None if word == "--scene" => scene = Some(words.next().context("--scene needs a name")?),
            None => bail!("{word:?} is not an agent; there are {}", AGENTS.map(|agent| agent.name()).join(", ")),
        }
    }
    if agents.is_empty() {
        agents.extend(AGENTS);
    }
    let mut recorded = 0;
    for agent in agents {
        for scene in scene::of(agent).into_iter().filter(|one| scene.as_ref().is_none_or(|name| one.name == name)) {
            record(&scene).with_context(|| format!("{} in {}", agent.name(), scene.name))?;
            recorded += 1;
        }
    }
    if recorded == 0 {
        bail!("no such scene; see dev/recorder/src/scene.rs");
    }
    Ok(())
}

fn record(scene: &Scene) -> Result<()> {
    let file = folder().join(scene.agent.name()).join(format!("{}.rec", scene.name));
    let before = read(&file)?;
    let mut recording = fixture::record(scene)?;
    match &before {
        Some(before) => likeness::keep(&mut recording, before),
        None => likeness::round(&mut recording),
    }
    let changed = before.as_ref() != Some(&recording);
    println!("{:<9} {:<14} {}", scene.agent.name(), scene.name, if changed { "written" } else { "as before" });
    if changed {
        fs::create_dir_all(file.parent().context("a folder")?)?;
        fs::write(&file, recording.to_string()).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

/// The existing recording. A recording in an older format counts as missing: it is being replaced.
fn read(file: &Path) -> Result<Option<Recording>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Recording::read(&text).ok()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| file.display().to_string()),
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings")
}
