//! Waiting for more of a log, until the session has ended.

use super::{Lines, Log, Piece, Source};
use crate::error::Result;
use crate::request::look_and_record_to;
use crate::session_watch::{News, SessionWatch};
use ostler_sys::notify::Watcher;
use ostler_view::look::Depth;
use ostler_view::recorded;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

/// How often to look for a transcript that does not exist yet: no event reports when an agent creates it. Also used
/// when files cannot be watched.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

/// What is waited for.
pub struct Following {
    watch: SessionWatch,
    /// On the transcript; `None` where the kernel has no more watches.
    files: Option<Watcher>,
    news: News,
}

impl Log<'_> {
    /// Gives what has come and waits for more. Returns false once the session has ended and everything was given.
    pub fn follow(&mut self, lines: Lines, give: &mut dyn FnMut(Piece<'_>)) -> Result<bool> {
        if self.following.is_none() {
            let watch = SessionWatch::new(&self.records.place)?;
            self.following = Some(Following { watch, files: Watcher::new().ok(), news: News::Anything });
            self.watch_transcript()?;
        }
        // The view first: when it says "ended", everything that was printed is in the files.
        let may_have_ended = self.following.as_ref().is_some_and(|following| following.news == News::Anything);
        let ended = may_have_ended && look_and_record_to(Depth::Awaited, &self.records.place)?.ended;
        self.look_for_transcript(give)?;
        self.read_on(lines, ended, give)?;
        if ended {
            self.finish(give);
            return Ok(false);
        }
        self.wait()?;
        Ok(true)
    }

    fn wait(&mut self) -> Result<()> {
        let reads_transcript = self.transcript().is_some();
        let awaits_transcript = self.no_transcript.is_some();
        let Some(Following { watch, files, news }) = &mut self.following else {
            return Ok(());
        };
        let Some(descriptor) = watch.fd() else {
            *news = watch.take_news()?;
            return Ok(());
        };
        let mut fds = vec![PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
        fds.extend(files.as_ref().filter(|_| reads_transcript).map(|files| PollFd::new(files, PollFlags::IN)));
        let must_look = awaits_transcript || reads_transcript && files.is_none();
        match poll(&mut fds, must_look.then_some(&LOOK_AGAIN)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(std::io::Error::from(error).into()),
        }
        let told = !fds[0].revents().is_empty();
        *news = if told { watch.take_news()? } else { News::Output };
        if let Some(files) = files {
            files.changed()?;
        }
        Ok(())
    }

    /// A transcript that has appeared replaces the screen, from its beginning. A transcript that is being read may
    /// continue in another file, when the agent has begun another conversation.
    fn look_for_transcript(&mut self, give: &mut dyn FnMut(Piece<'_>)) -> Result<()> {
        let folder = &self.records.folder;
        if self.no_transcript.is_some() {
            let Some(source) = self.records.transcript()? else {
                return Ok(());
            };
            self.no_transcript = None;
            self.finish(give);
            give(Piece::TranscriptBegins { after_screen: matches!(self.source, Source::Drawn(_)) });
            self.source = source;
            return self.watch_transcript();
        }
        if let Some(reader) = self.transcript()
            && let Some(found) = recorded::Source::find(folder, Some(reader.source()))?
            && !found.is_same(reader.source())
        {
            reader.replace_source(found);
            return self.watch_transcript();
        }
        Ok(())
    }

    fn watch_transcript(&mut self) -> Result<()> {
        let Some(written) = self.transcript().map(|reader| reader.source().written_files()) else {
            return Ok(());
        };
        let Some(Following { files, .. }) = &mut self.following else {
            return Ok(());
        };
        for file in written {
            match files.as_ref().map(|watcher| watcher.watch(&file)) {
                None | Some(Ok(_)) => {}
                Some(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {}
                // No watch is available: we look again at intervals instead.
                Some(Err(_)) => *files = None,
            }
        }
        Ok(())
    }
}
