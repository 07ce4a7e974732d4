//! Keys that the keeper has not acknowledged yet.
//!
//! The race this solves: a keeper may be killed before it receives a key, or after it has received the key and before
//! it acknowledges it. So every key has a position in all that was typed. Keys that were not acknowledged are sent
//! again, and the keeper sees by their positions which of them it already has. One packet is under way at a time, so
//! that packets cannot overtake each other.

use ostler_keeper::wire::{self, KEYS_AT_ONCE};
use std::time::{Duration, Instant};

/// After this time a packet without an acknowledgement is sent again: the acknowledgement was lost, or the keeper had
/// no room on the disk. There is no event for either.
const RESEND_AFTER: Duration = Duration::from_millis(250);
/// When this many bytes wait, no more keys are read.
const FULL: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct Keys {
    /// How many keys the keeper has.
    acknowledged: u64,
    /// The keys that it has not acknowledged.
    waiting: Vec<u8>,
    under_way: Option<UnderWay>,
}

#[derive(Debug)]
struct UnderWay {
    end: u64,
    since: Instant,
}

impl Keys {
    /// Adds keys.
    pub fn push(&mut self, keys: &[u8]) {
        self.waiting.extend_from_slice(keys);
    }

    /// Whether all keys were acknowledged.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether there is no room for more.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= FULL
    }

    /// What to send now, if anything.
    pub fn packet(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.waiting.is_empty() || self.due().is_some_and(|due| now < due) {
            return None;
        }
        let keys = &self.waiting[..self.waiting.len().min(KEYS_AT_ONCE)];
        self.under_way = Some(UnderWay { end: self.acknowledged + keys.len() as u64, since: now });
        Some(wire::keys(self.acknowledged, keys))
    }

    /// When the packet under way is to be sent again.
    pub fn due(&self) -> Option<Instant> {
        self.under_way.as_ref().map(|packet| packet.since + RESEND_AFTER)
    }

    /// The keeper reports that it has this many keys.
    pub fn acknowledge(&mut self, received: u64) {
        let news = usize::try_from(received.saturating_sub(self.acknowledged)).unwrap_or(usize::MAX);
        let news = news.min(self.waiting.len());
        self.waiting.drain(..news);
        self.acknowledged += news as u64;
        // An acknowledgement of nothing new is an older one, or the disk is full: the packet stays under way.
        if news > 0 || self.under_way.as_ref().is_some_and(|packet| received >= packet.end) {
            self.under_way = None;
        }
    }

    /// The connection goes to another keeper; what was under way to the previous one may be lost.
    pub fn start_again(&mut self) {
        self.under_way = None;
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use ostler_keeper::wire::{Incoming, parse};

    fn sent(typed: &mut Keys, now: Instant) -> Option<(u64, Vec<u8>)> {
        let packet = typed.packet(now)?;
        match parse(&packet) {
            Incoming::Keys { position, keys } => Some((position, keys.to_vec())),
            Incoming::Call(_) | Incoming::Nonsense => None,
        }
    }

    #[test]
    fn one_packet_is_under_way_and_the_next_begins_where_it_was_taken_to() {
        let (mut typed, now) = (Keys::default(), Instant::now());
        typed.push(b"abc");
        assert_eq!(sent(&mut typed, now), Some((0, b"abc".to_vec())));
        typed.push(b"de");
        assert_eq!(sent(&mut typed, now), None);
        typed.acknowledge(2);
        assert_eq!(sent(&mut typed, now), Some((2, b"cde".to_vec())));
        typed.acknowledge(5);
        assert!(typed.is_empty() && sent(&mut typed, now).is_none());
    }

    #[test]
    fn what_a_dead_keeper_did_not_acknowledge_is_sent_again_from_the_same_place() {
        let (mut typed, now) = (Keys::default(), Instant::now());
        typed.push(b"abc");
        typed.packet(now).unwrap();
        typed.start_again();
        assert_eq!(sent(&mut typed, now), Some((0, b"abc".to_vec())));
    }

    #[test]
    fn an_answer_without_news_is_not_answered_in_a_hurry() {
        let (mut typed, now) = (Keys::default(), Instant::now());
        typed.push(b"abc");
        typed.packet(now).unwrap();
        typed.acknowledge(0);
        assert_eq!(sent(&mut typed, now), None);
        assert_eq!(sent(&mut typed, now + RESEND_AFTER), Some((0, b"abc".to_vec())));
    }

    #[test]
    fn a_long_paste_goes_in_pieces_that_fit() {
        let (mut typed, now) = (Keys::default(), Instant::now());
        typed.push(&vec![b'x'; KEYS_AT_ONCE + 5]);
        assert_eq!(sent(&mut typed, now).unwrap().1.len(), KEYS_AT_ONCE);
        typed.acknowledge(KEYS_AT_ONCE as u64);
        assert_eq!(sent(&mut typed, now), Some((KEYS_AT_ONCE as u64, b"xxxxx".to_vec())));
    }
}
