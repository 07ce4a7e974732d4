//! Which agents can be kept: the demo is built in, any other has to be installed.

use super::Finding;
use crate::environment::Environment;
use rustix::fs::{Access, access};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

pub fn check(environment: &Environment) -> Vec<Finding> {
    let path = OsString::from(environment.variable("PATH").unwrap_or_default());
    let mut findings = vec![Finding::fine("the demo agent is built in, and any command can be kept")];
    let names = ostler_agents::all().map(|agent| agent.name());
    findings
        .extend(names.filter(|name| !matches!(*name, "acp" | "command" | "demo")).map(|name| installed(name, &path)));
    findings
}

fn installed(name: &str, path: &OsStr) -> Finding {
    match find(name, path) {
        Some(program) => Finding::fine(format!("{name} is {}", program.display())),
        None => Finding::note(format!("{name} is not installed, or not on PATH"), ""),
    }
}

fn find(name: &str, path: &OsStr) -> Option<PathBuf> {
    let candidates = std::env::split_paths(path).map(|folder| folder.join(name));
    candidates.into_iter().find(|program| program.is_file() && access(program, Access::EXEC_OK).is_ok())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::doctor::Level;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn an_agent_is_there_when_the_path_leads_to_a_program_of_its_name() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = std::env::join_paths([first.path(), second.path()]).unwrap();
        std::fs::create_dir(first.path().join("agent")).unwrap();
        let program = second.path().join("agent");
        std::fs::write(&program, "").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(installed("agent", &path).level, Level::Note, "neither a folder nor a plain file is a program");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(find("agent", &path), Some(program));
    }
}
