//! What a session says, prints or draws, as it grows: each call reads what is new, from files alone. No keeper has to
//! be running.
//!
//! * `conversation`: what was said and done, as typed items.
//! * `printed`: the bytes of a program, both streams.
//! * `drawn`: what a program draws on its terminal, as text.
//! * `program_screen`: the screen of a program as it is now, with its colours.

mod conversation;
mod drawn;
mod printed;
mod program_screen;

pub use conversation::{Conversation, Item};
pub use drawn::Drawn;
pub use printed::{Piece, Printed, Stream};
pub use program_screen::ProgramScreen;

use crate::engine::Engine;
use crate::error::Result;
use ostler_core::record::Channel;
use ostler_store::home::Place;

/// The kind of content that a session has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It draws on a terminal.
    Terminal,
    /// An agent without a terminal: its conversation.
    Conversation,
    /// A command: what it prints.
    Command,
}

/// Which runs of a session are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// From the first on.
    All,
    /// From the newest on.
    Newest,
}

/// The content of a session.
#[derive(Debug)]
pub enum Content {
    /// What was said and done.
    Conversation(Box<Conversation>),
    /// What it prints.
    Printed(Printed),
    /// What it draws, as text.
    Drawn(Box<Drawn>),
}

impl Engine {
    /// The kind of content that a session has.
    pub fn kind(&self, place: &Place) -> Result<Kind> {
        let folder = place.open()?;
        let plan = folder.run(folder.newest_run()?)?.record()?.plan;
        Ok(match plan.channel {
            Channel::Tty(_) => Kind::Terminal,
            Channel::Lines(_) => Kind::Conversation,
            Channel::Command => Kind::Command,
        })
    }

    /// Whether a session takes messages and reports when it has finished with one.
    pub fn converses(&self, place: &Place) -> Result<bool> {
        let folder = place.open()?;
        Ok(folder.run(folder.newest_run()?)?.record()?.plan.speaks().converses())
    }

    /// The content of a session, of the kind that it has. `runs`: the runs whose conversation is read.
    pub fn content(&self, place: &Place, runs: Runs) -> Result<Content> {
        let folder = place.open()?;
        let plan = folder.run(folder.newest_run()?)?.record()?.plan;
        Ok(match plan.channel {
            Channel::Lines(_) => Content::Conversation(Box::new(self.conversation(place, runs)?)),
            Channel::Tty(_) => Content::Drawn(Box::new(Drawn::open(folder)?)),
            Channel::Command => Content::Printed(Printed::open(folder)?),
        })
    }

    /// What was said and done in a session, from its first or its newest run on.
    pub fn conversation(&self, place: &Place, runs: Runs) -> Result<Conversation> {
        Conversation::open(place.open()?, runs)
    }

    /// The same from about this many bytes before its current end, and whether that is all of it.
    pub fn conversation_lately(&self, place: &Place, bytes: u64) -> Result<(Conversation, bool)> {
        Conversation::near_the_end(place.open()?, bytes)
    }

    /// The screen of a terminal session.
    pub fn program_screen(&self, place: &Place) -> Result<ProgramScreen> {
        ProgramScreen::open(&place.open()?)
    }

    /// What the newest run of a session has printed, from the beginning of what is still there.
    pub fn printed(&self, place: &Place) -> Result<Printed> {
        Printed::open(place.open()?)
    }

    /// The same, from about this many bytes before its current end.
    pub fn printed_lately(&self, place: &Place, bytes: u64) -> Result<Printed> {
        Printed::near_the_end(place.open()?, bytes)
    }

    /// The text on the screen of a terminal session now, row by row, without the empty rows at its end.
    pub fn screen_text(&self, place: &Place) -> Result<Vec<String>> {
        let folder = place.open()?;
        let at = ostler_view::terminal::now(folder.run(folder.newest_run()?)?.dir())?;
        let mut rows = at.screen.text();
        rows.truncate(rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1));
        Ok(rows)
    }
}
