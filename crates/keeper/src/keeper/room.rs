//! How much output may move.
//!
//! Two things bound it, so that a program that prints without end harms nobody else. A run may print `output_limit`: the
//! oldest output of a command is dropped there, and an agent, whose every line counts, is held at its full pipe. And no
//! session prints while less than `min_free_space` is free on the file system.
//!
//! The file system is asked again after a part of the room that it had, so that sessions that print at the same time do not
//! go far below together. While output is held, and only then, a timer asks again, and reads the settings again.

use super::streams::Hold;
use super::{FULL_DISK_MS, Keeper, KeeperError};
use crate::{Settings, handles};
use ostler_core::event::Event;
use ostler_core::life::Held;
use ostler_core::limits::{default_min_free, size};
use ostler_core::record::{Mode, Speaks};
use ostler_store::RunRecord;
use ostler_sys::clock::since_boot_ms;
use ostler_sys::dir;
use std::io;

/// No more moves between two looks at the file system.
const MOST: u64 = 8 << 20;
/// Where there is little room, so much at least.
const LEAST: u64 = 64 * 1024;
/// Others may have filled the file system since the last look, if that was so long ago.
const STALE_MS: u64 = 500;
/// How often output that is held at its limit is tried again: only a person can change that.
const LIMIT_MS: u64 = 1000;
/// So much more may be written by a session that is to end, for the last words of its agent, or an eighth of a small limit.
const LAST_WORDS: u64 = 16 << 20;
/// So much is dropped at once, or half of a small limit.
const LEAST_DROPPED: u64 = 4 << 20;
/// Output is dropped up to a multiple of this: a block of the file system is given back as a whole.
const BLOCK: u64 = 64 * 1024;

pub(super) struct Room {
    limit: Option<u64>,
    min_free: Option<u64>,
    settings: Settings,
    /// What may move before the file system is looked at again, and when it was looked at.
    left: u64,
    looked_ms: u64,
    min_free_in_force: u64,
    /// What a session that is to end has written below `min_free_space`, and whether it does.
    last_words: u64,
    spends_last_words: bool,
    /// The file system cannot give back the beginning of a file.
    cannot_drop: bool,
}

impl Room {
    pub(super) fn new(record: &RunRecord, settings: Settings) -> Room {
        Room {
            limit: record.output_limit,
            min_free: record.min_free_space,
            settings,
            left: 0,
            looked_ms: 0,
            min_free_in_force: 0,
            last_words: 0,
            spends_last_words: false,
            cannot_drop: false,
        }
    }

    /// So much was written.
    fn spend(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes);
        if self.spends_last_words {
            self.last_words += bytes;
        }
    }
}

impl Hold {
    /// When to try again.
    pub(super) fn again_ms(self) -> u64 {
        match self {
            Hold::DiskFull | Hold::LittleSpace { .. } => FULL_DISK_MS,
            Hold::Limit { .. } => LIMIT_MS,
        }
    }
}

/// One of the files that output goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Out,
    Err,
}

impl Keeper {
    /// Moves output as far as it may go. True when anything was moved.
    pub(super) fn pump_output(&mut self) -> Result<bool, KeeperError> {
        if self.streams.held.is_some() {
            self.streams.cut_short = false;
            return Ok(false);
        }
        let mut allowed = self.allowed()?;
        if allowed.is_err() {
            self.streams.cut_short = false;
            if !self.streams.any_waits(&self.handles)? {
                return Ok(false);
            }
            self.read_settings();
            allowed = self.allowed()?;
        }
        let allowed = match allowed {
            Ok(allowed) => allowed,
            Err(hold) => return self.hold(hold).map(|()| false),
        };
        let moved = self.streams.pump(&self.handles, allowed)?;
        self.room.spend(moved);
        if moved > 0 && self.streams.held.is_none() {
            self.note_release()?;
        }
        Ok(moved > 0)
    }

    /// Looks whether what held output is over.
    pub(super) fn try_output_again(&mut self) -> Result<(), KeeperError> {
        let over = match self.streams.held {
            None => return Ok(()),
            // What little is free is for records: output goes on when there is room for more than those.
            Some(Hold::DiskFull) => self.folder.has_room_for_output()?,
            Some(Hold::LittleSpace { .. } | Hold::Limit { .. }) => {
                self.read_settings();
                self.room.left = 0;
                match self.allowed()? {
                    Ok(_) => true,
                    // Why it is held may have changed.
                    Err(hold) => {
                        self.hold(hold)?;
                        false
                    }
                }
            }
        };
        if over {
            self.streams.held = None;
        }
        Ok(())
    }

    /// The limit of a terminal is another setting, and nobody waits there.
    fn read_settings(&mut self) {
        if let Some(now) = (self.room.settings)() {
            self.room.min_free = now.min_free;
            if self.record.plan.mode() == Mode::Headless {
                self.room.limit = now.limit;
            }
        }
    }

    /// How much may move now, or why nothing may.
    fn allowed(&mut self) -> Result<Result<u64, Hold>, KeeperError> {
        let by_limit = self.below_limit()?;
        if by_limit == 0 {
            return Ok(Err(Hold::Limit { limit: self.room.limit.unwrap_or(0) }));
        }
        if self.room.left == 0 || since_boot_ms() >= self.room.looked_ms + STALE_MS {
            self.look_at_disk()?;
        }
        if self.room.left == 0 {
            return Ok(Err(Hold::LittleSpace { min_free: self.room.min_free_in_force }));
        }
        Ok(Ok(self.room.left.min(by_limit)))
    }

    fn look_at_disk(&mut self) -> io::Result<()> {
        let space = dir::space(self.run.dir())?;
        let min_free = self.room.min_free.unwrap_or_else(|| default_min_free(space.total));
        // Who was held goes on only when there is a little more, so that it is not held again at once.
        let more =
            if matches!(self.streams.held, Some(Hold::LittleSpace { .. })) { (min_free / 8).min(64 << 20) } else { 0 };
        let room = &mut self.room;
        (room.looked_ms, room.min_free_in_force) = (since_boot_ms(), min_free);
        room.spends_last_words = false;
        room.left = match space.free.checked_sub(min_free + more) {
            // A disk that is for us alone is filled to the end, and then it says so itself.
            _ if min_free == 0 => MOST,
            Some(spare) => (spare / 16).clamp(spare.min(LEAST), MOST),
            None => 0,
        };
        if room.left == 0 && self.is_to_end() {
            let room = &mut self.room;
            room.spends_last_words = true;
            // Half of what is there at most: the records of the end, and those of others, need room as well.
            let last_words = LAST_WORDS.min(min_free / 8).min(space.free / 2);
            room.left = last_words.saturating_sub(room.last_words).min(MOST);
            if !ostler_store::room::has_for_output(space.free) {
                room.left = 0;
            }
        }
        Ok(())
    }

    /// Whether so much may be written beside the output.
    pub(super) fn leaves_min_free(&self, bytes: u64) -> io::Result<bool> {
        let space = dir::space(self.run.dir())?;
        let min_free = self.room.min_free.unwrap_or_else(|| default_min_free(space.total));
        Ok(min_free == 0 || space.free.saturating_sub(bytes) >= min_free)
    }

    /// Somebody wants it to end, or its agent is done: what it says now is the end of what it has to say.
    fn is_to_end(&self) -> bool {
        self.state.stop.is_some() || self.state.is_done() || self.state.has_exited()
    }

    /// How much may be written before the limit of the run is reached. Makes room by dropping where output may be dropped.
    fn below_limit(&mut self) -> Result<u64, KeeperError> {
        // The output of a terminal is dropped when there is a snapshot of its screen.
        let Some(limit) = self.room.limit.filter(|_| self.record.plan.mode() == Mode::Headless) else {
            return Ok(u64::MAX);
        };
        let kept = self.kept(Stream::Out) + self.kept(Stream::Err);
        if kept < limit {
            return Ok(limit - kept);
        }
        if self.drops_oldest() {
            // Not too little at once: each time is an entry in the journal.
            let part = (limit / 8).max((limit / 2).min(LEAST_DROPPED));
            self.drop_oldest(kept - (limit - part))?;
            let kept = self.kept(Stream::Out) + self.kept(Stream::Err);
            return Ok(limit.saturating_sub(kept));
        }
        let last_words = if self.is_to_end() { LAST_WORDS.min(limit / 8) } else { 0 };
        Ok((limit + last_words).saturating_sub(kept))
    }

    /// A command's output is text that somebody may read; of an agent's, every line counts.
    fn drops_oldest(&self) -> bool {
        self.record.plan.speaks() == Speaks::Bytes && !self.room.cannot_drop
    }

    fn kept(&self, stream: Stream) -> u64 {
        let (name, dropped) = match stream {
            Stream::Out => (handles::OUT, self.state.output.trimmed),
            Stream::Err => (handles::ERR, self.state.output.trimmed_err),
        };
        self.streams.end_of(name).saturating_sub(dropped)
    }

    /// Drops so many bytes of what a command printed first. What it printed where is not known across the two streams, so the
    /// longer one gives.
    fn drop_oldest(&mut self, bytes: u64) -> Result<(), KeeperError> {
        let first = self.state.output.trimmed + self.state.output.trimmed_err == 0;
        let (out, err) = (self.kept(Stream::Out), self.kept(Stream::Err));
        let (stream, dropped) = if out >= err {
            (Stream::Out, self.state.output.trimmed)
        } else {
            (Stream::Err, self.state.output.trimmed_err)
        };
        let to = (dropped + bytes).next_multiple_of(BLOCK).min(dropped + out.max(err));
        if self.drop_to(stream, to)? && first {
            let limit = size(self.room.limit.unwrap_or(0));
            let text = format!(
                "it printed more than output_limit ({limit}), so its oldest output is dropped; raise output_limit in \
                 config.toml before the next run"
            );
            self.note(Event::Alarm { text })?;
        }
        Ok(())
    }

    /// Notes it first: what is missing is always known to be.
    fn drop_to(&mut self, stream: Stream, to: u64) -> Result<bool, KeeperError> {
        let (name, event) = match stream {
            Stream::Out => (handles::OUT, Event::Trimmed { to }),
            Stream::Err => (handles::ERR, Event::TrimmedErr { to }),
        };
        let Some(file) = self.handles.get(name) else {
            return Ok(false);
        };
        if let Err(error) = dir::can_forget_front(file) {
            self.room.cannot_drop = true;
            self.note(Event::Alarm { text: format!("old output cannot be dropped here: {error}") })?;
            return Ok(false);
        }
        self.note(event)?;
        if let Some(file) = self.handles.get(name) {
            dir::forget_front(file, to)?;
        }
        Ok(true)
    }

    /// A predecessor may have noted that output is dropped, and not got to it.
    pub(super) fn drop_again(&self) -> Result<(), KeeperError> {
        for (name, to) in [(handles::OUT, self.state.output.trimmed), (handles::ERR, self.state.output.trimmed_err)] {
            if let Some(file) = self.handles.get(name).filter(|_| to > 0) {
                dir::forget_front(file, to)?;
            }
        }
        Ok(())
    }

    /// Drops the oldest output of a terminal, in large steps and never past the newest snapshot.
    pub(super) fn trim(&mut self, snapshot: u64) -> Result<(), KeeperError> {
        let Some(limit) = self.room.limit.filter(|_| !self.room.cannot_drop) else {
            return Ok(());
        };
        let to = self.out_position().saturating_sub(limit).min(snapshot) / BLOCK * BLOCK;
        if to >= self.state.output.trimmed + (limit / 8).max(BLOCK) {
            self.drop_to(Stream::Out, to)?;
        }
        Ok(())
    }

    /// Output waits from now on, and everybody can see why. On a full disk a reserve that is not whole shows it.
    fn hold(&mut self, hold: Hold) -> Result<(), KeeperError> {
        self.streams.held = Some(hold);
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

    /// Who is held at a full pipe and told to end may have had more to say than it got to.
    fn ended_by_request(&self) -> bool {
        self.state.stop.is_some() || self.state.steps.terminated || self.state.steps.killed
    }

    /// Whether what is left in the pipes, when nobody is left to write to them, may go to the files: there is little of it.
    pub(super) fn has_room_for_the_rest(&self) -> Result<bool, KeeperError> {
        match self.streams.held {
            None | Some(Hold::Limit { .. }) => Ok(true),
            // On a full disk the little that is free is for the records of the end.
            Some(Hold::DiskFull) => Ok(self.folder.has_room_for_output()?),
            Some(Hold::LittleSpace { .. }) => {
                let free = dir::free_space(self.run.dir())?;
                let rest = self.streams.waiting(&self.handles)?;
                Ok(ostler_store::room::has_for_output(free.saturating_sub(rest)))
            }
        }
    }

    /// Its output is complete now: unless it was told to end while it was held, nothing is missing.
    pub(super) fn settle_hold(&mut self) -> Result<(), KeeperError> {
        self.streams.held = None;
        self.note_release()
    }
}
