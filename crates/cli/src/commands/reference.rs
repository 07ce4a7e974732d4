//! `ostler completions` and `ostler man`: what other programs know about our command line.

use super::help::with_examples;
use crate::args::Cli;
use crate::exit::{Code, Failure, Result};
use clap::CommandFactory;
use std::path::Path;

pub fn completions(shell: clap_complete::Shell) -> Result<Code> {
    crate::follow::out(&super::completion::registration(&shell.to_string())?)?;
    Ok(Code::Succeeded)
}

pub fn man(folder: Option<&Path>) -> Result<Code> {
    match folder {
        Some(folder) => {
            if !folder.is_dir() {
                let folder = folder.display();
                return Err(Failure::usage(format!("{folder} is not a folder; create it first (mkdir -p {folder})")));
            }
            clap_mangen::generate_to(with_examples(Cli::command()), folder)?;
            crate::say::text(&format!("the manual pages are in {}\n", folder.display()))?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            crate::follow::out(&page)?;
        }
    }
    Ok(Code::Succeeded)
}
