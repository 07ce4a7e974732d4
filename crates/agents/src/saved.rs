//! What proves that a turn is in the transcript, and what the turn used.

use ostler_core::fact::Tokens;

/// How a message of ours is found again in an agent's transcript or database.
pub trait Saved {
    /// Strikes out of `wanted` the marks that this row of its database holds.
    fn strike_row(&self, row: &Row<'_>, wanted: &mut Vec<&str>) {
        let _ = (row, wanted);
    }

    /// What to look for in the transcript to know that it has this message: the id that we gave it, where it keeps those.
    fn mark(&self, id: &str, text: &str) -> String {
        let _ = text;
        id.to_owned()
    }

    /// The same for a message that had no id of ours: it came through a protocol.
    fn mark_of_words(&self, text: &str) -> String {
        self.mark("", text)
    }

    /// Strikes out of `wanted` the marks that this whole line of its transcript holds.
    fn strike(&self, line: &[u8], wanted: &mut Vec<&str>) {
        let _ = (line, wanted);
    }

    /// Looks for all these marks in its transcript; other than [`Saved::strike`] where one line is not enough to know.
    fn search<'a>(&'a self, marks: &'a [String]) -> Box<dyn Search + 'a> {
        Box::new(Striking::new(self, marks))
    }

    /// Looks for them in what the conversation is now: an agent may take back what it has written down.
    fn search_conversation<'a>(&'a self, marks: &'a [String]) -> Box<dyn Search + 'a> {
        self.search(marks)
    }

    /// Counts in its transcript what the turn with these marks used, where it does not tell that itself.
    fn count<'a>(&self, marks: &'a [String]) -> Option<Box<dyn Count + 'a>> {
        let _ = marks;
        None
    }

    /// Whether all these marks stand, in whole lines, in its transcript.
    fn transcript_holds(&self, transcript: &[u8], marks: &[String]) -> bool {
        let mut search = self.search(marks);
        let lines = transcript.split_inclusive(|&byte| byte == b'\n').rev();
        lines.filter_map(|line| line.strip_suffix(b"\n")).any(|line| search.line(line)) || search.is_over()
    }
}

/// A search for marks in a transcript.
pub trait Search {
    /// The next whole line, newest first; true when all are found.
    fn line(&mut self, line: &[u8]) -> bool;

    /// Whether all are found.
    fn is_over(&self) -> bool;
}

/// Counts what a turn used.
pub trait Count {
    /// The next whole line of the transcript, newest first; true when the turn is behind us.
    fn line(&mut self, line: &[u8]) -> bool;

    fn tokens(&self) -> Tokens;
}

/// Strikes out what each line holds by itself.
pub(crate) struct Striking<'a, A: ?Sized> {
    agent: &'a A,
    wanted: Vec<&'a str>,
}

impl<'a, A: ?Sized> Striking<'a, A> {
    pub(crate) fn new(agent: &'a A, marks: &'a [String]) -> Striking<'a, A> {
        Striking { agent, wanted: marks.iter().map(String::as_str).collect() }
    }
}

impl<A: Saved + ?Sized> Search for Striking<'_, A> {
    fn line(&mut self, line: &[u8]) -> bool {
        self.agent.strike(line, &mut self.wanted);
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
    /// What the agent wrote about the message, and about the part.
    pub message_data: &'a [u8],
    pub part_data: &'a [u8],
    /// What somebody said before that (milliseconds since 1970) is another message, though it be of the same words.
    pub since_ms: u64,
}
