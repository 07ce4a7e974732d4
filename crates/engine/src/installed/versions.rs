//! Asking programs which version they are, or which options they know: in an empty home, with everything switched off that would reach for the
//! network, all at once, and not for long.

use crate::environment::Environment;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::time::Timespec;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The slowest of them needs two seconds on an idle machine.
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
    // Somebody who still writes there loses nothing that anybody wants.
    let _ = std::fs::remove_dir_all(&home);
    answers
}

/// Whether a program's help names this option. One that gives no help is taken for a program that knows it: where it does not, it
/// says so when it is started, and that is better than doing without.
pub fn knows_option(environment: &Environment, program: &Path, option: &str) -> bool {
    let Some(home) = empty_home() else { return true };
    let help = says(environment, program, "--help", &home);
    let _ = std::fs::remove_dir_all(&home);
    help.is_none_or(|help| help.split(|c: char| c.is_whitespace() || c == ',' || c == '=').any(|word| word == option))
}

fn version(environment: &Environment, program: &Path, home: &Path) -> Option<String> {
    number(&says(environment, program, "--version", home)?)
}

/// A folder for whatever they write on this occasion.
fn empty_home() -> Option<PathBuf> {
    let home = std::env::temp_dir().join(format!("ostler-versions-{}", uuid::Uuid::new_v4()));
    std::fs::create_dir(&home).ok().map(|()| home)
}

/// What it prints when it is asked this.
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
        // Not collected yet, so the number is still its own; gone already is as good.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
    said.filter(|said| !said.is_empty())
}

/// All it prints, up to a bound, within our patience.
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
