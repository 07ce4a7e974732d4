//! The proof that nothing is left. Whatever a test's sessions started, however often it forked and whoever its parent is
//! now, has inherited the test's own home folder in its environment: a path that exists nowhere else on the machine.

use crate::patience::ends_within;
use ostler_sys::process::{Identity, Pidfd, Stat, command_line};
use rustix::process::Signal;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Helpers leave a moment after they have published the outcome.
const MOMENT: Duration = Duration::from_secs(5);

/// Every living process that carries this path in its environment or works below it.
pub fn alive(home: &Path) -> Vec<Identity> {
    let me = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    processes
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| *name != me)
        .filter_map(|name| name.parse().ok())
        .filter(|&pid: &i32| pid > 1 && belongs(pid, home))
        .filter_map(|pid| Stat::read(pid).ok().flatten())
        .filter(|stat| !stat.is_zombie())
        .map(|stat| stat.identity())
        .collect()
}

fn belongs(pid: i32, home: &Path) -> bool {
    let path = home.as_os_str().as_bytes();
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mentions = environment.windows(path.len()).any(|window| window == path);
    mentions || std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(home))
}

/// Gives everything of this home a moment to be gone. Returns what is not, in words, and ends it.
pub fn settle(home: &Path) -> Vec<String> {
    let deadline = Instant::now() + MOMENT;
    for process in alive(home) {
        ends_within(&process, deadline.saturating_duration_since(Instant::now()));
    }
    let left = alive(home);
    let words = left.iter().map(|process| format!("{} {}", process.pid(), command_line(process.pid()).join(" ")));
    let words = words.collect();
    end(home);
    words
}

/// Kills everything of this home, until nothing is left of it.
pub fn end(home: &Path) {
    let deadline = Instant::now() + MOMENT;
    loop {
        let left = alive(home);
        if left.is_empty() || Instant::now() > deadline {
            return;
        }
        for process in &left {
            if let Ok(Some(pidfd)) = Pidfd::open(process) {
                // Gone in between is gone.
                let _ = pidfd.signal(Signal::KILL);
            }
        }
        for process in &left {
            ends_within(process, deadline.saturating_duration_since(Instant::now()));
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_that_has_hidden_is_found_by_the_home_it_inherited_and_ended() {
        let home = tempfile::tempdir().unwrap();
        let script = "setsid sh -c 'sleep 600 & echo $!' </dev/null";
        let mut hiding = Command::new("sh");
        hiding.args(["-c", script]).env("HOME_OF_THE_TEST", home.path()).stdout(Stdio::piped());
        let mut hiding = hiding.spawn().unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(hiding.stdout.take().unwrap()), &mut line).unwrap();
        hiding.wait().unwrap();
        let pid: i32 = line.trim().parse().unwrap();
        let found = alive(home.path());
        assert_eq!(found.iter().map(Identity::pid).collect::<Vec<_>>(), [pid]);
        end(home.path());
        assert!(!found[0].may_live());
        assert!(alive(home.path()).is_empty());
    }
}
