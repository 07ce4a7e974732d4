//! A record that is read again: its text, and where its parts are in the file.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

/// A record of a file.
#[derive(Debug)]
pub struct Placed {
    pub start: u64,
    pub text: Vec<u8>,
    /// Whether a newline follows directly.
    ended: bool,
}

impl Placed {
    /// Reads the record that begins here.
    ///
    /// # Errors
    /// When the file cannot be read, or has changed since it was examined.
    pub fn read(mut source: impl Read + Seek, start: u64) -> io::Result<Placed> {
        source.seek(SeekFrom::Start(start))?;
        let mut text = Vec::new();
        let mut piece = vec![0; 16 << 10];
        let mut ended = false;
        loop {
            let count = source.read(&mut piece)?;
            if count == 0 {
                break;
            }
            if let Some(end) = memchr::memchr(b'\n', &piece[..count]) {
                text.extend_from_slice(&piece[..end]);
                ended = true;
                break;
            }
            text.extend_from_slice(&piece[..count]);
        }
        let mut reader = serde_json::Deserializer::from_slice(&text).into_iter::<IgnoredAny>();
        match reader.next() {
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return Err(changed()),
        }
        let end = reader.byte_offset();
        let whole = text[end..].iter().all(u8::is_ascii_whitespace);
        text.truncate(end);
        Ok(Placed { start, text, ended: ended && whole })
    }

    #[must_use]
    pub fn end(&self) -> u64 {
        self.start + self.text.len() as u64
    }

    /// The end of the record's line, if the record is alone on it.
    #[must_use]
    pub fn line_end(&self) -> u64 {
        self.end() + u64::from(self.ended)
    }

    /// Its fields.
    ///
    /// # Errors
    /// When the file has changed since it was examined.
    pub fn fields<'a, T: Deserialize<'a>>(&'a self) -> io::Result<T> {
        serde_json::from_slice(&self.text).map_err(|_| changed())
    }

    /// The position of one of its values in the file.
    #[must_use]
    pub fn place_of(&self, value: &RawValue) -> Range<u64> {
        let offset = (value.get().as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize) as u64;
        self.start + offset..self.start + offset + value.get().len() as u64
    }
}

fn changed() -> io::Error {
    io::Error::other("the file changed while it was read")
}
