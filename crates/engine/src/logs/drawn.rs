//! What a program drew on its terminal, as text.

use super::{All, Piece, Side};
use crate::error::Result;
use ostler_screen::PlainText;
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::printed;
use ostler_view::terminal::{self, Replay};

/// The output of a terminal session, replayed as text.
pub struct Drawn<'a> {
    folder: &'a Folder,
    run: RunFolder,
    replay: Replay,
    /// `None` before the first `rewind`, and after `finish`.
    text: Option<Box<PlainText>>,
}

impl<'a> Drawn<'a> {
    pub fn new(folder: &'a Folder) -> Result<Drawn<'a>> {
        let run = folder.run(folder.newest_run()?)?;
        Ok(Drawn { folder, run, replay: Replay::from(0), text: None })
    }

    /// Starts at the beginning: what is on a screen depends on everything that was drawn before.
    pub fn rewind(&mut self, give: &mut dyn FnMut(Piece<'_>)) -> Result<All> {
        let begins = printed::begins(self.folder, &self.run, "out")?;
        if begins > 0 {
            give(Piece::Dropped(begins));
        }
        self.replay = Replay::from(begins);
        self.text = Some(Box::new(PlainText::new(terminal::first_window(self.run.dir())?)));
        Ok(All::of_out(true))
    }

    pub fn read_on(&mut self, give: &mut dyn FnMut(Piece<'_>)) -> Result<()> {
        let Some(text) = &mut self.text else {
            return Ok(());
        };
        let mut give = |piece: &str| give(Piece::Text { side: Side::Out, at: None, bytes: piece.as_bytes() });
        self.replay.read_on(self.run.dir(), |drawn| match drawn {
            terminal::Drawn::Bytes(bytes) => text.feed(bytes, &mut give),
            terminal::Drawn::Resized(size) => text.resize(size, &mut give),
        })?;
        Ok(())
    }

    pub fn finish(&mut self, give: &mut dyn FnMut(Piece<'_>)) {
        if let Some(text) = self.text.take() {
            text.finish(&mut |piece| give(Piece::Text { side: Side::Out, at: None, bytes: piece.as_bytes() }));
        }
    }
}
