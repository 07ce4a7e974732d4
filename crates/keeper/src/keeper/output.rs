//! The agent's output on its way to its files: moved by [`Streams`], as far as there is [`Room`].
//!
//! [`Output`] decides what is moved, held and dropped. The keeper notes in the journal that output is dropped before it
//! drops it, so that missing output is always known to be missing.

use super::output_limits::{Allowed, Now, Room};
use super::streams::{Hold, Streams};
use super::{Keeper, KeeperError};
use crate::ReadBounds;
use crate::handles::{self, Handles};
use ostler_core::event::Event;
use ostler_core::life::Held;
use ostler_core::limits::{OutputBounds, size};
use ostler_core::record::{Mode, Speaks};
use ostler_store::{RunRecord, StoreError};
use ostler_sys::clock::since_boot_ms;
use ostler_sys::dir::{self, Dir};
use rustix::fd::OwnedFd;
use rustix::process::{Resource, getrlimit};
use std::io;

/// Output is dropped up to a multiple of this: the file system frees only whole blocks.
const BLOCK: u64 = 64 * 1024;

pub(super) struct Output {
    streams: Streams,
    room: Room,
    mode: Mode,
    speaks: Speaks,
    /// The file system cannot free the beginning of a file.
    cannot_drop: bool,
}

/// The part of the journal's state that matters here.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// How much was dropped of the output, and of standard error.
    pub dropped: u64,
    pub dropped_err: u64,
    /// The session is to end, or its agent is done.
    pub is_to_end: bool,
}

/// One of the files that output goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputFile {
    Out,
    Err,
}

impl OutputFile {
    fn name(self) -> &'static str {
        match self {
            OutputFile::Out => handles::OUT,
            OutputFile::Err => handles::ERR,
        }
    }
}

/// What is to be dropped: the beginning of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub file: OutputFile,
    pub to: u64,
}

/// The result of moving output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pumped {
    Nothing,
    Moved,
    /// Output waits from now on.
    Held(Hold),
    /// Something has to be dropped first.
    MustDrop(Cut),
}

impl Output {
    pub fn new(record: &RunRecord, run: &Dir, handles: &Handles, settings: ReadBounds) -> io::Result<Output> {
        let mode = record.plan.mode();
        let bounds = OutputBounds { limit: record.output_limit, min_free: record.min_free_space };
        Ok(Output {
            streams: Streams::new(mode, run, handles)?,
            room: Room::new(mode, bounds, settings),
            mode,
            speaks: record.plan.speaks(),
            cannot_drop: false,
        })
    }

    /// How much output there is.
    pub fn end(&self) -> u64 {
        self.streams.end_of(handles::OUT)
    }

    /// What to poll for output.
    pub fn sources<'a>(&self, handles: &'a Handles) -> Vec<&'a OwnedFd> {
        self.streams.sources(handles)
    }

    /// After how long to try again although nothing is ready.
    pub fn again_ms(&self) -> Option<u64> {
        self.streams.held().map(Hold::again_ms).into_iter().chain(self.streams.is_cut_short().then_some(0)).min()
    }

    /// Why nothing moves; `None` when it does.
    pub fn held(&self) -> Option<Hold> {
        self.streams.held()
    }

    /// The disk was full when something else was written.
    pub fn disk_is_full(&mut self) {
        self.streams.hold(Hold::DiskFull);
    }

    /// What held the output is over.
    pub fn release(&mut self) {
        self.streams.release();
    }

    /// Nothing is moved in this round.
    pub fn skip(&mut self) {
        self.streams.skip();
    }

    /// Whether there is too little room on the disk.
    pub fn waits_for_disk(&self) -> bool {
        match self.held() {
            Some(Hold::DiskFull | Hold::LittleSpace { .. }) => true,
            Some(Hold::Limit { .. } | Hold::FileTooLarge) | None => false,
        }
    }

    /// How much waits to be moved.
    pub fn waiting(&self, handles: &Handles) -> io::Result<u64> {
        self.streams.waiting(handles)
    }

    /// Moves everything that is still in the pipes. False when the disk is too full for that.
    pub fn drain(&mut self, handles: &Handles) -> io::Result<bool> {
        self.streams.drain(handles)
    }

    /// Moves output as far as it is allowed.
    pub fn pump(&mut self, handles: &Handles, run: &Dir, told: Told) -> io::Result<Pumped> {
        if self.held().is_some() {
            self.skip();
            return Ok(Pumped::Nothing);
        }
        let mut allowed = self.allowed(run, told)?;
        if matches!(allowed, Allowed::Nothing(_)) {
            self.skip();
            if !self.streams.any_waits(handles)? {
                return Ok(Pumped::Nothing);
            }
            self.room.read_settings();
            allowed = self.allowed(run, told)?;
        }
        match allowed {
            Allowed::Bytes(bytes) => {
                let moved = self.streams.pump(handles, bytes)?;
                self.room.spend(moved);
                if let Some(hold @ Hold::FileTooLarge) = self.held() {
                    return Ok(Pumped::Held(hold));
                }
                Ok(if moved > 0 { Pumped::Moved } else { Pumped::Nothing })
            }
            Allowed::WhenDropped(bytes) => Ok(Pumped::MustDrop(self.oldest(bytes, told))),
            Allowed::Nothing(hold) => {
                self.streams.hold(hold);
                Ok(Pumped::Held(hold))
            }
        }
    }

    /// Checks whether what held the output is over. Returns why it is held now; the reason may have changed.
    /// `has_room`: whether a full disk has room for more than records.
    pub fn try_again(
        &mut self,
        run: &Dir,
        told: Told,
        has_room: impl FnOnce() -> Result<bool, StoreError>,
    ) -> Result<Option<Hold>, KeeperError> {
        let held = match self.held() {
            None => None,
            // The little space that is free is for records: output continues when there is room for more than those.
            Some(Hold::DiskFull) => (!has_room()?).then_some(Hold::DiskFull),
            Some(Hold::FileTooLarge) => {
                let limit = getrlimit(Resource::Fsize).current;
                limit.is_some_and(|limit| self.streams.largest_end() >= limit).then_some(Hold::FileTooLarge)
            }
            Some(Hold::LittleSpace { .. } | Hold::Limit { .. }) => {
                self.room.read_settings();
                self.room.look_again();
                match self.allowed(run, told)? {
                    Allowed::Bytes(_) | Allowed::WhenDropped(_) => None,
                    Allowed::Nothing(hold) => Some(hold),
                }
            }
        };
        match held {
            Some(hold) => self.streams.hold(hold),
            None => self.streams.release(),
        }
        Ok(held)
    }

    fn allowed(&mut self, run: &Dir, told: Told) -> io::Result<Allowed> {
        let kept = self.kept(OutputFile::Out, told) + self.kept(OutputFile::Err, told);
        // A command's output is text for people to read; of an agent's output every line matters.
        let drops_oldest = self.speaks == Speaks::Bytes && !self.cannot_drop;
        let (ms, is_to_end) = (since_boot_ms(), told.is_to_end);
        self.room.allowed(Now { ms, kept, drops_oldest, is_to_end }, self.streams.held(), || dir::space(run))
    }

    /// Whether this many bytes may be written in addition to the output.
    pub fn leaves_min_free(&self, run: &Dir, bytes: u64) -> io::Result<bool> {
        Ok(self.room.leaves_min_free(bytes, dir::space(run)?))
    }

    fn kept(&self, file: OutputFile, told: Told) -> u64 {
        let dropped = match file {
            OutputFile::Out => told.dropped,
            OutputFile::Err => told.dropped_err,
        };
        self.streams.end_of(file.name()).saturating_sub(dropped)
    }

    /// This many bytes of a command's oldest output. The order between the two streams is not known, so the longer one
    /// is cut.
    fn oldest(&self, bytes: u64, told: Told) -> Cut {
        let (out, err) = (self.kept(OutputFile::Out, told), self.kept(OutputFile::Err, told));
        let (file, dropped) =
            if out >= err { (OutputFile::Out, told.dropped) } else { (OutputFile::Err, told.dropped_err) };
        Cut { file, to: (dropped + bytes).next_multiple_of(BLOCK).min(dropped + out.max(err)) }
    }

    /// The oldest output of a terminal that is to be dropped, in large steps and never past the newest snapshot.
    fn oldest_drawn(&self, snapshot: u64, told: Told) -> Option<Cut> {
        let limit = self.room.limit().filter(|_| self.mode == Mode::Terminal && !self.cannot_drop)?;
        let to = self.end().saturating_sub(limit).min(snapshot) / BLOCK * BLOCK;
        (to >= told.dropped + (limit / 8).max(BLOCK)).then_some(Cut { file: OutputFile::Out, to })
    }
}

impl Keeper {
    /// Moves output as far as it is allowed.
    pub(super) fn pump_output(&mut self) -> Result<(), KeeperError> {
        loop {
            match self.output.pump(&self.handles, self.run.dir(), self.told_of_output())? {
                Pumped::Nothing => return Ok(()),
                Pumped::Moved => {
                    self.clients.output_changed();
                    return if self.output.held().is_none() { self.note_release() } else { Ok(()) };
                }
                Pumped::Held(hold) => return self.note_hold(hold),
                Pumped::MustDrop(cut) => self.drop_oldest(cut)?,
            }
        }
    }

    fn told_of_output(&self) -> Told {
        Told {
            dropped: self.state.output.trimmed,
            dropped_err: self.state.output.trimmed_err,
            is_to_end: self.state.stop.is_some() || self.state.is_done() || self.state.has_exited(),
        }
    }

    /// Checks whether what held the output is over.
    pub(super) fn try_output_again(&mut self) -> Result<(), KeeperError> {
        let (folder, told) = (&self.folder, self.told_of_output());
        match self.output.try_again(self.run.dir(), told, || folder.has_room_for_output())? {
            Some(hold) => self.note_hold(hold),
            None => Ok(()),
        }
    }

    fn drop_oldest(&mut self, cut: Cut) -> Result<(), KeeperError> {
        let first = self.state.output.trimmed + self.state.output.trimmed_err == 0;
        if self.drop_to(cut)? && first {
            let limit = size(self.output.room.limit().unwrap_or(0));
            let text = format!(
                "it printed more than output_limit ({limit}), so its oldest output is dropped; raise output_limit in \
                 config.toml before the next run"
            );
            self.note(Event::Alarm { text })?;
        }
        Ok(())
    }

    fn drop_to(&mut self, cut: Cut) -> Result<bool, KeeperError> {
        let (name, to) = (cut.file.name(), cut.to);
        let Some(file) = self.handles.get(name) else {
            self.output.cannot_drop = true;
            return Ok(false);
        };
        if let Err(error) = dir::can_forget_front(file) {
            self.output.cannot_drop = true;
            self.note(Event::Alarm { text: format!("old output cannot be dropped here: {error}") })?;
            return Ok(false);
        }
        self.note(match cut.file {
            OutputFile::Out => Event::Trimmed { to },
            OutputFile::Err => Event::TrimmedErr { to },
        })?;
        if let Some(file) = self.handles.get(name) {
            dir::forget_front(file, to)?;
        }
        Ok(true)
    }

    /// A predecessor may have noted that output is dropped, and was killed before it dropped it.
    pub(super) fn drop_again(&self) -> Result<(), KeeperError> {
        for (name, to) in [(handles::OUT, self.state.output.trimmed), (handles::ERR, self.state.output.trimmed_err)] {
            if let Some(file) = self.handles.get(name).filter(|_| to > 0) {
                dir::forget_front(file, to)?;
            }
        }
        Ok(())
    }

    /// There is a new snapshot of the screen, up to this position: what was drawn long before it may be dropped.
    pub(super) fn trim(&mut self, snapshot: u64) -> Result<(), KeeperError> {
        match self.output.oldest_drawn(snapshot, self.told_of_output()) {
            Some(cut) => self.drop_to(cut).map(drop),
            None => Ok(()),
        }
    }

    /// Output waits from now on, and the reason is shown. For a full disk it is shown by a reserve that is not whole.
    fn note_hold(&mut self, hold: Hold) -> Result<(), KeeperError> {
        let id = self.session.id;
        let (why, remedy) = match hold {
            Hold::DiskFull => return Ok(()),
            Hold::LittleSpace { min_free } => (
                format!("less than min_free_space ({}) is free on the disk", size(min_free)),
                "it continues when there is more".to_owned(),
            ),
            Hold::Limit { limit } => (
                format!("it has reached output_limit ({})", size(limit)),
                format!("raise output_limit in config.toml, or stop it: ostler stop {id}"),
            ),
            Hold::FileTooLarge => (
                "its output file may not grow, because it was started with a limit on the size of files".to_owned(),
                format!("stop it (ostler stop {id}), raise the limit (ulimit -f) and start it again"),
            ),
        };
        let held = Held { why, remedy };
        if self.state.held() == Some(&held) {
            return Ok(());
        }
        self.note(Event::Held { why: held.why, remedy: held.remedy })
    }

    fn note_release(&mut self) -> Result<(), KeeperError> {
        if self.state.held().is_some() && !self.ended_by_request() {
            self.note(Event::Released)?;
        }
        Ok(())
    }

    /// An agent that was held at a full pipe when it was told to end may have had more to write.
    fn ended_by_request(&self) -> bool {
        self.state.stop.is_some() || self.state.steps.terminated || self.state.steps.killed
    }

    /// Whether the rest in the pipes may go to the files, when no process is left that could write to them: it is
    /// little.
    pub(super) fn has_room_for_the_rest(&self) -> Result<bool, KeeperError> {
        match self.output.held() {
            None | Some(Hold::Limit { .. } | Hold::FileTooLarge) => Ok(true),
            // On a full disk the little space that is free is for the records of the end.
            Some(Hold::DiskFull) => Ok(self.folder.has_room_for_output()?),
            Some(Hold::LittleSpace { .. }) => {
                let free = dir::free_space(self.run.dir())?;
                let rest = self.output.waiting(&self.handles)?;
                Ok(ostler_store::disk_reserve::has_for_output(free.saturating_sub(rest)))
            }
        }
    }

    /// The output is complete now: nothing is missing, unless the agent was told to end while its output was held.
    pub(super) fn settle_hold(&mut self) -> Result<(), KeeperError> {
        self.output.release();
        self.note_release()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use ostler_sys::pipes::Pipe;
    use rustix::fs::OFlags;

    const LIMIT: u64 = 256 * 1024;

    /// A run whose agent has printed to its pipes.
    struct Fixture {
        run: Dir,
        handles: Handles,
        agent: OwnedFd,
        _folder: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Fixture {
            let folder = tempfile::tempdir().unwrap();
            let run = Dir::open(folder.path()).unwrap();
            let mut handles = Handles::default();
            let (stdout, passing, stderr) =
                (Pipe::blocking().unwrap(), Pipe::blocking().unwrap(), Pipe::blocking().unwrap());
            handles.put(handles::STDOUT_READ, stdout.read);
            handles.put(handles::STDERR_READ, stderr.read);
            handles.put(handles::PASSING_READ, passing.read);
            handles.put(handles::PASSING_WRITE, passing.write);
            for name in [handles::OUT, handles::ERR] {
                handles.put(name, run.file(name, OFlags::RDWR | OFlags::CREATE).unwrap());
            }
            Fixture { run, handles, agent: stdout.write, _folder: folder }
        }

        fn output(&self, speaks: Speaks, settings: ReadBounds) -> Output {
            let bounds = OutputBounds { limit: Some(LIMIT), min_free: Some(0) };
            Output {
                streams: Streams::new(Mode::Headless, &self.run, &self.handles).unwrap(),
                room: Room::new(Mode::Headless, bounds, settings),
                mode: Mode::Headless,
                speaks,
                cannot_drop: false,
            }
        }

        /// The agent prints this many bytes, a piece at a time, and they are moved as far as allowed.
        fn print(&self, output: &mut Output, bytes: u64) -> Pumped {
            let mut last = Pumped::Nothing;
            for _ in 0..bytes / 1024 {
                rustix::io::write(&self.agent, &[b'x'; 1024]).unwrap();
                match output.pump(&self.handles, &self.run, Told::default()).unwrap() {
                    Pumped::Nothing => {}
                    pumped => last = pumped,
                }
            }
            last
        }
    }

    #[test]
    fn an_agent_at_its_limit_is_held_and_goes_on_with_every_byte_when_that_is_raised() {
        let fixture = Fixture::new();
        let mut output = fixture.output(Speaks::Turns, || Some(OutputBounds { limit: Some(LIMIT), min_free: Some(0) }));
        let held = fixture.print(&mut output, LIMIT + 4096);
        assert_eq!((held, output.end()), (Pumped::Held(Hold::Limit { limit: LIMIT }), LIMIT));
        assert!(output.sources(&fixture.handles).is_empty() && output.again_ms().is_some());
        assert_eq!(output.waiting(&fixture.handles).unwrap(), 4096);
        let again = output.try_again(&fixture.run, Told::default(), || Ok(true)).unwrap();
        assert_eq!(again, Some(Hold::Limit { limit: LIMIT }));

        // The next keeper finds what this one has left, and a higher limit.
        let mut output = fixture.output(Speaks::Turns, || Some(OutputBounds { limit: None, min_free: Some(0) }));
        assert_eq!(output.end(), LIMIT);
        while output.pump(&fixture.handles, &fixture.run, Told::default()).unwrap() == Pumped::Moved {}
        assert_eq!((output.held(), output.end()), (None, LIMIT + 4096));
        assert_eq!(output.waiting(&fixture.handles).unwrap(), 0);
    }

    #[test]
    fn a_command_at_its_limit_drops_whole_blocks_of_the_longer_file() {
        let fixture = Fixture::new();
        let mut output = fixture.output(Speaks::Bytes, || None);
        fixture.print(&mut output, LIMIT);
        let cut = Cut { file: OutputFile::Out, to: LIMIT / 2 };
        assert_eq!(output.pump(&fixture.handles, &fixture.run, Told::default()).unwrap(), Pumped::MustDrop(cut));
        let told = Told { dropped: cut.to, ..Told::default() };
        rustix::io::write(&fixture.agent, b"more").unwrap();
        assert_eq!(output.pump(&fixture.handles, &fixture.run, told).unwrap(), Pumped::Moved);
        assert_eq!(output.end(), LIMIT + 4);
        // Where nothing can be dropped, a command is held like an agent.
        output.cannot_drop = true;
        rustix::io::write(&fixture.agent, b"more").unwrap();
        let held = Pumped::Held(Hold::Limit { limit: LIMIT });
        assert_eq!(output.pump(&fixture.handles, &fixture.run, Told::default()).unwrap(), held);
    }
}
