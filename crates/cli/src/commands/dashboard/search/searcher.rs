//! The search in another thread: it always takes the newest query, so that keys never wait for a result.

use crate::context::Context;
use crate::exit::{Failure, Result};
use ostler_engine::search::{Hits, Progress, Query};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};

/// How many hits are listed.
const MOST: usize = 200;
/// Progress of reading into the index is reported in this many steps.
const STEPS: u64 = 50;

/// What the searcher sends.
pub enum Heard {
    /// Conversations are first read into the index: `read` of `all` bytes.
    Progress { read: u64, all: u64 },
    /// The result for this text.
    Found { text: String, found: std::result::Result<Hits, String> },
}

pub struct Searcher {
    questions: Sender<String>,
    heard: Receiver<Heard>,
}

impl Searcher {
    /// `waker` is written to when the searcher has sent something.
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

    /// What the searcher has sent, without waiting.
    pub fn heard(&self) -> Vec<Heard> {
        self.heard.try_iter().collect()
    }
}

/// Errors are ignored: the dashboard may be gone.
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

/// The last word may be unfinished, so it is searched as the beginning of a word. An excluded word is taken as it is.
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
