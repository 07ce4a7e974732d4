//! What a program drew on its terminal, as text.

use super::sink::{All, Side, Sink};
use crate::exit::Result;
use crate::follow::say_dropped;
use ostler_screen::PlainText;
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::printed;
use ostler_view::terminal::{self, Replay};

pub struct Drawn<'a> {
    folder: &'a Folder,
    run: RunFolder,
    replay: Replay,
    /// `None` once all of it has been handed out.
    text: Option<Box<PlainText>>,
}

impl<'a> Drawn<'a> {
    pub fn new(folder: &'a Folder) -> Result<Drawn<'a>> {
        let run = folder.run(folder.newest_run()?)?;
        Ok(Drawn { folder, run, replay: Replay::from(0), text: None })
    }

    /// From the beginning: what stands on a screen depends on everything that was drawn.
    pub fn rewind(&mut self) -> Result<All> {
        let begins = printed::begins(self.folder, &self.run, "out")?;
        say_dropped(begins);
        self.replay = Replay::from(begins);
        self.text = Some(Box::new(PlainText::new(terminal::first_window(self.run.dir())?)));
        Ok(All::of_out(true))
    }

    pub fn read_on(&mut self, sink: &mut Sink) -> Result<()> {
        let Some(text) = &mut self.text else {
            return Ok(());
        };
        let mut result = Ok(());
        let mut give = |piece: &str| {
            if result.is_ok() {
                result = sink.text(Side::Out, None, piece.as_bytes());
            }
        };
        self.replay.read_on(self.run.dir(), |drawn| match drawn {
            terminal::Drawn::Bytes(bytes) => text.feed(bytes, &mut give),
            terminal::Drawn::Resized(size) => text.resize(size, &mut give),
        })?;
        result
    }

    pub fn finish(&mut self, sink: &mut Sink) -> Result<()> {
        let mut result = Ok(());
        if let Some(text) = self.text.take() {
            text.finish(&mut |piece| {
                if result.is_ok() {
                    result = sink.text(Side::Out, None, piece.as_bytes());
                }
            });
        }
        result
    }
}
