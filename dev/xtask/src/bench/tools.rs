//! The programs to compare: ours, built for release, and the others, from the system or built below target/.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow};

use crate::{apt, workspace};

pub struct Tools {
    pub ostler: PathBuf,
    pub dtach: Tool,
    pub tmux: Tool,
    pub shpool: Tool,
    pub pueue: Tool,
    pub pueued: Tool,
    pub ripgrep: Tool,
}

/// A program, provided when a row needs it. It may be missing; then the reason stands in its place in the table.
pub struct Tool {
    origin: Origin,
    provided: OnceCell<Result<PathBuf, String>>,
}

enum Origin {
    LeftOut,
    System { program: &'static str },
    Crate { name: &'static str, program: &'static str },
}

impl Tool {
    pub fn path(&self) -> Result<&Path> {
        let provided = self.provided.get_or_init(|| self.origin.provide());
        provided.as_deref().map_err(|reason| anyhow!("{reason}"))
    }

    /// Where it is, if a row has needed it.
    fn if_used(&self) -> Option<&Path> {
        self.provided.get()?.as_deref().ok()
    }

    fn of_system(program: &'static str) -> Self {
        Self { origin: Origin::System { program }, provided: OnceCell::new() }
    }

    fn of_crate(name: &'static str, program: &'static str) -> Self {
        Self { origin: Origin::Crate { name, program }, provided: OnceCell::new() }
    }
}

impl Origin {
    fn provide(&self) -> Result<PathBuf, String> {
        match *self {
            Self::LeftOut => Err("left out".to_owned()),
            Self::System { program } => {
                apt::install_missing(&[program])?;
                apt::on_path(program).ok_or_else(|| format!("{program} is not on PATH"))
            }
            Self::Crate { name, program } => {
                let program = tools_folder().join("bin").join(program);
                if !program.is_file() {
                    install_crate(name).map_err(|error| format!("{error:#}"))?;
                }
                Ok(program)
            }
        }
    }
}

impl Tools {
    /// `ours`: a binary that is already built; else it is built now.
    pub fn provide(ours: Option<PathBuf>) -> Result<Self> {
        Ok(Self {
            ostler: install(&built(ours)?, "ostler")?,
            dtach: Tool::of_system("dtach"),
            tmux: Tool::of_system("tmux"),
            shpool: Tool::of_crate("shpool", "shpool"),
            pueue: Tool::of_crate("pueue", "pueue"),
            pueued: Tool::of_crate("pueue", "pueued"),
            ripgrep: Tool::of_system("rg"),
        })
    }

    /// Ours, which is installed already, and none of the others.
    pub fn ours_alone(ostler: PathBuf) -> Self {
        let left_out = || Tool { origin: Origin::LeftOut, provided: OnceCell::new() };
        Self {
            ostler,
            dtach: left_out(),
            tmux: left_out(),
            shpool: left_out(),
            pueue: left_out(),
            pueued: left_out(),
            ripgrep: left_out(),
        }
    }

    /// Name and version of each program that was used, as it says itself.
    pub fn versions(&self) -> Vec<String> {
        let asked: [(&str, Option<&Path>, &str); 6] = [
            ("ostler", Some(&self.ostler), "--version"),
            ("dtach", self.dtach.if_used(), "--help"),
            ("tmux", self.tmux.if_used(), "-V"),
            ("shpool", self.shpool.if_used(), "version"),
            ("pueue", self.pueue.if_used(), "--version"),
            ("ripgrep", self.ripgrep.if_used(), "--version"),
        ];
        asked.into_iter().filter_map(|(name, path, how)| Some(format!("{name} {}", version(path?, how)))).collect()
    }
}

/// The word that starts with a digit in the first line that a program prints.
fn version(program: &Path, how: &str) -> String {
    let Ok(output) = Command::new(program).arg(how).output() else {
        return "?".to_owned();
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = text.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    number.unwrap_or("?").to_owned()
}

/// A binary that is already built, or else one that is built now.
pub fn built(ours: Option<PathBuf>) -> Result<PathBuf> {
    ours.map_or_else(build_ours, Ok)
}

fn build_ours() -> Result<PathBuf> {
    workspace::run_visibly(workspace::cargo().args(["build", "--release", "--package", "ostler"]))?;
    let binary = workspace::target().join("release").join("ostler");
    binary.canonicalize().with_context(|| format!("no binary at {}", binary.display()))
}

/// Puts our program where the others are, as an installation does: by a copy. A linker writes here and there, and leaves
/// the file in memory page by page; started from there, a launch takes a tenth longer than from a file that was copied.
pub fn install(ostler: &Path, name: &str) -> Result<PathBuf> {
    let folder = tools_folder().join("bin");
    std::fs::create_dir_all(&folder)?;
    // A process that still runs the last one keeps it.
    let (new, installed) = (folder.join(format!("{name}.new")), folder.join(name));
    std::fs::copy(ostler, &new).with_context(|| format!("cannot copy {}", ostler.display()))?;
    std::fs::rename(new, &installed)?;
    Ok(installed)
}

fn tools_folder() -> PathBuf {
    workspace::root().join("target").join("bench-tools")
}

/// Builds a crate from the registry, as its users do: outside the workspace, whose settings (a static binary) are ours
/// and would change what is compared.
fn install_crate(name: &str) -> Result<()> {
    let folder = tools_folder();
    std::fs::create_dir_all(&folder)?;
    let mut cargo = workspace::cargo();
    cargo.current_dir("/").env("CARGO_TARGET_DIR", folder.join("build"));
    workspace::run_visibly(cargo.args(["install", "--locked", "--root"]).arg(&folder).arg(name))
}
