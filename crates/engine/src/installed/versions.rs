//! Asks programs for their version, or whether they know an option: in an empty home, with everything switched off that
//! would use the network, all at the same time, and with a time limit.

use crate::environment::Environment;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::time::Timespec;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a program may take to answer. The slowest agent needs two seconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(8);

/// What each of these programs says its version is; `None` for one that says nothing in time. All are asked at once.
pub fn versions(environment: &Environment, programs: &[Option<PathBuf>]) -> Vec<Option<String>> {
    let Some(home) = empty_home() else {
        return vec![None; programs.len()];
    };
    let answers = std::thread::scope(|scope| {
        let asked: Vec<_> = programs
            .iter()
            .map(|program| scope.spawn(|| program.as_deref().and_then(|program| version(environment, program, &home))))
            .collect();
        asked.into_iter().map(|answer| answer.join().ok().flatten()).collect()
    });
    // A process that still writes there loses nothing that is needed.
    let _ = std::fs::remove_dir_all(&home);
    answers
}

/// Whether a program's help names this option. A program that gives no help is assumed to know the option: if it does
/// not, it reports that when it is started, which is better than not using the option.
pub fn knows_option(environment: &Environment, program: &Path, option: &str) -> bool {
    let Some(home) = empty_home() else { return true };
    let help = says(environment, program, "--help", &home);
    let _ = std::fs::remove_dir_all(&home);
    help.is_none_or(|help| help.split(|c: char| c.is_whitespace() || c == ',' || c == '=').any(|word| word == option))
}

fn version(environment: &Environment, program: &Path, home: &Path) -> Option<String> {
    number(&says(environment, program, "--version", home)?)
}

/// A folder for the files that the programs write when they are asked.
fn empty_home() -> Option<PathBuf> {
    let home = std::env::temp_dir().join(format!("ostler-versions-{}", uuid::Uuid::new_v4()));
    std::fs::create_dir(&home).ok().map(|()| home)
}

/// What the program prints with this argument.
fn says(environment: &Environment, program: &Path, question: &str, home: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.arg(question).env_clear().envs(ostler_agents::installed::offline());
    command.env("HOME", home).env("TMPDIR", home).current_dir(home);
    command.envs(environment.variable("PATH").map(|path| ("PATH", path)));
    // A group of its own, so that a launcher's child can be ended with it.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().ok()?;
    let said = first_words(&mut child);
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        // The child was not waited for yet, so the number still belongs to it. It does not matter if it has exited
        // already.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
    said.filter(|said| !said.is_empty())
}

/// What the program prints, up to a limit, within `PATIENCE`.
fn first_words(child: &mut Child) -> Option<String> {
    let mut output = child.stdout.take()?;
    let deadline = Instant::now() + PATIENCE;
    let mut said = Vec::new();
    let mut piece = [0; 1024];
    loop {
        let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok()?;
        match poll(&mut [PollFd::new(&output, PollFlags::IN)], Some(&left)) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return None,
        }
        match output.read(&mut piece) {
            Ok(count) if count > 0 && said.len() < 16 * 1024 => said.extend_from_slice(&piece[..count]),
            Ok(_) => return String::from_utf8(said).ok(),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// `name-cli 0.166.0` and `2.1.197 (Its Name)` both have one word that begins with a digit.
fn number(said: &str) -> Option<String> {
    let words = said.split_whitespace().map(|word| word.trim_start_matches('v'));
    words
        .into_iter()
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))
        .map(str::to_owned)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn program(folder: &Path, name: &str, script: &str) -> Option<PathBuf> {
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        Some(path)
    }

    #[test]
    fn a_version_is_the_number_in_whatever_words_it_comes() {
        assert_eq!(number("2.1.197 (Claude Code)\n").as_deref(), Some("2.1.197"));
        assert_eq!(number("codex-cli 0.166.0\n").as_deref(), Some("0.166.0"));
        assert_eq!(number("v1.2\n").as_deref(), Some("1.2"));
        assert_eq!(number("claude native binary not installed\n"), None);
    }

    #[test]
    fn an_option_is_known_when_the_help_names_it_and_when_there_is_no_help() {
        let folder = tempfile::tempdir().unwrap();
        let knows = |name: &str, script: &str| {
            knows_option(&Environment::of_process(), &program(folder.path(), name, script).unwrap(), "--new")
        };
        assert!(knows("newer", "echo 'Options:'; echo '  -n, --new <THING>  Does it'"));
        assert!(!knows("older", "echo 'Options:'; echo '  --newer  Does something else'"));
        assert!(knows("silent", "exit 3"));
    }

    #[test]
    fn programs_are_asked_in_an_empty_home_and_one_that_is_broken_harms_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let asked = [
            program(folder.path(), "fine", "ls -A \"$HOME\" | grep -q . || echo fine 1.2.3"),
            program(folder.path(), "broken", "exit 3"),
            None,
        ];
        assert_eq!(versions(&Environment::of_process(), &asked), [Some("1.2.3".to_owned()), None, None]);
    }

    #[test]
    fn what_a_program_starts_when_asked_is_ended_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let script = format!("sleep 600 >/dev/null & echo $! > '{}'; echo 4.5.6; exec >&-; wait", pid.display());
        assert_eq!(
            versions(&Environment::of_process(), &[program(folder.path(), "stays", &script)]),
            [Some("4.5.6".to_owned())]
        );
        let pid: i32 = std::fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
        if let Some(child) = ostler_sys::process::Identity::of(pid).unwrap() {
            ostler_testkit::patience::ended(&child);
        }
    }
}
