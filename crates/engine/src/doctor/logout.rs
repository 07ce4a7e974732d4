//! Would a logout end the sessions? A login manager may kill the processes that a user has left running. After the
//! user's last logout it also ends the user's own service manager, unless lingering is enabled for the user.
//!
//! | where we run         | `KillUserProcesses` | lingers | a logout ends sessions started from here |
//! | -------------------- | ------------------- | ------- | ----------------------------------------- |
//! | the login's own scope | yes                | either  | yes                                       |
//! | the login's own scope | no                 | either  | no                                        |
//! | the user's manager   | either              | no      | yes, the last one                         |
//! | the user's manager   | either              | yes     | no                                        |

use super::Finding;
use crate::environment::Environment;
use ostler_sys::cgroup;
use std::path::{Path, PathBuf};

pub fn check_this_machine(environment: &Environment) -> Vec<Finding> {
    let uid = rustix::process::getuid().as_raw();
    let group = cgroup::of_this_process();
    let user =
        user_name(Path::new("/"), uid).or_else(|| environment.variable("USER")).unwrap_or_else(|| uid.to_string());
    check(&Machine { root: Path::new("/"), group: &group, user: &user })
}

/// What the result depends on.
struct Machine<'a> {
    /// The root of every path.
    root: &'a Path,
    /// The cgroups of this process, one per line.
    group: &'a str,
    user: &'a str,
}

fn check(machine: &Machine<'_>) -> Vec<Finding> {
    if !machine.root.join("run/systemd/system").is_dir() {
        return vec![Finding::fine("no login manager is running; a logout ends no session")];
    }
    let user = machine.user;
    let lingers = machine.root.join("var/lib/systemd/linger").join(user).exists();
    let settings = Settings::read(machine.root);
    let linger = format!("loginctl enable-linger {user}");
    let in_manager = machine.group.lines().any(|line| line.contains("/user@"));
    let in_login = machine.group.lines().any(|line| line.contains("/session-") && line.contains(".scope"));
    let finding = if in_manager && !lingers {
        Finding::problem("the last logout ends every session started from here, because lingering is off", linger)
    } else if !in_manager && settings.kills(user) {
        let what =
            format!("a logout ends every session, because of KillUserProcesses=yes in {}", settings.source.display());
        let first = if lingers { String::new() } else { format!("{linger}, then ") };
        if in_login || !lingers {
            Finding::problem(what, format!("{first}start sessions with: systemd-run --user --scope ostler run …"))
        } else {
            Finding::note(format!("{what}; this shell is not a login and is not affected"), "")
        }
    } else {
        Finding::fine("a logout ends no session")
    };
    vec![finding]
}

/// The part of logind.conf that concerns us.
struct Settings {
    kill: bool,
    only: Vec<String>,
    except: Vec<String>,
    /// The file that has set `KillUserProcesses` last.
    source: PathBuf,
}

impl Settings {
    /// Reads the main file, then every drop-in in the order of their names. A drop-in hides one of the same name in a
    /// later place.
    fn read(root: &Path) -> Settings {
        const PLACES: [&str; 4] = ["etc", "run", "usr/local/lib", "usr/lib"];
        let mut settings =
            Settings { kill: false, only: Vec::new(), except: vec!["root".to_owned()], source: PathBuf::from("/") };
        let main = PLACES.iter().map(|place| root.join(place).join("systemd/logind.conf")).find(|path| path.exists());
        let mut dropins: Vec<PathBuf> = Vec::new();
        for place in PLACES {
            let folder = root.join(place).join("systemd/logind.conf.d");
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let hidden = dropins.iter().any(|known| known.file_name() == Some(&entry.file_name()));
                if !hidden && entry.path().extension().is_some_and(|extension| extension == "conf") {
                    dropins.push(entry.path());
                }
            }
        }
        dropins.sort_by_key(|path| path.file_name().map(std::ffi::OsStr::to_owned));
        for path in main.into_iter().chain(dropins) {
            if let Ok(text) = std::fs::read_to_string(&path) {
                settings.apply(&text, &path);
            }
        }
        settings
    }

    fn apply(&mut self, text: &str, path: &Path) {
        let mut section = "";
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = name;
            }
            let Some((key, value)) =
                line.split_once('=').filter(|_| section == "Login" && !line.starts_with(['#', ';']))
            else {
                continue;
            };
            let value = value.trim();
            let words = || value.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            match key.trim() {
                "KillUserProcesses" => {
                    self.kill = matches!(value.to_ascii_lowercase().as_str(), "yes" | "y" | "true" | "t" | "on" | "1");
                    path.clone_into(&mut self.source);
                }
                "KillOnlyUsers" => self.only = words(),
                "KillExcludeUsers" => self.except = words(),
                _ => {}
            }
        }
    }

    fn kills(&self, user: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|name| name == user);
        self.kill && !named(&self.except) && (self.only.is_empty() || named(&self.only))
    }
}

/// A user's name by number.
fn user_name(root: &Path, uid: u32) -> Option<String> {
    let text = std::fs::read_to_string(root.join("etc/passwd")).ok()?;
    let mut users = text.lines().map(|line| line.split(':'));
    users.find_map(|mut fields| {
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::doctor::Level;

    const LOGIN: &str = "0::/user.slice/user-1000.slice/session-3.scope\n";
    const MANAGER: &str = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.scope\n";

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [("run/systemd/system/.keep", "")].iter().chain(files) {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    fn verdict(files: &[(&str, &str)], group: &str, user: &str) -> Finding {
        check(&Machine { root: machine(files).path(), group, user }).remove(0)
    }

    const KILL: (&str, &str) = ("etc/systemd/logind.conf", "[Login]\nKillUserProcesses=yes\n");

    #[test]
    fn a_login_manager_that_kills_is_warned_about_with_the_command_that_helps() {
        let found = verdict(&[KILL], LOGIN, "ann");
        assert_eq!(found.level, Level::Problem);
        assert!(found.remedy.unwrap().starts_with("loginctl enable-linger ann"));
        let lingering = verdict(&[KILL, ("var/lib/systemd/linger/ann", "")], LOGIN, "ann");
        assert!(lingering.level == Level::Problem && lingering.remedy.unwrap().contains("systemd-run"));
    }

    #[test]
    fn the_defaults_are_fine_and_so_is_a_machine_without_a_login_manager() {
        let commented =
            ("etc/systemd/logind.conf", "[Login]\n#KillUserProcesses=yes\n[Other]\nKillUserProcesses=yes\n");
        assert_eq!(verdict(&[commented], LOGIN, "ann").level, Level::Fine);
        let bare = tempfile::tempdir().unwrap();
        assert_eq!(check(&Machine { root: bare.path(), group: LOGIN, user: "ann" })[0].level, Level::Fine);
    }

    #[test]
    fn drop_ins_have_the_last_word_in_the_order_of_their_names() {
        let no = ("usr/lib/systemd/logind.conf.d/50-no.conf", "[Login]\nKillUserProcesses=no\n");
        assert_eq!(verdict(&[KILL, no], LOGIN, "ann").level, Level::Fine);
        let yes = ("etc/systemd/logind.conf.d/60-yes.conf", "[Login]\nKillUserProcesses = yes\n");
        let found = verdict(&[KILL, no, yes], LOGIN, "ann");
        assert!(found.level == Level::Problem && found.what.ends_with("60-yes.conf"), "{found:?}");
        let hides = ("etc/systemd/logind.conf.d/50-no.conf", "[Login]\nKillUserProcesses=yes\n");
        assert_eq!(verdict(&[no, hides], LOGIN, "ann").level, Level::Problem);
    }

    #[test]
    fn an_excluded_user_is_not_warned() {
        assert_eq!(verdict(&[KILL], LOGIN, "root").level, Level::Fine);
        let only = ("etc/systemd/logind.conf.d/a.conf", "[Login]\nKillOnlyUsers=bob eve\n");
        assert_eq!(verdict(&[KILL, only], LOGIN, "ann").level, Level::Fine);
        assert_eq!(verdict(&[KILL, only], LOGIN, "eve").level, Level::Problem);
    }

    #[test]
    fn under_the_users_own_manager_lingering_decides() {
        assert_eq!(verdict(&[], MANAGER, "ann").level, Level::Problem);
        assert_eq!(verdict(&[KILL, ("var/lib/systemd/linger/ann", "")], MANAGER, "ann").level, Level::Fine);
    }
}
