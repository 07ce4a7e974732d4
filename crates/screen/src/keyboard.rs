//! The kitty keyboard protocol: flags that a program pushes when it starts and pops when it ends, so that the program
//! before it has its own flags again.

use serde::{Deserialize, Serialize};

/// Programs are nested a few deep. Beyond this limit the oldest flags are dropped, as the protocol says.
const DEPTH: usize = 16;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyboardStack(Vec<u8>);

impl KeyboardStack {
    pub(crate) fn push(&mut self, flags: u16) {
        if self.0.len() >= DEPTH {
            self.0.remove(0);
        }
        self.0.push(known(flags));
    }

    pub(crate) fn pop(&mut self, count: usize) {
        self.0.truncate(self.0.len().saturating_sub(count));
    }

    /// Changes the current flags: 1 sets them all, 2 adds some, 3 removes some.
    pub(crate) fn set(&mut self, flags: u16, how: u16) {
        let flags = known(flags);
        let current = self.0.pop().unwrap_or(0);
        self.0.push(match how {
            2 => current | flags,
            3 => current & !flags,
            _ => flags,
        });
    }

    /// Oldest first; the last ones are in force.
    pub(crate) fn flags(&self) -> &[u8] {
        &self.0
    }
}

/// The protocol has five flags.
fn known(flags: u16) -> u8 {
    (flags & 0b1_1111) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popping_brings_back_what_was_before() {
        let mut stack = KeyboardStack::default();
        stack.push(1);
        stack.push(5);
        stack.set(8, 2);
        assert_eq!(stack.flags(), [1, 13]);
        stack.set(1, 3);
        assert_eq!(stack.flags(), [1, 12]);
        stack.pop(1);
        assert_eq!(stack.flags(), [1]);
        stack.pop(99);
        assert_eq!(stack.flags(), [0; 0]);
    }

    #[test]
    fn pushing_without_end_forgets_the_oldest() {
        let mut stack = KeyboardStack::default();
        for flags in 0..1000 {
            stack.push(flags);
        }
        assert_eq!(stack.flags().len(), DEPTH);
        assert_eq!(stack.flags().last(), Some(&known(999)));
    }
}
