//! What was said in a session, or what its program printed or drew, and what is added from now on.
//!
//! * `said`: a conversation, from the output of the agent or from its transcript. `json`: its parts as objects.
//! * `printed`: what a program printed. `drawn`: what one drew on a terminal, as text.
//! * `follow`: waiting for more.
//! * `foreign`: a conversation that belongs to no session.
//!
//! The last lines of a long log are found from its end: a part of the end is read, and a larger part when the first was
//! too small.

mod drawn;
mod follow;
mod foreign;
mod json;
mod printed;
mod refusal;
mod said;
mod whole;

pub use json::{ItemObject, to_json};
pub use refusal::{LogRefusal, Untimed};
pub use whole::end_of_whole;

use crate::engine::Engine;
use crate::error::Result;
use drawn::Drawn;
use follow::Following;
use jiff::Timestamp;
use ostler_core::record::{Mode, Speaks};
use ostler_store::folder::Folder;
use ostler_store::home::Place;
use ostler_view::conversation::Item;
use ostler_view::look::{Depth, look_at};
use ostler_view::recorded;
use ostler_view::write_outcome;
use printed::Streams;
use said::Said;

/// What is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The bytes of the program, as it wrote them.
    pub raw: bool,
    /// The text of its screen, also where there is a conversation.
    pub screen: bool,
    /// Only a conversation; anything else is refused.
    pub conversation: bool,
    /// Each line with its time.
    pub timed: bool,
    /// Nothing from before this time, as far as times are known.
    pub since: Option<Timestamp>,
}

/// One of the two streams of a program. Conversations and screens have only the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Its standard output.
    Out,
    /// Its standard error.
    Err,
}

/// What a log consists of.
#[derive(Debug)]
pub enum Piece<'a> {
    /// A part of a conversation.
    Item {
        /// What was said or done.
        item: Item,
        /// When, if that is known.
        at: Option<Timestamp>,
    },
    /// A part of what was printed or drawn.
    Text {
        /// To which stream.
        side: Side,
        /// When, if it was asked for and is known.
        at: Option<Timestamp>,
        /// Safe for a terminal, unless raw bytes were asked for.
        bytes: &'a [u8],
    },
    /// This many bytes of older output are gone.
    Dropped(u64),
    /// The transcript has appeared meanwhile: what follows is the conversation from its beginning.
    TranscriptBegins {
        /// Whether text of the screen was given before.
        after_screen: bool,
    },
}

/// Whether what is printed is given as it comes or in whole lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// Raw bytes as they come.
    AsTheyCome,
    /// Only whole lines.
    Whole,
}

/// For each stream, whether all of it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct All {
    /// All of standard output.
    pub out: bool,
    /// All of standard error.
    pub err: bool,
}

impl All {
    /// For a log that has one stream.
    #[must_use]
    pub fn of_out(out: bool) -> All {
        All { out, err: true }
    }
}

/// An agent that has not written its transcript, or whose transcript is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoTranscript {
    /// The agent whose transcript is missing.
    pub agent: String,
    /// Whether the session has ended, so that none will come.
    pub ended: bool,
    /// Whether the text of its screen is given in its place; otherwise nothing is.
    pub gives_screen: bool,
}

/// The records of a session, from which logs are read.
pub struct Records {
    place: Place,
    folder: Folder,
}

impl Engine {
    /// Opens the records of a session. The end of a session that ended without a keeper is part of its log, and is
    /// recorded first.
    pub fn records(&self, place: &Place) -> Result<Records> {
        let folder = place.open()?;
        if folder.newest_run()? == 0 {
            return Err(LogRefusal::NeverRan { id: place.id }.into());
        }
        if !place.archived && folder.newest_outcome()?.1.is_none() && folder.dir().is_ours()? {
            write_outcome::record_if_lost(&folder, &look_at(Depth::Standing, &folder, false)?)?;
        }
        Ok(Records { place: place.clone(), folder })
    }
}

/// What is shown.
enum Source<'a> {
    Said(Box<Said<'a>>),
    Printed(Box<Streams<'a>>),
    Drawn(Box<Drawn<'a>>),
    /// Nothing yet: the agent has not created its transcript.
    Nothing,
}

/// A log that is being read.
pub struct Log<'a> {
    records: &'a Records,
    source: Source<'a>,
    /// Why there is no conversation although one is expected. `follow` gives it as soon as it exists.
    no_transcript: Option<NoTranscript>,
    following: Option<Following>,
}

impl Records {
    /// The log that is asked for.
    pub fn log(&self, request: &Request) -> Result<Log<'_>> {
        let folder = &self.folder;
        let plan = folder.run(folder.newest_run()?)?.record()?.plan;
        let draws = plan.mode() == Mode::Terminal;
        if request.screen && !draws {
            return Err(LogRefusal::NoScreen.into());
        }
        let mut no_transcript = None;
        let source = if request.raw || plan.speaks() == Speaks::Bytes && !draws {
            self.printed(request, draws)?
        } else if !draws {
            Source::Said(Box::new(Said::told(folder)))
        } else if request.screen {
            self.drawn(request)?
        } else if let Some(source) = self.transcript()? {
            source
        } else if recorded::is_kept(folder)? {
            let gives_screen = !request.conversation && request.since.is_none() && !request.timed;
            let (agent, ended) = (folder.session()?.agent, folder.newest_outcome()?.1.is_some());
            no_transcript = Some(NoTranscript { agent, ended, gives_screen });
            if gives_screen { self.drawn(request)? } else { Source::Nothing }
        } else {
            self.drawn(request)?
        };
        Ok(Log { records: self, source, no_transcript, following: None })
    }

    /// Whether the session is archived, so that nothing is added any more.
    #[must_use]
    pub fn are_archived(&self) -> bool {
        self.place.archived
    }

    fn printed(&self, request: &Request, draws: bool) -> Result<Source<'_>> {
        if request.conversation {
            return Err(LogRefusal::CommandHasNone.into());
        }
        let streams = Streams::new(&self.folder, request.raw, request.timed)?;
        if request.since.is_some() || request.timed {
            if draws {
                return Err(LogRefusal::NoTimes(Untimed::Screen).into());
            }
            if !streams.has_times()? {
                return Err(LogRefusal::NoTimes(Untimed::OlderVersion).into());
            }
        }
        Ok(Source::Printed(Box::new(streams)))
    }

    fn drawn(&self, request: &Request) -> Result<Source<'_>> {
        if request.conversation {
            return Err(LogRefusal::ScreenIsNone.into());
        }
        if request.since.is_some() || request.timed {
            return Err(LogRefusal::NoTimes(Untimed::Screen).into());
        }
        Ok(Source::Drawn(Box::new(Drawn::new(&self.folder)?)))
    }

    fn transcript(&self) -> Result<Option<Source<'_>>> {
        let reader = recorded::Source::find(&self.folder, None)?.and_then(recorded::Reader::new);
        Ok(reader.map(|reader| Source::Said(Box::new(Said::Transcript(Box::new(reader))))))
    }
}

impl Log<'_> {
    /// Why there is no conversation, although one is expected.
    #[must_use]
    pub fn no_transcript(&self) -> Option<&NoTranscript> {
        self.no_transcript.as_ref()
    }

    /// Starts again with what came since `since`; with a size, only with about the last `size` bytes of that. Returns
    /// whether that is all of it.
    pub fn rewind(
        &mut self,
        size: Option<u64>,
        since: Option<Timestamp>,
        give: &mut dyn FnMut(Piece<'_>),
    ) -> Result<All> {
        match &mut self.source {
            Source::Said(said) => said.rewind(size, since),
            Source::Printed(streams) => streams.rewind(size, since, give),
            Source::Drawn(drawn) => drawn.rewind(give),
            Source::Nothing => Ok(All::of_out(true)),
        }
    }

    /// Gives what has come since the last call. `ended`: nothing more will come.
    pub fn read_on(&mut self, lines: Lines, ended: bool, give: &mut dyn FnMut(Piece<'_>)) -> Result<()> {
        match &mut self.source {
            Source::Said(said) => said.read_on(ended, give),
            Source::Printed(streams) => streams.read_on(lines, give),
            Source::Drawn(drawn) => drawn.read_on(give),
            Source::Nothing => Ok(()),
        }
    }

    /// Gives the incomplete lines, because their ends will not come any more.
    pub fn finish(&mut self, give: &mut dyn FnMut(Piece<'_>)) {
        match &mut self.source {
            Source::Printed(streams) => streams.finish(give),
            Source::Drawn(drawn) => drawn.finish(give),
            Source::Said(_) | Source::Nothing => {}
        }
    }

    fn transcript(&mut self) -> Option<&mut recorded::Reader> {
        match &mut self.source {
            Source::Said(said) => said.transcript(),
            Source::Printed(_) | Source::Drawn(_) | Source::Nothing => None,
        }
    }
}
