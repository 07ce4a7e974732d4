//! What proves that a turn is in the transcript, and what the turn used.

use ostler_core::fact::Tokens;

/// How a message of ours is found again in an agent's transcript or database.
pub trait Saved {
    /// Removes from `wanted` the marks that this row of its database contains.
    fn remove_found_in_row(&self, row: &Row<'_>, wanted: &mut Vec<&str>) {
        let _ = (row, wanted);
    }

    /// What to search for in the transcript to prove that it has this message: our id of it, if the agent keeps that.
    fn mark(&self, id: &str, text: &str) -> String {
        let _ = text;
        id.to_owned()
    }

    /// The same for a message that had no id of ours: it came through a protocol.
    fn mark_of_words(&self, text: &str) -> String {
        self.mark("", text)
    }

    /// Removes from `wanted` the marks that this complete line of its transcript contains.
    fn remove_found(&self, line: &[u8], wanted: &mut Vec<&str>) {
        let _ = (line, wanted);
    }

    /// A search for all these marks in its transcript; different from [`Saved::remove_found`] where one line is not enough.
    fn search<'a>(&'a self, marks: &'a [String]) -> Box<dyn Search + 'a> {
        Box::new(LineSearch::new(self, marks))
    }

    /// A search in the present conversation only: an agent may take back what it has written.
    fn search_conversation<'a>(&'a self, marks: &'a [String]) -> Box<dyn Search + 'a> {
        self.search(marks)
    }

    /// Counts from its transcript what the turn with these marks used, if the agent does not report that itself.
    fn count<'a>(&self, marks: &'a [String]) -> Option<Box<dyn Count + 'a>> {
        let _ = marks;
        None
    }

    /// Whether its transcript contains all these marks, in complete lines.
    fn transcript_holds(&self, transcript: &[u8], marks: &[String]) -> bool {
        let mut search = self.search(marks);
        let lines = transcript.split_inclusive(|&byte| byte == b'\n').rev();
        lines.filter_map(|line| line.strip_suffix(b"\n")).any(|line| search.line(line)) || search.is_over()
    }
}

/// A search for marks in a transcript.
pub trait Search {
    /// The next complete line, newest first; returns true when all marks are found.
    fn line(&mut self, line: &[u8]) -> bool;

    /// Whether all marks are found.
    fn is_over(&self) -> bool;
}

/// Counts what a turn used.
pub trait Count {
    /// The next complete line of the transcript, newest first; returns true when all lines of the turn have been read.
    fn line(&mut self, line: &[u8]) -> bool;

    fn tokens(&self) -> Tokens;
}

/// Removes the marks that each line contains by itself.
pub(crate) struct LineSearch<'a, A: ?Sized> {
    agent: &'a A,
    wanted: Vec<&'a str>,
}

impl<'a, A: ?Sized> LineSearch<'a, A> {
    pub(crate) fn new(agent: &'a A, marks: &'a [String]) -> LineSearch<'a, A> {
        LineSearch { agent, wanted: marks.iter().map(String::as_str).collect() }
    }
}

impl<A: Saved + ?Sized> Search for LineSearch<'_, A> {
    fn line(&mut self, line: &[u8]) -> bool {
        self.agent.remove_found(line, &mut self.wanted);
        self.is_over()
    }

    fn is_over(&self) -> bool {
        self.wanted.is_empty()
    }
}

/// A row of an agent's database: a part of a message of one conversation.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    pub part: &'a str,
    /// The agent's data about the message, and about the part.
    pub message_data: &'a [u8],
    pub part_data: &'a [u8],
    /// A message from before this time (milliseconds since 1970) is another message, even if it has the same text.
    pub since_ms: u64,
}
