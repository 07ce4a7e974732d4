//! `ostler completions` and `ostler man`: our command line, described for shells and for man. `ostler --version`.

use super::help::with_examples;
use crate::args::Cli;
use crate::exit::{Code, Failure, Result};
use clap::CommandFactory;
use std::io::ErrorKind;
use std::path::Path;

/// Without the tree of all commands, which takes longer to build than everything else here.
pub fn version() -> Result<Code> {
    crate::follow::out(concat!("ostler ", env!("CARGO_PKG_VERSION"), "\n").as_bytes())?;
    Ok(Code::Succeeded)
}

pub fn completions(shell: clap_complete::Shell) -> Result<Code> {
    crate::follow::out(&super::completion::registration(&shell.to_string())?)?;
    Ok(Code::Succeeded)
}

pub fn man(folder: Option<&Path>) -> Result<Code> {
    match folder {
        Some(folder) => {
            let shown = folder.display();
            match clap_mangen::generate_to(with_examples(Cli::command()), folder) {
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                    let words = format!("{shown} is not a folder; create it first (mkdir -p {shown})");
                    return Err(Failure::usage(words));
                }
                other => other?,
            }
            crate::say::text(&format!("the manual pages are in {shown}\n"))?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            crate::follow::out(&page)?;
        }
    }
    Ok(Code::Succeeded)
}
