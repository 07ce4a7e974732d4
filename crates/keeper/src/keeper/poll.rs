//! What may wake a keeper. While nothing is due there is no timeout: an idle session costs no wake-up at all.

use super::Keeper;
use super::clients::Clients;
use super::streams::FULL_DISK_MS;
use crate::handles;
use ostler_sys::clock::since_boot_ms;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::time::Timespec;
use std::io;

/// What woke the keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    Signals,
    Line,
    Holder,
    Agent,
    Output,
    Room,
    Listener,
    Client(usize),
    Proof,
    OwnRecord,
    Snapshot,
    Sender(usize),
    Timer,
    TurnSnapshot,
    Preparing,
    HandingOver,
}

impl Keeper {
    pub(super) fn poll(&self) -> io::Result<Vec<Woken>> {
        let mut kinds = Vec::new();
        let mut fds = Vec::new();
        let full = (!self.journal.is_written()).then_some(FULL_DISK_MS);
        let full = full.into_iter().chain(self.output.again_ms()).min().map(|ms| since_boot_ms() + ms);
        let typing = self.terminal.due_ms();
        let own_record = self.own_record.as_ref().and_then(|watch| watch.due_ms);
        let due = [self.wake_ms, full, typing, own_record, self.clients.due_ms(), self.sender_due_ms()];
        let timeout = self.timers.timeout_ms(due.into_iter().flatten().min()).map(|wait| Timespec {
            tv_sec: i64::try_from(wait / 1000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(wait % 1000).unwrap_or(0) * 1_000_000,
        });
        // Only now, because a timer may have been made just above.
        for (kind, handle, flags) in self.watched() {
            kinds.push(kind);
            fds.push(PollFd::from_borrowed_fd(handle, flags));
        }
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(kinds.into_iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty()).map(|(kind, _)| kind).collect())
    }

    /// Everything that may wake the keeper.
    pub(super) fn watched(&self) -> Vec<(Woken, BorrowedFd<'_>, PollFlags)> {
        let named = |name| self.handles.get(name).map(AsFd::as_fd);
        let own_record = self.own_record.as_ref().and_then(|watch| watch.watcher.as_ref());
        let single = [
            (Woken::Signals, Some(self.signals.as_fd())),
            (Woken::Line, named(handles::HOLDER_LINE)),
            (Woken::Holder, self.holder.process().map(AsFd::as_fd)),
            (Woken::Agent, named(handles::AGENT).filter(|_| !self.agent_exited)),
            (Woken::Listener, named(handles::LISTENER)),
            (Woken::Proof, self.proof.watcher().map(AsFd::as_fd)),
            (Woken::OwnRecord, own_record.map(AsFd::as_fd)),
            (Woken::Snapshot, self.terminal.snapshots.process().map(AsFd::as_fd)),
            (Woken::TurnSnapshot, self.turn_snapshots.process().map(AsFd::as_fd)),
            (Woken::Preparing, self.preparing.process().map(AsFd::as_fd)),
            (Woken::HandingOver, self.handing_over.as_ref().map(|errand| errand.process().as_fd())),
        ];
        let mut watched: Vec<_> =
            single.into_iter().filter_map(|(kind, handle)| Some((kind, handle?, PollFlags::IN))).collect();
        watched.extend(self.timers.watched().map(|(kind, timer)| (kind, timer, PollFlags::IN)));
        // The newest first, as with clients.
        let senders: Vec<_> = self.senders.processes().enumerate().collect();
        watched.extend(senders.into_iter().rev().map(|(n, sender)| (Woken::Sender(n), sender.as_fd(), PollFlags::IN)));
        if !self.terminal.snapshots.are_behind(self.output.end()) {
            let sources = self.output.sources(&self.handles);
            watched.extend(sources.into_iter().map(|source| (Woken::Output, source.as_fd(), PollFlags::IN)));
        }
        watched.extend(self.input.sink(&self.handles).map(|sink| (Woken::Room, sink.as_fd(), PollFlags::OUT)));
        // Newest first, so that the removal of a client does not change the index of one that is still to be handled.
        for (index, client) in self.clients.list().iter().enumerate().rev() {
            let behind = if Clients::is_behind(client) { PollFlags::OUT } else { PollFlags::empty() };
            watched.push((Woken::Client(index), client.socket.as_fd(), PollFlags::IN | behind));
        }
        watched
    }
}
