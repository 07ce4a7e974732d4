//! Serving the clients of the socket.

use super::clients::Wanted;
use super::{Handled, Keeper, KeeperError};
use crate::control::{self, Order};
use crate::handles;
use crate::wire::Reply;
use ostler_store::journal;
use ostler_sys::clock::since_boot_ms;
use ostler_sys::socket;

impl Keeper {
    /// A client has reported with a signal that it finds no socket although this keeper lives.
    pub(super) fn reopen_listener(&mut self) -> Result<(), KeeperError> {
        if self.folder.dir().stat("sock")?.is_none() {
            let listener = socket::open(self.folder.dir())?;
            if let Some(line) = self.handles.get(handles::HOLDER_LINE) {
                control::order_with_file(line, Order::UseListener, &listener)?;
            }
            self.handles.put(handles::LISTENER, listener);
        }
        Ok(())
    }

    pub(super) fn hear_client(&mut self, index: usize) -> Result<Handled, KeeperError> {
        self.clients.catch_up(index)?;
        loop {
            let wanted = match self.clients.hear(index) {
                Ok(Some(wanted)) => wanted,
                Ok(None) => return Ok(Handled::Something),
                Err(_) => {
                    // The client is gone, or its connection failed. The window goes back to the next client.
                    self.clients.remove(index);
                    self.follow_window()?;
                    return Ok(Handled::Something);
                }
            };
            match wanted {
                Wanted::Request { id } => {
                    self.work_inbox()?;
                    let refused = self.answer_to(&id)?;
                    self.clients.say(index, &Reply::Request { id, refused })?;
                }
                // A client sends no more keys before these are acknowledged.
                Wanted::Keys { position, keys } => {
                    self.take_keys(index, position, &keys)?;
                    return Ok(Handled::Keys);
                }
                Wanted::Window | Wanted::Attached => {
                    let newest = self.clients.move_to_front(index);
                    self.follow_window()?;
                    // Sent last: a client that reads this reply finds that the program's window already has the
                    // client's size, also in the files.
                    self.acknowledge_keys(newest)?;
                    // The client has another index now; its next request is read in the next round.
                    return Ok(Handled::Something);
                }
                Wanted::Begun { slot } => {
                    if let Some(slot) = slot {
                        self.keep_slot(slot);
                        // A waiting process of an older version does not read the reply.
                        let _ = self.clients.say(index, &Reply::HasSlot);
                    }
                    self.look_at_claim()?;
                }
                Wanted::Upgrade { binary } => {
                    self.make_way(index, &binary)?;
                    return Ok(Handled::Something);
                }
            }
        }
    }

    /// The answer to a request: granted, or refused and why.
    fn answer_to(&self, request: &str) -> Result<Option<String>, KeeperError> {
        let unwritten = self.journal.unwritten().find(|entry| entry.request.as_deref() == Some(request));
        let answer = match unwritten {
            Some(entry) => Some(journal::refusal(entry.event.clone())),
            None => journal::answer(self.folder.dir(), request)?,
        };
        Ok(answer.unwrap_or_else(|| Some("there is no such request in the inbox".to_owned())))
    }

    pub(super) fn take_keys(&mut self, index: usize, position: u64, keys: &[u8]) -> Result<(), KeeperError> {
        let attached = self.clients.get(index).and_then(|client| client.attached.clone());
        let Some(attached) = attached.filter(|attached| !attached.read_only) else {
            return Ok(());
        };
        match self.input.keys(&attached.name, position, keys) {
            Ok(received) => self.clients.acknowledge(index, received, since_boot_ms()),
            // The client sends them again when there is room.
            Err(error) if error.is_full_disk() => self.output.disk_is_full(),
            Err(error) => return Err(error.into()),
        }
        self.input.pump(&self.handles)?;
        Ok(())
    }

    pub(super) fn acknowledge_keys(&self, index: usize) -> Result<(), KeeperError> {
        if let Some(attached) = self.clients.get(index).and_then(|client| client.attached.as_ref()) {
            let received = self.input.received(&attached.name);
            self.clients.say(index, &Reply::Keys { received })?;
        }
        Ok(())
    }
}
