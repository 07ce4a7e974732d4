//! Pictures of ostler, as SVG: a real run of the program in a pseudo-terminal, shown by our own emulator. The demo
//! agent does the work, so neither a key nor a network is needed.
//!
//! `ostler-pictures OSTLER FOLDER` runs every scene with that program and writes one picture each.
//!
//! A picture that is made again differs only in what has changed in the program: session ids, conversation ids,
//! temporary paths, process ids and durations are replaced by fixed ones ([`steady`]); the ages in a list come from the
//! program's own test clock, which is set back before each session starts.

mod desk;
mod scenes;
mod steady;
mod svg;

use anyhow::{Context, Result, bail};
use std::path::PathBuf;

fn main() -> Result<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [program, folder] = arguments.as_slice() else {
        bail!("usage: ostler-pictures OSTLER FOLDER");
    };
    let program = program.canonicalize().with_context(|| format!("{} is missing", program.display()))?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for scene in scenes::ALL {
        let picture = scene.picture(&program).with_context(|| format!("the picture {:?}", scene.name))?;
        let file = folder.join(format!("{}.svg", scene.name));
        std::fs::write(&file, picture).with_context(|| format!("cannot write {}", file.display()))?;
        println!("{}", file.display());
    }
    Ok(())
}
