//! A conversation, as text for a person or as objects for a program: by what the agent told us, or by its own transcript.

use super::json::to_json;
use super::sink::{All, Side, Sink};
use crate::exit::Result;
use crate::ui::conversation::Talk;
use crate::ui::style::Style;
use jiff::Timestamp;
use ostler_store::folder::Folder;
use ostler_view::conversation::{Item, Reader, Start};
use ostler_view::recorded;

/// How a conversation is shown.
pub struct Manner {
    pub json: bool,
    pub style: Style,
    pub columns: Option<usize>,
}

pub struct Said<'a> {
    from: From<'a>,
    manner: Manner,
    talk: Talk,
}

enum From<'a> {
    /// What the agent told us.
    Told { folder: &'a Folder, reader: Box<Reader<'a>> },
    /// Its transcript.
    Transcript(Box<recorded::Reader>),
}

impl<'a> Said<'a> {
    pub fn told(folder: &'a Folder, manner: Manner) -> Said<'a> {
        Said::new(From::Told { folder, reader: Box::new(Reader::new(folder, 1)) }, manner)
    }

    pub fn recorded(reader: recorded::Reader, manner: Manner) -> Said<'a> {
        Said::new(From::Transcript(Box::new(reader)), manner)
    }

    fn new(from: From<'a>, manner: Manner) -> Said<'a> {
        let talk = Talk::new(manner.style, manner.columns);
        Said { from, manner, talk }
    }

    /// The transcript that is read, if one is.
    pub fn transcript(&mut self) -> Option<&mut recorded::Reader> {
        match &mut self.from {
            From::Told { .. } => None,
            From::Transcript(reader) => Some(reader),
        }
    }

    /// Begins again, with what came since then and about so much before the end; says whether that is all.
    pub fn rewind(&mut self, size: Option<u64>, since: Option<Timestamp>) -> Result<All> {
        self.talk = Talk::new(self.manner.style, self.manner.columns);
        match &mut self.from {
            From::Told { folder, reader } => {
                let first = match since {
                    Some(since) => Reader::start_since(folder, since)?,
                    None => Start { run: 1, position: 0 },
                };
                let (start, all) = match size {
                    Some(size) => Reader::start_before_end(folder, size)?,
                    None => (first, true),
                };
                let is_earlier = (start.run, start.position) <= (first.run, first.position);
                **reader = Reader::starting(folder, if is_earlier { first } else { start });
                Ok(All::of_out(all || is_earlier))
            }
            From::Transcript(reader) => Ok(All::of_out(reader.rewind(size.unwrap_or(u64::MAX))?)),
        }
    }

    /// `ended`: nothing more will come.
    pub fn read_on(&mut self, sink: &mut Sink, ended: bool) -> Result<()> {
        let Said { from, manner, talk } = self;
        let mut show = |item: Item, at: Option<Timestamp>| -> Result<()> {
            if !sink.wants(at) {
                return Ok(());
            }
            if manner.json {
                return sink.object(to_json(&item), at);
            }
            let (mut said, mut about) = (String::new(), String::new());
            talk.show(&item, &mut said, &mut about);
            sink.text(Side::Out, at, said.as_bytes())?;
            sink.text(Side::Out, at, about.as_bytes())
        };
        match from {
            From::Told { reader, .. } => reader.read_timed(show),
            From::Transcript(reader) => reader.read_on(ended, &mut show),
        }
    }
}
