//! Answers that wait until the test releases them, so that a turn lasts until everything that the test needs has
//! happened.

use std::sync::{Condvar, Mutex, PoisonError};

/// Requests up to this number are answered.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    open: Mutex<u64>,
    moved: Condvar,
    /// Texts of messages that are held although they contain no number.
    words: Mutex<Vec<(String, u64)>>,
}

impl Gate {
    pub fn hold(&self, words: &str, number: u64) {
        self.words.lock().unwrap_or_else(PoisonError::into_inner).push((words.to_owned(), number));
    }

    /// The number that a message waits for.
    pub fn number(&self, text: &str) -> Option<u64> {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let said = words.iter().filter(|(words, _)| text.contains(words)).map(|(_, number)| *number);
        said.chain(held(text)).max()
    }

    pub fn release(&self, up_to: u64) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        *open = (*open).max(up_to);
        self.moved.notify_all();
    }

    pub fn wait_for(&self, number: u64) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // When the client has hung up meanwhile, writing the answer fails.
        drop(self.moved.wait_while(open, |open| *open < number));
    }
}

/// The highest number in `(held N)` in a text.
fn held(text: &str) -> Option<u64> {
    let numbers = text.split("(held ").skip(1).filter_map(|rest| rest.split_once(')')?.0.parse().ok());
    numbers.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_number_counts() {
        assert_eq!(held("say x"), None);
        assert_eq!(held("say x (held 3)"), Some(3));
        assert_eq!(held("(held 2) and (held 11) and (held x)"), Some(11));
    }

    #[test]
    fn what_is_released_waits_no_longer() {
        let gate = Gate::default();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.wait_for(2));
            gate.release(1);
            gate.release(2);
            waiting.join().unwrap_or_else(|_| unreachable!("it only waits"));
        });
        gate.wait_for(1);
    }
}
