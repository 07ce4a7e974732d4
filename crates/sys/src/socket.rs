//! The socket of a session: in its folder, and it keeps message boundaries.
//!
//! It is reached through `/proc/self/fd/<folder>/sock`, because a socket's name may have only 108 bytes and a home may
//! be deeper. Only connections of the same user or of root are answered.

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect,
    getsockname, listen, recv, send, socket_with, socketpair,
};
use std::io;

use crate::dir::Dir;

/// The largest packet that is ever sent.
pub const PACKET: usize = 64 * 1024;

const KIND: SocketType = SocketType::SEQPACKET;

fn address(folder: &Dir) -> io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new(format!("/proc/self/fd/{}/sock", folder.as_fd().as_raw_fd()))?)
}

/// Opens the socket. A socket left over by a process that died is replaced; the caller makes sure that no process uses
/// it.
pub fn open(folder: &Dir) -> io::Result<OwnedFd> {
    folder.remove("sock")?;
    let socket = without_name()?;
    open_as(&socket, folder)?;
    Ok(socket)
}

/// A socket without a name, which cannot be found yet.
pub fn without_name() -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, KIND, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    // Its name in the folder will have this mode from the beginning.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    Ok(socket)
}

/// Opens the socket in this folder, in which its name is not taken. Several processes that share the socket may do so
/// at once: the second one finds it done.
pub fn open_as(socket: &OwnedFd, folder: &Dir) -> io::Result<()> {
    if !has_name(socket)?
        && let Err(error) = bind(socket, &address(folder)?)
        && !(matches!(error, Errno::ADDRINUSE | Errno::INVAL) && will_have_name(socket)?)
    {
        return Err(error.into());
    }
    Ok(listen(socket, 4096)?)
}

/// Whether another process is giving the socket its name just now. Linux before 5.14 shows the name in the folder a
/// moment before it belongs to the socket.
fn will_have_name(socket: &OwnedFd) -> io::Result<bool> {
    for _ in 0..1000 {
        if has_name(socket)? {
            return Ok(true);
        }
        rustix::thread::sched_yield();
    }
    Ok(false)
}

fn has_name(socket: &OwnedFd) -> io::Result<bool> {
    Ok(SocketAddrUnix::try_from(getsockname(socket)?)?.path_bytes().is_some())
}

/// A connection to the keeper of the session; `None` when there is none. As long as one of the two helpers lives the
/// socket is open, so this waits for a restarting keeper and never fails because of it.
pub fn reach(folder: &Dir) -> io::Result<Option<OwnedFd>> {
    let socket = socket_with(AddressFamily::UNIX, KIND, SocketFlags::CLOEXEC, None)?;
    loop {
        match connect(&socket, &address(folder)?) {
            Ok(()) => return Ok(Some(socket)),
            // NOTDIR: a packed session is a file. It has no keeper, and so no socket.
            Err(Errno::CONNREFUSED | Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The next client that waits, if it belongs to our user or to root. Other connections are closed without an answer.
pub fn accept(listener: impl AsFd) -> io::Result<Option<OwnedFd>> {
    let client = match accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
        Ok(client) => client,
        Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let peer = rustix::net::sockopt::socket_peercred(&client)?;
    let me = rustix::process::geteuid();
    Ok((peer.uid == me || peer.uid.is_root()).then_some(client))
}

/// Two connected ends, for two processes of ours.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, KIND, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?)
}

/// The result of reading or writing one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    Done(usize),
    NotNow,
    HungUp,
}

pub fn receive(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<Packet> {
    loop {
        match recv(socket.as_fd(), &mut *buffer, RecvFlags::empty()) {
            Ok((0, _)) | Err(Errno::CONNRESET | Errno::PIPE) => return Ok(Packet::HungUp),
            Ok((length, _)) => return Ok(Packet::Done(length)),
            Err(Errno::AGAIN) => return Ok(Packet::NotNow),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

pub fn transmit(socket: impl AsFd, bytes: &[u8]) -> io::Result<Packet> {
    loop {
        match send(socket.as_fd(), bytes, SendFlags::NOSIGNAL) {
            Ok(length) => return Ok(Packet::Done(length)),
            Err(Errno::AGAIN) => return Ok(Packet::NotNow),
            Err(Errno::CONNRESET | Errno::PIPE | Errno::NOTCONN) => return Ok(Packet::HungUp),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sends one open file along with a packet.
pub fn transmit_with_file(socket: impl AsFd, bytes: &[u8], file: impl AsFd) -> io::Result<()> {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, sendmsg};
    let files = [file.as_fd()];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(socket, &[io::IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives one packet and the open file that may come with it.
pub fn receive_with_file(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<(Packet, Option<OwnedFd>)> {
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, recvmsg};
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = match recvmsg(socket, &mut [io::IoSliceMut::new(buffer)], &mut control, RecvFlags::CMSG_CLOEXEC) {
        Ok(received) => received,
        Err(Errno::AGAIN | Errno::INTR) => return Ok((Packet::NotNow, None)),
        Err(Errno::CONNRESET | Errno::PIPE) => return Ok((Packet::HungUp, None)),
        Err(error) => return Err(error.into()),
    };
    let mut file = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            file = files.into_iter().last();
        }
    }
    Ok((if received.bytes == 0 { Packet::HungUp } else { Packet::Done(received.bytes) }, file))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn several_may_open_one_place_at_once_and_it_is_found_as_soon_as_one_has() {
        for _ in 0..200 {
            let home = tempfile::tempdir().unwrap();
            let folder = Dir::open(home.path()).unwrap();
            let place = without_name().unwrap();
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        open_as(&place, &folder).unwrap();
                        assert!(reach(&folder).unwrap().is_some());
                    });
                }
            });
            assert!(accept(&place).unwrap().is_some());
            let mode = home.path().join("sock").metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn a_name_in_use_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let folder = Dir::open(home.path()).unwrap();
        let _theirs = open(&folder).unwrap();
        let error = open_as(&without_name().unwrap(), &folder).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
