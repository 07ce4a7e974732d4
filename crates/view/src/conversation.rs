//! What was said, in order: the agent's facts from `out` (or `hooks`), and between them the messages that it was given.

use jiff::Timestamp;
use ostler_agents::output_facts::Reading;
use ostler_agents::recorded::{self, Recorded, What};
use ostler_core::event::Event;
use ostler_core::fact::{Fact, TurnEnd, Verdict};
use ostler_core::outcome::{Kind, Outcome, Source};
use ostler_core::record::RequestKind;
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::growing_file::Pieces;
use ostler_store::times::Times;
use ostler_store::{StoreError, backwards, inbox, journal};
use ostler_sys::dir::Dir;
use rustix::fs::OFlags;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs::File;
use std::ops::Deref;

/// One thing in a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A message that the agent was given.
    Told { n: u64, text: String },
    /// The answer to a question.
    Answered { request: String, by: String, allowed: bool, always: Option<String> },
    /// The agent said or did this.
    Agent(Fact),
}

/// Where a reader begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    pub run: u32,
    /// The position in the file in which the agent reports in that run; the beginning of a line.
    pub position: u64,
}

/// Reads a conversation from its beginning and then as it grows, over all its runs.
pub struct Reader<'a> {
    folder: Kept<'a>,
    start: Start,
    run: Option<Run>,
    journal_end: u64,
    places: HashMap<u64, u64>,
    /// Items that happened when the output had reached that position, with their time.
    between: VecDeque<(u32, u64, Item, Timestamp)>,
    /// When the output had been decoded up to a position, by the journal: exact enough where no times were noted with
    /// the output.
    understood: VecDeque<(u32, u64, Timestamp)>,
    /// The running turn was told to end.
    broken_off: bool,
    /// The runs whose last turn has no end, as far as the journal has been read.
    in_turn: BTreeSet<u32>,
}

/// The folder of a reader: borrowed, or its own.
enum Kept<'a> {
    Borrowed(&'a Folder),
    Owned(Box<Folder>),
}

impl Deref for Kept<'_> {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        match self {
            Kept::Borrowed(folder) => folder,
            Kept::Owned(folder) => folder,
        }
    }
}

/// The position of what was noted after all the output of a run had been collected.
const BEHIND_ALL: u64 = u64::MAX;

struct Run {
    number: u32,
    /// The name of the file in which the agent reports.
    name: &'static str,
    position: u64,
    reading: Understood,
    times: Times,
    /// The time of the last position that the journal notes.
    at: Option<Timestamp>,
}

/// The decoder of the file.
enum Understood {
    Output(Reading),
    /// What was said before the session was adopted, in the agent's own record.
    Past(Box<recorded::Reading>),
}

/// The copy of an adopted conversation's record, in the folder of its first run.
pub const PAST: &str = "past";

impl<'a> Reader<'a> {
    /// From the beginning of this run; the first is 1.
    #[must_use]
    pub fn new(folder: &'a Folder, first_run: u32) -> Reader<'a> {
        Reader::starting(folder, Start { run: first_run, position: 0 })
    }

    /// From the middle. Messages that were given before the output reached that position are left out.
    #[must_use]
    pub fn starting(folder: &'a Folder, start: Start) -> Reader<'a> {
        Reader::of(Kept::Borrowed(folder), start)
    }

    /// The same with a folder of its own.
    #[must_use]
    pub fn owning(folder: Folder, start: Start) -> Reader<'static> {
        Reader::of(Kept::Owned(Box::new(folder)), start)
    }

    fn of(folder: Kept<'a>, start: Start) -> Reader<'a> {
        Reader {
            folder,
            start,
            run: None,
            journal_end: 0,
            places: HashMap::new(),
            between: VecDeque::new(),
            understood: VecDeque::new(),
            broken_off: false,
            in_turn: BTreeSet::new(),
        }
    }

    /// What has come since the last call, part by part: a long past is never in memory as a whole.
    pub fn read_on<E: From<StoreError>>(&mut self, mut each: impl FnMut(Item) -> Result<(), E>) -> Result<(), E> {
        self.read_timed(|item, _| each(item))
    }

    /// The same with the time of each, as far as it is known.
    pub fn read_timed<E: From<StoreError>>(
        &mut self,
        mut each: impl FnMut(Item, Option<Timestamp>) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            let items = self.read_part()?;
            if items.is_empty() {
                return Ok(());
            }
            items.into_iter().try_for_each(|(item, at)| each(item, at))?;
        }
    }

    /// Where to begin so that about this much of what the agent reported is read, and whether that is all of it.
    pub fn start_before_end(folder: &Folder, bytes: u64) -> Result<(Start, bool), StoreError> {
        let mut left = bytes;
        for number in (1..=folder.newest_run()?).rev() {
            let Some(run) = open_run(folder, number, 0)? else { continue };
            let dir = folder.run(number)?;
            let size = dir.dir().stat(run.name).map_err(StoreError::io(run.name))?.map_or(0, |stat| stat.size);
            if size > left {
                let position = next_line(dir.dir(), run.name, size - left)?;
                return Ok((Start { run: number, position }, false));
            }
            left -= size;
        }
        Ok((Start { run: 1, position: 0 }, true))
    }

    /// Where to begin so that nothing that came since then is missing.
    pub fn start_since(folder: &Folder, since: Timestamp) -> Result<Start, StoreError> {
        let newest = folder.newest_run()?;
        let mut start = Start { run: newest.max(1), position: 0 };
        for number in (1..=newest).rev() {
            let Some(run) = open_run(folder, number, 0)? else { continue };
            start = Start { run: number, position: 0 };
            if run.times.is_empty() {
                continue;
            }
            let ended_before = run.times.first_since(since).is_none();
            let begins_later = run.times.at(0).is_some_and(|first| first >= since);
            if !begins_later {
                let dir = folder.run(number)?;
                let position =
                    if ended_before { end_of(dir.dir(), run.name)? } else { run.times.first_since(since).unwrap_or(0) };
                return Ok(Start { run: number, position: line_before(dir.dir(), run.name, position)? });
            }
        }
        Ok(start)
    }

    /// The next items. Empty only when there is nothing more now.
    fn read_part(&mut self) -> Result<Vec<(Item, Option<Timestamp>)>, StoreError> {
        // Checked before everything else is read: if there is an outcome, nothing follows.
        let over = self.unended_turn_is_over()?;
        self.read_journal()?;
        let mut items = Vec::new();
        let newest = self.folder.newest_run()?;
        let first = self.run.as_ref().map_or(self.start.run, |run| run.number);
        for number in first..=newest {
            if self.run.as_ref().is_none_or(|run| run.number != number) {
                let position = if number == self.start.run { self.start.position } else { 0 };
                self.run = open_run(&self.folder, number, position)?;
            }
            self.read_run(&mut items)?;
            if items.is_empty() && self.run.is_some() && (number < newest || over == Some(number)) {
                self.mark_cut_turn(number, &mut items)?;
            }
            if !items.is_empty() {
                break;
            }
        }
        Ok(items)
    }

    /// The run that is being read, if it has an outcome and its turn has no end.
    fn unended_turn_is_over(&self) -> Result<Option<u32>, StoreError> {
        let Some(number) = self.run.as_ref().map(|run| run.number).filter(|run| self.in_turn.contains(run)) else {
            return Ok(None);
        };
        Ok(self.folder.run(number)?.outcome()?.map(|_| number))
    }

    /// All of a run has been read. If its agent ended before its turn did, an end of the turn is added.
    fn mark_cut_turn(&mut self, number: u32, items: &mut Vec<(Item, Option<Timestamp>)>) -> Result<(), StoreError> {
        if self.in_turn.remove(&number)
            && let Some(outcome) = self.folder.run(number)?.outcome()?
            && outcome.source != Source::Agent
        {
            let at = outcome.closing.as_ref().map(|closing| closing.ended);
            items.push((Item::Agent(Fact::TurnEnded(cut_off(&outcome))), at));
        }
        Ok(())
    }

    fn read_journal(&mut self) -> Result<(), StoreError> {
        let found = journal::read(self.folder.dir(), self.journal_end)?;
        self.journal_end = found.end;
        for entry in found.entries {
            if let Some(out) = entry.out {
                self.understood.push_back((entry.run, out, entry.at));
            }
            let at = entry.at;
            match &entry.event {
                Event::Feeding { .. } | Event::TurnStarted => {
                    self.in_turn.insert(entry.run);
                }
                Event::TurnEnded { .. } | Event::NoTurn => {
                    self.in_turn.remove(&entry.run);
                }
                _ => {}
            }
            let item = match entry.event {
                Event::Accepted { n, place, .. } => {
                    self.places.insert(n, place);
                    continue;
                }
                Event::Feeding { n, .. } => {
                    self.broken_off = false;
                    let Some(&at) = self.places.get(&n) else { continue };
                    match inbox::read_one(self.folder.dir(), at)?.map(|request| request.kind) {
                        Some(RequestKind::Message { text, .. }) => Item::Told { n, text },
                        _ => continue,
                    }
                }
                Event::Answered { request, by, allowed, always } => Item::Answered { request, by, allowed, always },
                Event::InterruptSent => {
                    self.broken_off = true;
                    continue;
                }
                Event::TurnStarted => {
                    self.broken_off = false;
                    continue;
                }
                // The end of a turn that the output reports is found there.
                Event::TurnEnded { end } if entry.out.is_none() => {
                    let end = if self.broken_off { end.after_interrupt(None) } else { end };
                    Item::Agent(Fact::TurnEnded(end))
                }
                _ => continue,
            };
            let place = entry.out.unwrap_or(if matches!(item, Item::Agent(_)) { BEHIND_ALL } else { 0 });
            if (entry.run, place) < (self.start.run, self.start.position) {
                continue;
            }
            self.between.push_back((entry.run, place, item, at));
        }
        Ok(())
    }

    fn read_run(&mut self, items: &mut Vec<(Item, Option<Timestamp>)>) -> Result<(), StoreError> {
        let Some(run) = &mut self.run else {
            return Ok(());
        };
        let folder = self.folder.run(run.number)?;
        let Run { number, name, position, reading, times, at } = run;
        let (between, understood) = (&mut self.between, &mut self.understood);
        let reading = match reading {
            Understood::Output(reading) => reading,
            Understood::Past(reading) => return read_past(&folder, reading, position, items),
        };
        if let Some(mut pieces) = Pieces::open(folder.dir(), name, *position)? {
            if *position < pieces.end() {
                *times = Times::read(folder.dir(), name)?;
            }
            while items.is_empty()
                && let Some(bytes) = pieces.next(position)?
            {
                reading.feed(bytes, |place, fact| {
                    take_until(between, *number, place.start, items);
                    while understood.front().is_some_and(|(run, out, _)| (*run, *out) <= (*number, place.start)) {
                        *at = understood.pop_front().map(|(_, _, at)| at);
                    }
                    items.push((Item::Agent(fact), times.at(place.start).or(*at)));
                });
                take_until(between, *number, reading.end(), items);
            }
        }
        take_until(between, *number, reading.end(), items);
        // Nothing more of this run can come before the items that follow all of its output.
        if items.is_empty() && between.front().is_some_and(|(run, at, _, _)| (*run, *at) == (*number, BEHIND_ALL)) {
            take_until(between, *number, BEHIND_ALL, items);
        }
        Ok(())
    }
}

/// The end of a turn whose agent ended before it.
fn cut_off(outcome: &Outcome) -> TurnEnd {
    let verdict = match outcome.kind {
        Kind::Stopped | Kind::Interrupted => Verdict::Interrupted,
        Kind::Succeeded | Kind::Failed | Kind::Lost => Verdict::Failed,
    };
    let reason = Some(format!("the turn was cut off: {}", outcome.cause));
    TurnEnd { verdict, text: None, reason, tokens: None, cost_usd: None, messages: Vec::new() }
}

fn open_run(folder: &Folder, number: u32, position: u64) -> Result<Option<Run>, StoreError> {
    let run = folder.run(number)?;
    let record = run.record()?;
    let session = folder.session()?;
    if number == 1 && session.adopted.is_some() {
        let recording = ostler_agents::find(&session.agent).and_then(|agent| agent.recording());
        let past = recording.map(|recording| Understood::Past(Box::new(recorded::Reading::new(recording))));
        return Ok(past.map(|reading| Run {
            number,
            name: PAST,
            position,
            reading,
            times: Times::default(),
            at: None,
        }));
    }
    let agent = ostler_agents::find_for(&session.agent, &record.plan);
    let Some((name, decoder)) = agent.and_then(|agent| ostler_agents::decoder::agent_feed(agent, record.plan.speaks()))
    else {
        return Ok(None);
    };
    let times = Times::read(run.dir(), name)?;
    let reading = Understood::Output(Reading::from(position, decoder));
    Ok(Some(Run { number, name, position, reading, times, at: None }))
}

/// What was said before the session was adopted. Its messages have no numbers.
fn read_past(
    folder: &RunFolder,
    reading: &mut recorded::Reading,
    position: &mut u64,
    items: &mut Vec<(Item, Option<Timestamp>)>,
) -> Result<(), StoreError> {
    let Some(mut pieces) = Pieces::open(folder.dir(), PAST, *position)? else {
        return Ok(());
    };
    let item = |Recorded { at, what }| match what {
        What::Told { text } => (Item::Told { n: 0, text }, at),
        What::Agent(fact) => (Item::Agent(fact), at),
    };
    while items.is_empty() {
        let Some(bytes) = pieces.next(position)? else {
            reading.finish(|recorded| items.push(item(recorded)));
            break;
        };
        reading.feed(bytes, |recorded| items.push(item(recorded)));
    }
    Ok(())
}

fn end_of(run: &Dir, name: &str) -> Result<u64, StoreError> {
    Ok(run.stat(name).map_err(StoreError::io(name))?.map_or(0, |stat| stat.size))
}

/// Where the first line begins that begins after this position.
fn next_line(run: &Dir, name: &str, mut position: u64) -> Result<u64, StoreError> {
    let Some(mut pieces) = Pieces::open(run, name, position)? else {
        return Ok(position);
    };
    loop {
        let start = position;
        let Some(bytes) = pieces.next(&mut position)? else {
            return Ok(position);
        };
        if let Some(newline) = memchr::memchr(b'\n', bytes) {
            return Ok(start + newline as u64 + 1);
        }
    }
}

/// Where the line begins that contains this position. Notes of times do not start at the beginning of a line.
fn line_before(run: &Dir, name: &str, position: u64) -> Result<u64, StoreError> {
    let file = match run.file(name, OFlags::RDONLY) {
        Ok(file) => File::from(file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(StoreError::io(name)(error)),
    };
    backwards::line_start(&file, position).map_err(StoreError::io(name))
}

/// Moves the items up to this position from `between` to `items`.
fn take_until(
    between: &mut VecDeque<(u32, u64, Item, Timestamp)>,
    run: u32,
    position: u64,
    items: &mut Vec<(Item, Option<Timestamp>)>,
) {
    while between.front().is_some_and(|(of_run, at, _, _)| (*of_run, *at) <= (run, position)) {
        items.extend(between.pop_front().map(|(_, _, item, at)| (item, Some(at))));
    }
}
