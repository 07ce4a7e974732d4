//! Reads what the agent reports and turns it into facts: its output (or what its hooks write), and its standard error
//! if retries are reported there.
//!
//! Bytes that are not understood stay in the files. A reader begins where the running turn begins, so that it knows as
//! much about the turn as its predecessor did, and returns only facts that are not in the journal.

use super::{About, Keeper, KeeperError};
use ostler_agents::{Agent, decoder};
use ostler_core::event::Event;
use ostler_core::fact::Fact;
use ostler_core::life::{LongLine, State, event_of};
use ostler_core::record::{Mode, Plan, Session};
use ostler_store::StoreError;
use ostler_store::growing_file::Pieces;
use ostler_store::progress::Heard;
use ostler_sys::clock;
use ostler_sys::dir::Dir;
use ostler_view::agent_feed::AgentFeed;

/// After how many bytes a line without end is noted again: a client reads everything that is not understood yet, and
/// with such a line that would become more and more.
const LONG_LINE_NOTED: u64 = 64 << 20;

#[derive(Default)]
pub(super) struct Reader {
    output: Option<AgentFeed>,
    errors: Option<AgentFeed>,
}

/// What can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Output,
    Errors,
}

impl Reader {
    /// A reader for this agent. A command reports nothing.
    pub fn of(agent: &'static dyn Agent, session: &Session, plan: &Plan, state: &State) -> Reader {
        let output = decoder::agent_feed(agent, plan.speaks())
            .map(|source| AgentFeed::from(state.output.turn_begins, source, state, session));
        let errors = agent
            .error_reader()
            .filter(|_| plan.mode() == Mode::Headless)
            .map(|decoder| AgentFeed::of_errors(state.output.err_read, decoder));
        Reader { output, errors }
    }

    fn feed(&mut self, source: Source) -> Option<&mut AgentFeed> {
        match source {
            Source::Output => self.output.as_mut(),
            Source::Errors => self.errors.as_mut(),
        }
    }

    /// What there is to read now.
    pub fn open(&mut self, source: Source, run: &Dir) -> Result<Option<Pieces>, StoreError> {
        self.feed(source).map_or(Ok(None), |feed| feed.pieces(run))
    }

    /// New facts of the next piece, each with the position behind its line; `None` when there is no further piece.
    pub fn read(&mut self, source: Source, pieces: &mut Pieces) -> Result<Option<Vec<(u64, Fact)>>, StoreError> {
        self.feed(source).map_or(Ok(None), |feed| feed.read(pieces))
    }

    /// What reads the output, if anything does.
    pub fn output(&mut self) -> Option<&mut AgentFeed> {
        self.output.as_mut()
    }

    /// Whether anything is read from the output.
    pub fn hears_output(&self) -> bool {
        self.output.is_some()
    }

    /// How far the output is read.
    pub fn position(&self) -> u64 {
        self.output.as_ref().map_or(0, AgentFeed::position)
    }

    /// The same, with the state to remember at that position.
    pub fn heard(&self, run: u32) -> Option<Heard> {
        self.output.as_ref().and_then(|output| output.heard(run))
    }

    /// The agent's ids of what it has said in a turn that is not over.
    pub fn messages_so_far(&self) -> Vec<String> {
        self.output.as_ref().map(AgentFeed::messages_so_far).unwrap_or_default()
    }

    /// A line without end that has grown far beyond what is noted of it.
    fn long_line(&self, known: u64) -> Option<LongLine> {
        self.output.as_ref().and_then(AgentFeed::long_line).filter(|line| line.to >= known + LONG_LINE_NOTED)
    }
}

impl Keeper {
    /// Reads what the agent has said and folds it in.
    pub(super) fn understand(&mut self) -> Result<(), KeeperError> {
        self.understand_errors()?;
        let Some(mut pieces) = self.reader.open(Source::Output, self.run.dir())? else {
            return Ok(());
        };
        while let Some(told) = self.reader.read(Source::Output, &mut pieces)? {
            self.apply_facts(told)?;
        }
        let known = self.state.output.long_line.map_or(0, |line| line.to);
        match self.reader.long_line(known) {
            Some(LongLine { start, to }) => self.note(Event::LongLine { start, to }),
            None => Ok(()),
        }
    }

    /// Reads what is new on the agent's standard error. Before its output: an answer there comes after the retry.
    fn understand_errors(&mut self) -> Result<(), KeeperError> {
        let Some(mut pieces) = self.reader.open(Source::Errors, self.run.dir())? else {
            return Ok(());
        };
        while let Some(told) = self.reader.read(Source::Errors, &mut pieces)? {
            for (end, fact) in told {
                if let Fact::Retrying(retry) = fact
                    && self.state.turn_running()
                {
                    self.note(Event::Retrying { retry, err: Some(end) })?;
                }
            }
        }
        Ok(())
    }

    fn apply_facts(&mut self, told: Vec<(u64, Fact)>) -> Result<(), KeeperError> {
        let mut told = told.into_iter().peekable();
        while let Some((end, fact)) = told.next() {
            if let Fact::ReplyDue { name, line } = fact {
                // Until a later event is noted, a replacement keeper finds this again, and puts in only what is
                // missing.
                self.put_in(&name, line)?;
                continue;
            }
            if let Fact::Behind { agent } = fact {
                self.learn_behind(agent)?;
                continue;
            }
            if let Fact::Recalled { last, times } = fact {
                self.recall(&last, times)?;
                continue;
            }
            if let Fact::Native { id } = &fact {
                self.go_over_to(id)?;
            }
            // A line is understood only with the last of its facts: a keeper that is killed before that has a
            // replacement that reads the line again.
            let out = told.peek().is_none_or(|(next, _)| *next != end).then_some(end);
            if let Some(event) = event_of(fact.resolved(clock::now()), &self.state) {
                self.note_about(About { out, ..About::default() }, event)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use ostler_agents::decoder::Decoder;
    use std::io::Write;

    /// Every line is the name of a conversation.
    struct Names;

    impl Decoder for Names {
        fn line(&mut self, line: &[u8], facts: &mut Vec<Fact>) {
            facts.push(Fact::Native { id: String::from_utf8_lossy(line).into_owned() });
        }

        fn messages_so_far(&self) -> Vec<String> {
            Vec::new()
        }
    }

    fn new_facts(reader: &mut Reader, run: &Dir) -> Vec<(u64, Fact)> {
        let mut facts = Vec::new();
        let Some(mut pieces) = reader.open(Source::Errors, run).unwrap() else {
            return facts;
        };
        while let Some(told) = reader.read(Source::Errors, &mut pieces).unwrap() {
            facts.extend(told);
        }
        facts
    }

    #[test]
    fn whole_lines_are_told_once_and_the_next_reader_goes_on_behind_them() {
        let folder = tempfile::tempdir().unwrap();
        let run = Dir::open(folder.path()).unwrap();
        let named = |end, id: &str| (end, Fact::Native { id: id.to_owned() });
        let reader = |position| {
            let errors = Some(AgentFeed::of_errors(position, Box::new(Names)));
            Reader { output: None, errors }
        };
        let mut first = reader(0);
        assert_eq!(new_facts(&mut first, &run), [], "there is no file yet");
        let mut file = std::fs::File::create(folder.path().join("err")).unwrap();
        file.write_all(b"one\ntw").unwrap();
        assert_eq!(new_facts(&mut first, &run), [named(4, "one")]);
        assert_eq!(new_facts(&mut first, &run), []);
        file.write_all(b"o\n").unwrap();
        assert_eq!(new_facts(&mut first, &run), [named(8, "two")]);
        // As if the first reader was killed after it had noted the first line.
        assert_eq!(new_facts(&mut reader(4), &run), [named(8, "two")]);
        assert!(!first.hears_output() && first.open(Source::Output, &run).unwrap().is_none());
    }
}
