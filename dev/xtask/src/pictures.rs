//! `cargo xtask pictures`: makes docs/pictures again from a real run of the program. They are drawn by a crate of the
//! workspace, because that needs our own emulator; see dev/pictures.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::processes::become_subreaper;
use crate::workspace;

pub fn run(arguments: &[String]) -> Result<()> {
    if let Some(unknown) = arguments.first() {
        bail!("`pictures` takes no arguments, not even {unknown}");
    }
    become_subreaper()?;
    workspace::run_visibly(workspace::cargo().args(["build", "--package", "ostler"]))?;
    draw(workspace::cargo, &workspace::root().join("docs/pictures"))
}

/// Draws all pictures, with the program that was built last, by this cargo.
pub fn draw(cargo: fn() -> Command, folder: &Path) -> Result<()> {
    let mut artist = cargo();
    artist.args(["run", "--quiet", "--package", "ostler-pictures", "--"]);
    artist.arg(workspace::target().join("debug/ostler")).arg(folder);
    workspace::run_visibly(&mut artist)
}
