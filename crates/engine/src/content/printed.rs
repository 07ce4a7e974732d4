//! What a program prints: the bytes of both streams, as they come.

use crate::error::{Error, Result};
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::growing_file::read_from;
use ostler_store::printed;

/// One of the two streams of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

impl Stream {
    const BOTH: [Stream; 2] = [Stream::Out, Stream::Err];

    fn file(self) -> &'static str {
        match self {
            Stream::Out => "out",
            Stream::Err => "err",
        }
    }
}

/// A part of what was printed.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// As it was printed.
    Bytes(&'a [u8]),
    /// This many bytes were dropped because the output grew too long.
    Dropped(u64),
}

/// What the newest run of a session prints.
#[derive(Debug)]
pub struct Printed {
    folder: Folder,
    run: RunFolder,
    /// How far each stream has been read.
    positions: [u64; 2],
}

impl Printed {
    pub(super) fn open(folder: Folder) -> Result<Printed> {
        let run = folder.run(folder.newest_run()?)?;
        let begins = |stream: Stream| printed::begins(&folder, &run, stream.file());
        let positions = [begins(Stream::Out)?, begins(Stream::Err)?];
        Ok(Printed { folder, run, positions })
    }

    /// Begins about this many bytes before the end; each stream begins with a whole line.
    pub(super) fn near_the_end(folder: Folder, bytes: u64) -> Result<Printed> {
        let run = folder.run(folder.newest_run()?)?;
        let mut positions = [0; 2];
        for (position, stream) in positions.iter_mut().zip(Stream::BOTH) {
            let size = run.dir().stat(stream.file())?.map_or(0, |stat| stat.size);
            let Some(start) = size.checked_sub(bytes) else { continue };
            let (mut end, mut tail) = (start, Vec::new());
            read_from(run.dir(), stream.file(), &mut end, |bytes| tail.extend_from_slice(bytes))?;
            let skipped = tail.iter().position(|&byte| byte == b'\n').map_or(0, |end| end + 1);
            *position = start + skipped as u64;
        }
        Ok(Printed { folder, run, positions })
    }

    /// How many bytes of both streams come before the next byte that is read.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.positions.iter().sum()
    }

    /// What has been printed since the last call.
    pub fn read<E: From<Error>>(
        &mut self,
        mut each: impl FnMut(Stream, Piece<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let Printed { folder, run, positions } = self;
        for (position, stream) in positions.iter_mut().zip(Stream::BOTH) {
            let mut result = Ok(());
            let read = printed::read_on(folder, run, stream.file(), position, |part| {
                if result.is_ok() {
                    result = each(
                        stream,
                        match part {
                            printed::Printed::Bytes(bytes) => Piece::Bytes(bytes),
                            printed::Printed::Dropped(bytes) => Piece::Dropped(bytes),
                        },
                    );
                }
            });
            read.map_err(Error::from)?;
            result?;
        }
        Ok(())
    }
}
