//! A network connection that can be cut: an sshd of the test, with its own keys, port and settings in the test's
//! folder, and `ssh` in a person's terminal at the other end.

use crate::person::Person;
use ostler_sys::process::{Identity, Pidfd, Stat, command_line};
use ostler_sys::tree::Processes;
use ostler_testkit::{Harness, Started};
use rustix::process::Signal;
use std::io::BufRead;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A client that does not answer for two seconds is disconnected.
const SETTINGS: &str = "ListenAddress 127.0.0.1\nPidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n\
    PermitUserRC no\nPrintMotd no\nPrintLastLog no\nClientAliveInterval 1\nClientAliveCountMax 1\n";

/// As root, sshd needs a folder below /run. It is made in a private mount namespace.
const START_AS_ROOT: &str = r#"mount -t tmpfs none /run && mkdir /run/sshd && exec "$@" 2>&1"#;
const START: &str = r#"exec "$@" 2>&1"#;

pub struct Sshd {
    folder: PathBuf,
    port: u16,
    server: Started,
    /// Kept open as long as the server runs, which writes its messages there.
    _words: Box<dyn BufRead>,
}

impl Sshd {
    /// None, with a conspicuous message, where there is no sshd.
    pub fn start(harness: &Harness) -> Option<Sshd> {
        let Some(program) = find() else {
            let missing = "sshd is not installed: apt-get install openssh-server";
            assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{missing}");
            eprintln!("\n!!! LEFT OUT: {missing}\n");
            return None;
        };
        let folder = harness.root().join("ssh");
        std::fs::create_dir(&folder).unwrap();
        for key in ["host", "person"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.join(key));
            assert!(keygen.status().unwrap().success());
        }
        // A free port. If another program takes it first, the start fails with a message.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let place = folder.display();
        let config = folder.join("config");
        let keys = format!("Port {port}\nHostKey {place}/host\nAuthorizedKeysFile {place}/person.pub\n");
        std::fs::write(&config, keys + SETTINGS).unwrap();

        let mut command = if rustix::process::geteuid().is_root() {
            let mut command = Command::new("unshare");
            command.args(["--mount", "sh", "-c", START_AS_ROOT, "sh"]);
            command
        } else {
            let mut command = Command::new("sh");
            command.args(["-c", START, "sh"]);
            command
        };
        command.arg(program).args(["-D", "-e", "-f"]).arg(config);
        let (server, mut words) = Started::with_lines(command);
        let mut said = String::new();
        while !said.contains("Server listening") {
            let read = words.read_line(&mut said).unwrap();
            assert!(read > 0, "sshd does not start: {said}");
        }
        Some(Sshd { folder, port, server, _words: Box::new(words) })
    }

    /// A person runs `ostler` over the connection, in a terminal.
    pub fn runs(&self, harness: &Harness, arguments: &[&str]) -> Person {
        let mut there = vec!["env".to_owned(), "-i".to_owned()];
        for (name, value) in harness.command("env").get_envs() {
            there.push(format!("{}={}", name.to_string_lossy(), value.unwrap().to_string_lossy()));
        }
        there.push(harness.program().to_string_lossy().into_owned());
        there.extend(arguments.iter().map(|&word| word.to_owned()));
        let there: Vec<String> = there.iter().map(|word| quoted(word)).collect();
        let home = quoted(&harness.root().join("home").to_string_lossy());
        let there = format!("cd {home} && exec {}", there.join(" "));

        let (port, key) = (self.port.to_string(), self.folder.join("person"));
        let known = format!("UserKnownHostsFile={}/known", self.folder.display());
        let words = ["ssh", "-tt", "-F", "none", "-p", &port, "-i", key.to_str().unwrap(), "-o", "IdentitiesOnly=yes"];
        let options = ["-o", "StrictHostKeyChecking=no", "-o", &known, "-o", "LogLevel=ERROR", "127.0.0.1", &there];
        Person::runs_program(harness, (40, 120), &[&words[..], &options].concat())
    }

    /// Its processes for connections, recognised by their command lines.
    fn connections(&self) -> Vec<Identity> {
        let all = Processes::look().unwrap().below(&[self.server.process().pid()], |_: &Stat| false);
        let serves =
            |process: &Identity| command_line(process.pid()).first().is_some_and(|word| word.starts_with("sshd:"));
        all.into_iter().filter(serves).collect()
    }

    /// Kills the server's end of every connection.
    pub fn kills_connections(&self) {
        for process in self.connections() {
            if let Some(pidfd) = Pidfd::open(&process).unwrap() {
                pidfd.signal(Signal::KILL).unwrap();
            }
        }
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        // The server ends with its handle; its connections would stay until their clients exit.
        self.kills_connections();
    }
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Often not in the PATH of an ordinary user.
    let places = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    places.map(|folder| folder.join("sshd")).find(|program: &PathBuf| Path::is_file(program))
}

/// Quoted as one word of a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
