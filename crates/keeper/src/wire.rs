//! The packets between clients and keeper on the session's socket.
//!
//! Packets that begin with `{` are JSON. Keys typed into a terminal are raw: one byte 1, the position of the first key
//! in everything this client has typed, then the keys. The keeper replies how many it has received; after a
//! reconnection the client sends from there, so no key is lost or typed twice, whatever was killed.
//!
//! Neither output nor state is sent here. Clients read the files themselves and are only told that something changed.

use serde::{Deserialize, Serialize};

/// From client to keeper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Call {
    /// The client is to be told whenever anything changes; with `state_only` not when there is only more output.
    Watch {
        #[serde(default, skip_serializing_if = "is_false")]
        state_only: bool,
        /// The client shows the session to a person.
        #[serde(default, skip_serializing_if = "is_false")]
        attended: bool,
    },
    /// The client has put a request into the inbox and asks for the result.
    #[serde(rename = "wish")]
    Request { id: String },
    /// The client shows the terminal to a person; `client` is its name for as long as it lives.
    Attach {
        client: String,
        rows: u16,
        columns: u16,
        #[serde(default)]
        read_only: bool,
    },
    /// The client's window has this size now.
    Resize { rows: u16, columns: u16 },
    /// The program that had to wait runs now. The slot of its queue comes with this packet.
    Begun,
    /// The keeper is to be replaced by one that is started from this binary.
    Upgrade { binary: String },
    #[serde(other)]
    Unknown,
}

/// From keeper to client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum Reply {
    /// Output has changed, or state, or both. Versions without `output_only` do not say which.
    Changed {
        #[serde(default, skip_serializing_if = "is_false")]
        output_only: bool,
    },
    /// The request was granted, or why it was not.
    #[serde(rename = "wish")]
    Request { id: String, refused: Option<String> },
    /// The keeper has received this many keys of the client.
    Keys { received: u64 },
    /// A person is to be notified of this, in the terminal. The text is as the agent wrote it: not yet made safe for a
    /// terminal.
    Notify { title: String, text: String },
    /// The holder and the keeper have the slot of the queue.
    HasSlot,
    /// The keeper exits; its replacement answers on a new connection.
    Upgrading,
    /// The keeper does not exit, and why.
    Staying { why: String },
    #[serde(other)]
    Unknown,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

const KEYS: u8 = 1;

/// The kinds of packets from a client.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming<'a> {
    Call(Call),
    Keys { position: u64, keys: &'a [u8] },
    Nonsense,
}

#[must_use]
pub fn parse(packet: &[u8]) -> Incoming<'_> {
    match packet {
        [KEYS, rest @ ..] => match rest.split_first_chunk::<8>() {
            Some((position, keys)) => Incoming::Keys { position: u64::from_le_bytes(*position), keys },
            None => Incoming::Nonsense,
        },
        json => serde_json::from_slice(json).map_or(Incoming::Nonsense, Incoming::Call),
    }
}

/// A packet of keys.
#[must_use]
pub fn keys(position: u64, keys: &[u8]) -> Vec<u8> {
    let mut packet = vec![KEYS];
    packet.extend(position.to_le_bytes());
    packet.extend(keys);
    packet
}

/// How many keys fit into one packet.
pub const KEYS_AT_ONCE: usize = 32 * 1024;

/// Calls and replies are plain data and always have a JSON form.
#[must_use]
pub fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    serde_json::to_vec(message).unwrap_or_default()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn older_clients_and_keepers_are_compatible() {
        let watch = Call::Watch { state_only: false, attended: false };
        assert_eq!(encode(&watch), br#"{"op":"watch"}"#);
        assert_eq!(parse(br#"{"op":"watch"}"#), Incoming::Call(watch));
        let changed = Reply::Changed { output_only: false };
        assert_eq!(encode(&changed), br#"{"say":"changed"}"#);
        assert_eq!(serde_json::from_slice::<Reply>(br#"{"say":"changed"}"#).unwrap(), changed);

        /// As in versions before `output_only`.
        #[derive(Debug, PartialEq, Deserialize)]
        #[serde(tag = "say", rename_all = "snake_case")]
        enum Before {
            Changed,
        }
        let told = encode(&Reply::Changed { output_only: true });
        assert_eq!(serde_json::from_slice::<Before>(&told).unwrap(), Before::Changed);
    }
}
