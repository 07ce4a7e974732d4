//! The search beside the dashboard: one thread that takes the newest question, so that keys never wait for an answer.

use crate::context::Context;
use crate::exit::{Failure, Result};
use ostler_engine::search::{Hits, Progress, Query};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};

/// So many hits are listed.
const MOST: usize = 200;
/// Reading into the index is told of in steps of this part of the whole.
const STEPS: u64 = 50;

/// What is heard of a search.
pub enum Heard {
    /// Conversations are read into the index first: so many bytes of so many.
    Progress { read: u64, all: u64 },
    /// What was found for this text.
    Found { text: String, found: std::result::Result<Hits, String> },
}

pub struct Searcher {
    questions: Sender<String>,
    heard: Receiver<Heard>,
}

impl Searcher {
    /// `waker` is written to when there is something to hear.
    pub fn start(waker: UnixStream) -> Result<Searcher> {
        let (questions, asked) = channel::<String>();
        let (sender, heard) = channel();
        let work = move || {
            while let Ok(first) = asked.recv() {
                let text = asked.try_iter().last().unwrap_or(first);
                let found = search(&text, |progress| tell(&sender, &waker, progress));
                tell(&sender, &waker, Heard::Found { text, found: found.map_err(|failure| failure.to_string()) });
            }
        };
        std::thread::Builder::new().spawn(work)?;
        Ok(Searcher { questions, heard })
    }

    pub fn ask(&self, text: String) {
        // The thread ends only with the dashboard.
        let _ = self.questions.send(text);
    }

    /// What has been heard, without waiting.
    pub fn heard(&self) -> Vec<Heard> {
        self.heard.try_iter().collect()
    }
}

/// The dashboard may be gone; then nothing needs to be told.
fn tell(sender: &Sender<Heard>, mut waker: &UnixStream, heard: Heard) {
    let _ = sender.send(heard);
    let _ = waker.write(&[1]);
}

fn search(text: &str, tell: impl Fn(Heard)) -> Result<Hits> {
    let context = Context::new()?;
    let query = Query { words: vec![question(text)], most: MOST, ..Query::default() };
    let mut step = None;
    context
        .engine
        .search_with_progress(&query, &mut |Progress { read, all, .. }| {
            let now = read.saturating_mul(STEPS).checked_div(all);
            if now > step {
                step = now;
                tell(Heard::Progress { read, all });
            }
        })
        .map_err(Failure::from)
}

/// The last word may not be finished yet: its beginning counts. What is excluded is excluded as it stands.
fn question(text: &str) -> String {
    let unfinished = text.chars().last().is_some_and(char::is_alphanumeric)
        && text.matches('"').count().is_multiple_of(2)
        && !text.split_whitespace().last().is_some_and(|word| word.starts_with('-'));
    if unfinished { format!("{text}*") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::question;

    #[test]
    fn a_word_that_is_being_typed_counts_by_its_beginning() {
        let asked = ["fail", "the fail", "fail ", "fail*", "\"in a phr", "\"a phrase\"", "a -not"].map(question);
        assert_eq!(asked, ["fail*", "the fail*", "fail ", "fail*", "\"in a phr", "\"a phrase\"", "a -not"]);
    }
}
