//! Programs of the system that a command of xtask needs: found on PATH, else installed where that is possible, else
//! named to the user.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The first file of this name on PATH.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

/// The package that contains a program. Most have the same name.
fn package(program: &str) -> &str {
    match program {
        "sshd" => "openssh-server",
        "rg" => "ripgrep",
        "dbus-daemon" => "dbus",
        alike => alike,
    }
}

/// Installs the packages whose program is missing. Returns a sentence for those that are still missing afterwards.
pub fn install_missing(programs: &[&str]) -> Result<(), String> {
    let missing = |programs: &[&str]| -> Vec<String> {
        programs
            .iter()
            .filter(|program| on_path(program).is_none())
            .map(|program| package(program).to_owned())
            .collect()
    };
    let wanted = missing(programs);
    if wanted.is_empty() {
        return Ok(());
    }
    if let (Some(apt), true) = (on_path("apt-get"), rustix::process::geteuid().is_root()) {
        install(&apt, &wanted);
    }
    let still = missing(programs);
    if still.is_empty() { Ok(()) } else { Err(format!("not installed: {0}; apt-get install {0}", still.join(" "))) }
}

/// Tries with the existing package lists first, then with new ones. The caller checks whether it worked.
fn install(apt: &Path, packages: &[String]) {
    let quietly = |arguments: &[&str]| {
        let mut command = Command::new(apt);
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()).stdout(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let mut install = vec!["install", "--yes", "--no-install-recommends"];
    install.extend(packages.iter().map(String::as_str));
    eprintln!("apt-get {}", install.join(" "));
    if !quietly(&install) && quietly(&["update"]) {
        quietly(&install);
    }
}
