//! The desktop's notification service, on a private bus: the real bus daemon, and a service that records what it was
//! asked to show.

use crate::{harness, until_senders_are_gone};
use ostler_sys::dbus::{Reader, Writer};
use ostler_testkit::{Harness, Started, patience};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const CALL: u8 = 1;
const RETURN: u8 = 2;

/// Title and text of each notification.
type Shown = Arc<Mutex<Vec<(String, String)>>>;

/// A message with these header fields. All are text except the serial of the message that it answers.
fn message(
    kind: u8,
    serial: u32,
    answers: u32,
    fields: &[(u8, &str, &str)],
    signature: &str,
    body: &Writer,
) -> Vec<u8> {
    let mut message = Writer { bytes: vec![b'l', kind, 0, 1] };
    message.u32(body.bytes.len().try_into().unwrap());
    message.u32(serial);
    message.array(8, |array| {
        for (field, kind, text) in fields {
            array.align(8);
            array.bytes.push(*field);
            array.signature(kind);
            array.string(text);
        }
        if answers > 0 {
            array.align(8);
            array.bytes.push(5);
            array.signature("u");
            array.u32(answers);
        }
        if !signature.is_empty() {
            array.align(8);
            array.bytes.push(8);
            array.signature("g");
            array.signature(signature);
        }
    });
    message.align(8);
    message.bytes.extend(&body.bytes);
    message.bytes
}

/// The parts of a message from the bus that these tests need.
struct Incoming {
    kind: u8,
    serial: u32,
    member: String,
    sender: String,
    body: Vec<u8>,
}

fn read_message(stream: &mut impl Read) -> Option<Incoming> {
    let mut head = [0; 16];
    stream.read_exact(&mut head).ok()?;
    let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let length = number(12) as usize;
    let mut fields = vec![0; length.next_multiple_of(8)];
    stream.read_exact(&mut fields).ok()?;
    let mut body = vec![0; number(4) as usize];
    stream.read_exact(&mut body).ok()?;
    let (mut member, mut sender) = (String::new(), String::new());
    let mut reader = Reader::new(&fields[..length]);
    while !reader.is_at_end() {
        reader.align(8);
        let field = reader.byte().unwrap();
        match (field, reader.signature().unwrap().as_str()) {
            (3, _) => member = reader.string().unwrap(),
            (7, _) => sender = reader.string().unwrap(),
            (_, "u") => _ = reader.u32().unwrap(),
            (_, "g") => _ = reader.signature().unwrap(),
            (_, _) => _ = reader.string().unwrap(),
        }
    }
    Some(Incoming { kind: head[1], serial: number(8), member, sender, body })
}

/// Becomes the notification service of the bus at this socket. The name is acquired when this returns.
fn serve(socket: &Path) -> Shown {
    let mut stream = UnixStream::connect(socket).unwrap();
    let uid = rustix::process::geteuid().as_raw().to_string();
    let hex: String = uid.bytes().map(|byte| format!("{byte:02x}")).collect();
    stream.write_all(format!("\0AUTH EXTERNAL {hex}\r\n").as_bytes()).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.starts_with("OK "), "{line}");
    stream.write_all(b"BEGIN\r\n").unwrap();
    let bus = |member| {
        [
            (1, "o", "/org/freedesktop/DBus"),
            (2, "s", "org.freedesktop.DBus"),
            (3, "s", member),
            (6, "s", "org.freedesktop.DBus"),
        ]
    };
    stream.write_all(&message(CALL, 1, 0, &bus("Hello"), "", &Writer::default())).unwrap();
    let mut name = Writer::default();
    name.string("org.freedesktop.Notifications");
    name.u32(0);
    stream.write_all(&message(CALL, 2, 0, &bus("RequestName"), "su", &name)).unwrap();
    let mut returned = 0;
    while returned < 2 {
        returned += usize::from(read_message(&mut reader).unwrap().kind == RETURN);
    }
    let shown = Shown::default();
    let remembered = shown.clone();
    std::thread::spawn(move || {
        while let Some(incoming) = read_message(&mut reader) {
            if incoming.kind != CALL || incoming.member != "Notify" {
                continue;
            }
            let mut body = Reader::new(&incoming.body);
            assert_eq!(body.string().unwrap(), "ostler");
            let (_replaces, _icon) = (body.u32().unwrap(), body.string().unwrap());
            remembered.lock().unwrap().push((body.string().unwrap(), body.string().unwrap()));
            let mut number = Writer::default();
            number.u32(7);
            let to = [(6, "s", incoming.sender.as_str())];
            stream.write_all(&message(RETURN, 3 + incoming.serial, incoming.serial, &to, "u", &number)).unwrap();
        }
    });
    shown
}

/// A private bus that listens; `None` where the daemon is not installed.
fn start_bus(harness: &Harness) -> Option<(Started, PathBuf)> {
    let (config, socket) = (harness.root().join("bus.conf"), harness.root().join("bus"));
    let text = format!(
        "<busconfig><type>session</type><listen>unix:path={}</listen><auth>EXTERNAL</auth><policy context=\"default\">\
         <allow send_destination=\"*\"/><allow receive_sender=\"*\"/><allow own=\"*\"/></policy></busconfig>",
        socket.display()
    );
    std::fs::write(&config, text).unwrap();
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join("dbus-daemon").exists()));
    if !found {
        eprintln!("skipped: dbus-daemon is not installed");
        return None;
    }
    let mut daemon = harness.command("dbus-daemon");
    daemon.arg(format!("--config-file={}", config.display())).args(["--nofork", "--print-address"]);
    let (daemon, mut lines) = Started::with_lines(daemon);
    let mut address = String::new();
    lines.read_line(&mut address).unwrap();
    assert!(address.contains("unix:path="), "{address}");
    Some((daemon, socket))
}

#[test]
fn a_notification_is_shown_and_without_a_desktop_service_it_is_retried() {
    let mut harness = harness();
    harness.configure("[notify]\ndesktop = true\nmoments = ['asking', 'turn']\n");
    let address = format!("unix:path={}", harness.root().join("bus").display());
    harness.set("DBUS_SESSION_BUS_ADDRESS", address);
    let Some((bus, socket)) = start_bus(&harness) else { return };
    // There is a bus, and no notification service on it.
    let missing = harness.run(&["notify", "test"]).exits(1);
    assert!(missing.stdout.contains("desktop: did not arrive"), "{missing:?}");
    let session = harness.detach(&["--keep", "--name", "tests", "demo", "say <b>one</b> & two"]);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    let shown = serve(&socket);
    let seen = |count: usize| {
        patience::until("the service was asked", &[], || {
            Some(shown.lock().unwrap().clone()).filter(|shown| shown.len() >= count)
        })
    };
    let text = "&lt;b&gt;one&lt;/b&gt; &amp; two".to_owned();
    assert_eq!(seen(1), [("tests has finished its turn".to_owned(), text)]);
    harness.run(&["send", session.id(), "ask me"]).exits(0);
    assert_eq!(seen(2)[1].0, "tests asks");
    let tested = harness.run(&["notify", "test"]).exits(0);
    assert!(tested.stdout.contains("desktop: arrived (shown as notification 7)"), "{tested:?}");
    session.stop();
    until_senders_are_gone(&harness);
    assert_eq!(seen(3).len(), 3);
    bus.kill();
}
