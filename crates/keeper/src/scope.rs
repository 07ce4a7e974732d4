//! A scope of the user's own systemd: a cgroup for users who may not make one.
//!
//! On most machines a login is in a group that belongs to root, and below it runs a manager of the user's own services,
//! whose groups belong to the user. The manager is asked, over its private socket, to make a scope around one process.
//! From then on that group is listed, killed and measured like any other. The manager sets the limits there, so they
//! are read back: it may not have the controllers itself, and then it reports no error.

use ostler_sys::cgroup::bounds::Limit;
use ostler_sys::cgroup::{PREFIX, mounts};
use ostler_sys::dbus::{Connection, Incoming, Method, Reader, Writer};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a launch waits for a manager that does not answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The user's manager, when one runs.
#[derive(Debug)]
pub struct Manager {
    socket: PathBuf,
}

impl Manager {
    #[must_use]
    pub fn find(variable: &dyn Fn(&str) -> Option<String>) -> Option<Manager> {
        let runtime = variable("XDG_RUNTIME_DIR").filter(|path| path.starts_with('/'))?;
        let socket = Path::new(&runtime).join("systemd/private");
        socket.exists().then_some(Manager { socket })
    }

    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Asks the manager to put this process into a scope of its own, with these limits. Returns the group of the scope.
    pub fn contain_me(&self, name: &str, limits: &[Limit]) -> io::Result<PathBuf> {
        let unit = format!("{PREFIX}{name}.scope");
        let mut connection = Connection::open(&self.socket, PATIENCE)?;
        let method = Method {
            destination: "org.freedesktop.systemd1",
            path: "/org/freedesktop/systemd1",
            interface: "org.freedesktop.systemd1.Manager",
            member: "StartTransientUnit",
        };
        let serial = connection.call(&method, "ssa(sv)a(sa(sv))", &wanted(&unit, limits))?;
        wait_for(&mut connection, serial, &unit)?;
        let group = mounts::Mounts::look().and_then(|mounts| mounts.here());
        group
            .filter(|path| path.file_name().is_some_and(|name| name == unit.as_str()))
            .ok_or_else(|| io::Error::other("systemd reports a new scope, but this process is not in it"))
    }
}

/// The body of the request to the manager.
fn wanted(unit: &str, limits: &[Limit]) -> Writer {
    let me = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
    let mut body = Writer::default();
    body.string(unit);
    body.string("fail");
    body.array(8, |properties| {
        properties.property("Description", "s", |value| value.string("A session that ostler keeps"));
        properties.property("PIDs", "au", |value| value.array(4, |pids| pids.u32(me)));
        // The unit is removed when it is empty.
        properties.property("CollectMode", "s", |value| value.string("inactive-or-failed"));
        for limit in limits {
            let (name, number) = match *limit {
                Limit::Memory(bytes) => ("MemoryMax", bytes),
                Limit::Cpu(thousandths) => ("CPUQuotaPerSecUSec", thousandths.saturating_mul(1000)),
                Limit::Processes(count) => ("TasksMax", count),
            };
            properties.property(name, "t", |value| value.u64(number));
        }
    });
    // No further units.
    body.array(8, |_| {});
    body
}

/// Waits until the job that makes the unit is over.
fn wait_for(connection: &mut Connection, serial: u32, unit: &str) -> io::Result<()> {
    loop {
        match connection.hear()? {
            Incoming::Error { serial: of, why } if of == serial => {
                return Err(io::Error::other(format!("systemd refuses: {why}")));
            }
            Incoming::Signal { member, body } if member == "JobRemoved" => {
                let mut reader = Reader::new(&body);
                let (_id, _job) = (reader.u32()?, reader.string()?);
                let (about, result) = (reader.string()?, reader.string()?);
                match (about == unit, result.as_str()) {
                    (true, "done") => return Ok(()),
                    (true, other) => return Err(io::Error::other(format!("systemd made no scope: {other}"))),
                    (false, _) => {}
                }
            }
            Incoming::Error { .. } | Incoming::Signal { .. } | Incoming::Return { .. } | Incoming::Other => {}
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::{UnixListener, UnixStream};

    /// A manager that answers as this closure does, and returns what it was asked.
    fn manager(answer: fn(&mut UnixStream)) -> (tempfile::TempDir, Manager, std::thread::JoinHandle<Vec<u8>>) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("systemd")).unwrap();
        let listener = UnixListener::bind(root.path().join("systemd/private")).unwrap();
        let peer = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut heard = vec![0; 4096];
            let length = stream.read(&mut heard).unwrap();
            assert!(heard[..length].starts_with(b"\0AUTH EXTERNAL "), "{heard:?}");
            stream.write_all(b"OK 0123456789abcdef\r\n").unwrap();
            let mut asked = Vec::new();
            while !asked.windows(5).any(|window| window == b"scope") {
                let length = stream.read(&mut heard).unwrap();
                assert!(length > 0, "it asked for nothing");
                asked.extend(&heard[..length]);
            }
            answer(&mut stream);
            asked
        });
        let path = root.path().to_string_lossy().into_owned();
        let found = Manager::find(&|name| (name == "XDG_RUNTIME_DIR").then(|| path.clone())).unwrap();
        (root, found, peer)
    }

    /// A message with one header field, a text.
    fn message(kind: u8, field: (u8, &str), serial: u32, body: &Writer) -> Vec<u8> {
        let mut bytes = Writer::default();
        bytes.bytes.extend([b'l', kind, 0, 1]);
        bytes.u32(body.bytes.len().try_into().unwrap());
        bytes.u32(7);
        bytes.array(8, |fields| {
            fields.bytes.push(field.0);
            fields.signature("s");
            fields.string(field.1);
            fields.bytes.resize(fields.bytes.len().next_multiple_of(8), 0);
            fields.bytes.push(5);
            fields.signature("u");
            fields.u32(serial);
        });
        bytes.bytes.resize(bytes.bytes.len().next_multiple_of(8), 0);
        bytes.bytes.extend(&body.bytes);
        bytes.bytes
    }

    fn removed(unit: &str, result: &str) -> Vec<u8> {
        let mut body = Writer::default();
        body.u32(1);
        body.string("/org/freedesktop/systemd1/job/1");
        body.string(unit);
        body.string(result);
        message(4, (3, "JobRemoved"), 0, &body)
    }

    #[test]
    fn a_refusal_is_told_in_the_managers_own_words() {
        let (_root, manager, peer) = manager(|stream| {
            let mut body = Writer::default();
            body.string("Unit ostler-a.scope was already loaded.");
            stream.write_all(&message(3, (4, "org.freedesktop.systemd1.UnitExists"), 1, &body)).unwrap();
        });
        let error = manager.contain_me("a", &[Limit::Memory(1 << 30), Limit::Cpu(1500)]).unwrap_err().to_string();
        assert_eq!(error, "systemd refuses: Unit ostler-a.scope was already loaded.");
        let asked = String::from_utf8_lossy(&peer.join().unwrap()).into_owned();
        for words in ["StartTransientUnit", "ssa(sv)a(sa(sv))", "PIDs", "MemoryMax", "CPUQuotaPerSecUSec"] {
            assert!(asked.contains(words), "{words} is missing in {asked:?}");
        }
    }

    #[test]
    fn a_job_that_failed_makes_no_scope_and_other_jobs_are_none_of_ours() {
        let (_root, manager, peer) = manager(|stream| {
            stream.write_all(&removed("dbus.service", "done")).unwrap();
            stream.write_all(&removed("ostler-b.scope", "failed")).unwrap();
        });
        let error = manager.contain_me("b", &[]).unwrap_err().to_string();
        assert_eq!(error, "systemd made no scope: failed");
        peer.join().unwrap();
    }

    #[test]
    fn a_manager_that_only_says_so_is_not_believed() {
        let (_root, manager, peer) = manager(|stream| stream.write_all(&removed("ostler-c.scope", "done")).unwrap());
        let error = manager.contain_me("c", &[]).unwrap_err().to_string();
        assert!(error.contains("this process is not in it"), "{error}");
        peer.join().unwrap();
    }

    #[test]
    fn without_a_manager_there_is_none() {
        assert!(Manager::find(&|_| None).is_none());
        assert!(Manager::find(&|_| Some("/nowhere".to_owned())).is_none());
    }
}
