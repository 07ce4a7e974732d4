//! A systemd user unit that continues sessions at login or boot.

use crate::engine::Engine;
use crate::error::{Error, Result};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name of the unit.
const UNIT: &str = "ostler-recover.service";

/// What was written, and what the service manager answered.
#[derive(Debug)]
pub struct Service {
    /// The file.
    pub path: PathBuf,
    /// Whether the service manager starts it from now on; `None` when `systemctl` cannot be run.
    pub enabled: Option<bool>,
    /// What `systemd-analyze verify` has found wrong with it; empty when nothing, `None` when there is no such program.
    pub verified: Option<String>,
}

impl Engine {
    /// Writes the unit and has the service manager of the user start it at each login, or at boot for a user that
    /// lingers.
    pub fn install_service(&self) -> Result<Service> {
        let path = self.unit_path()?;
        let program = self.launcher.program()?;
        let text = unit(&program, self.home.root(), self.environment.variable("PATH").as_deref())?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let new = path.with_extension("service.new");
        std::fs::write(&new, text)?;
        std::fs::rename(&new, &path)?;
        let verified = self.verify(&path);
        let enabled = self.manager(&["daemon-reload"]).and_then(|_| self.manager(&["enable", UNIT]));
        Ok(Service { path, enabled, verified })
    }

    /// Removes the unit. `None`: there was none.
    pub fn uninstall_service(&self) -> Result<Option<PathBuf>> {
        let path = self.unit_path()?;
        if !path.exists() {
            return Ok(None);
        }
        self.manager(&["disable", UNIT]);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
        self.manager(&["daemon-reload"]);
        Ok(Some(path))
    }

    fn unit_path(&self) -> Result<PathBuf> {
        let config = self.environment.variable("XDG_CONFIG_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
        let home = || self.environment.variable("HOME").map(|home| Path::new(&home).join(".config"));
        Ok(config.or_else(home).ok_or(Error::NoHome)?.join("systemd/user").join(UNIT))
    }

    /// Calls the service manager of the user, and returns whether it succeeded; `None` when `systemctl` cannot be run.
    fn manager(&self, words: &[&str]) -> Option<bool> {
        let mut command = Command::new("systemctl");
        command.arg("--user").args(words);
        self.in_environment(&mut command).output().ok().map(|output| output.status.success())
    }

    fn verify(&self, path: &Path) -> Option<String> {
        let mut command = Command::new("systemd-analyze");
        command.args(["--user", "verify"]).arg(path);
        let output = self.in_environment(&mut command).output().ok()?;
        let said = String::from_utf8_lossy(&output.stderr);
        // It also reports on other units of the machine.
        let about_ours: Vec<&str> = said.lines().filter(|line| line.contains(UNIT)).collect();
        Some(about_ours.join("; "))
    }

    fn in_environment<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.env_clear().envs(self.environment.variables().iter().map(|(name, value)| (name, value)))
    }
}

fn unit(program: &Path, home: &Path, path: Option<&str>) -> Result<String> {
    let home = std::path::absolute(home)?;
    let variable = |name: &str, value: &str| format!("Environment={}\n", quoted(&format!("{name}={value}")));
    let mut variables = variable("OSTLER_HOME", &home.to_string_lossy());
    // With this PATH, agents are found as in the shell from which the unit was installed.
    variables.push_str(&path.map(|path| variable("PATH", path)).unwrap_or_default());
    Ok(format!(
        "[Unit]\nDescription=Continue ostler sessions that were meant to go on\n\n\
         [Service]\nType=oneshot\n{variables}ExecStart={} recover\n\
         # The sessions that it continues outlive it.\nKillMode=process\nRemainAfterExit=yes\n\n\
         [Install]\nWantedBy=default.target\n",
        quoted(&program.to_string_lossy())
    ))
}

/// A word as the service manager reads it: in quotes, with its special characters escaped.
fn quoted(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{escaped}\"")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn words_with_signs_of_the_service_manager_are_escaped() {
        let text = unit(Path::new("/a b/os%tler"), Path::new("/home/x\"y"), Some("/bin:/$x")).unwrap();
        assert!(text.contains("ExecStart=\"/a b/os%%tler\" recover\n"), "{text}");
        assert!(text.contains("Environment=\"OSTLER_HOME=/home/x\\\"y\"\n"), "{text}");
        assert!(text.contains("Environment=\"PATH=/bin:/$$x\"\n"), "{text}");
    }
}
