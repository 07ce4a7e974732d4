//! A program of the user: it gets the message as JSON on its standard input, and in its environment. The message has
//! arrived when the program exits with 0.

use crate::message::Message;
use crate::settings::Command as Settings;
use ostler_sys::process::{Identity, Pidfd};
use ostler_sys::ready::{self, Interest};
use rustix::fd::AsFd;
use rustix::process::Signal;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Runs it, and waits for its exit.
pub fn send(settings: &Settings, message: &Message) -> Result<String, String> {
    let [program, arguments @ ..] = settings.argv.as_slice() else {
        return Err("no program is named".to_owned());
    };
    let failed = |error: std::io::Error| format!("{program}: {error}");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("OSTLER_NOTIFY_ID", &message.id)
        .env("OSTLER_NOTIFY_MOMENT", message.moment.word())
        .env("OSTLER_NOTIFY_SESSION", &message.session)
        .env("OSTLER_NOTIFY_TITLE", &message.title)
        .env("OSTLER_NOTIFY_TEXT", &message.text)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    let body = serde_json::to_vec(message).map_err(|error| error.to_string())?;
    if let Some(mut input) = child.stdin.take() {
        // The message is far smaller than a pipe's buffer, so this does not block. The program need not read it, so an
        // error is ignored.
        let _ = input.write_all(&body);
    }
    if !has_exited(&child, Instant::now() + settings.timeout).map_err(failed)? {
        end(&mut child).map_err(failed)?;
        return Err(format!("{program} takes longer than {} s and was killed", settings.timeout.as_secs_f64()));
    }
    let status = child.wait().map_err(failed)?;
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok("exit code 0".to_owned()),
        (Some(code), _) => Err(format!("{program}: exit code {code}")),
        (None, signal) => Err(format!("{program}: killed by signal {}", signal.unwrap_or(0))),
    }
}

/// Waits until the program has exited, or the time is up.
fn has_exited(child: &Child, until: Instant) -> std::io::Result<bool> {
    let pid = i32::try_from(child.id()).map_err(std::io::Error::other)?;
    let Some(pidfd) = Identity::of(pid)?.map(|process| Pidfd::open(&process)).transpose()?.flatten() else {
        return Ok(true);
    };
    Ok(ready::wait(&[Interest::read(pidfd.as_fd())], Some(until))?.contains(&true))
}

/// Kills the program and its whole process group. The program was not reaped before, so the id still belongs to its
/// group.
fn end(child: &mut Child) -> std::io::Result<()> {
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        rustix::process::kill_process_group(pid, Signal::KILL)?;
    }
    child.wait().map(|_| ())
}
