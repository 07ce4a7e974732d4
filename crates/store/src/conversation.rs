//! What was said, in order: the agent's facts from `out` (or `hooks`), and between them the messages that it was given.

use crate::folder::Folder;
use crate::pieces::Pieces;
use crate::{StoreError, inbox, journal};
use ostler_agents::reading::Reading;
use ostler_core::event::Event;
use ostler_core::fact::Fact;
use ostler_core::record::Want;
use std::collections::{HashMap, VecDeque};

/// One thing in a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Somebody told the agent this.
    Told { n: u64, text: String },
    /// Somebody answered a question.
    Answered { by: String, allowed: bool, always: Option<String> },
    /// The agent said or did this.
    Agent(Fact),
}

/// Reads a conversation from its beginning and then as it grows, over all its runs.
pub struct Reader<'a> {
    folder: &'a Folder,
    first_run: u32,
    run: Option<Run>,
    journal_end: u64,
    places: HashMap<u64, u64>,
    /// Things that happened when the output had reached that position.
    between: VecDeque<(u32, u64, Item)>,
    /// The running turn was told to end.
    broken_off: bool,
}

/// What was noted when all the output of a run had been collected.
const BEHIND_ALL: u64 = u64::MAX;

struct Run {
    number: u32,
    /// Of the file in which the agent tells.
    name: &'static str,
    position: u64,
    reading: Reading,
}

impl<'a> Reader<'a> {
    /// From the beginning of this run; the first is 1.
    #[must_use]
    pub fn new(folder: &'a Folder, first_run: u32) -> Reader<'a> {
        Reader {
            folder,
            first_run,
            run: None,
            journal_end: 0,
            places: HashMap::new(),
            between: VecDeque::new(),
            broken_off: false,
        }
    }

    /// What has come since the last call, part by part: a long past is never in memory as a whole.
    pub fn read_on<E: From<StoreError>>(&mut self, mut each: impl FnMut(Item) -> Result<(), E>) -> Result<(), E> {
        loop {
            let items = self.read_part()?;
            if items.is_empty() {
                return Ok(());
            }
            items.into_iter().try_for_each(&mut each)?;
        }
    }

    /// Nothing only when there is nothing more now.
    fn read_part(&mut self) -> Result<Vec<Item>, StoreError> {
        self.read_journal()?;
        let mut items = Vec::new();
        let newest = self.folder.newest_run()?;
        let first = self.run.as_ref().map_or(self.first_run, |run| run.number);
        for number in first..=newest {
            if self.run.as_ref().is_none_or(|run| run.number != number) {
                self.run = self.open_run(number)?;
            }
            self.read_run(&mut items)?;
            if !items.is_empty() {
                break;
            }
        }
        Ok(items)
    }

    fn read_journal(&mut self) -> Result<(), StoreError> {
        let found = journal::read(self.folder.dir(), self.journal_end)?;
        self.journal_end = found.end;
        for entry in found.entries {
            let item = match entry.event {
                Event::Accepted { n, place, .. } => {
                    self.places.insert(n, place);
                    continue;
                }
                Event::Feeding { n, .. } => {
                    self.broken_off = false;
                    let Some(&at) = self.places.get(&n) else { continue };
                    match inbox::read_one(self.folder.dir(), at)?.map(|wish| wish.want) {
                        Some(Want::Message { text, .. }) => Item::Told { n, text },
                        _ => continue,
                    }
                }
                Event::Answered { by, allowed, always, .. } => Item::Answered { by, allowed, always },
                Event::InterruptSent => {
                    self.broken_off = true;
                    continue;
                }
                Event::TurnStarted => {
                    self.broken_off = false;
                    continue;
                }
                // One that the output tells of is found there.
                Event::TurnEnded { end } if entry.out.is_none() => {
                    let end = if self.broken_off { end.after_interrupt() } else { end };
                    Item::Agent(Fact::TurnEnded(end))
                }
                _ => continue,
            };
            if entry.run < self.first_run {
                continue;
            }
            let place = entry.out.unwrap_or(if matches!(item, Item::Agent(_)) { BEHIND_ALL } else { 0 });
            self.between.push_back((entry.run, place, item));
        }
        Ok(())
    }

    fn open_run(&self, number: u32) -> Result<Option<Run>, StoreError> {
        let record = self.folder.run(number)?.record()?;
        let session = self.folder.session()?;
        let agent = ostler_agents::find_for(&session.agent, &record.plan);
        let telling = agent.and_then(|agent| ostler_agents::telling(agent, record.plan.speaks));
        Ok(telling.map(|(name, decoder)| Run { number, name, position: 0, reading: Reading::from(0, decoder) }))
    }

    fn read_run(&mut self, items: &mut Vec<Item>) -> Result<(), StoreError> {
        let Some(run) = &mut self.run else {
            return Ok(());
        };
        let folder = self.folder.run(run.number)?;
        let Run { number, name, position, reading } = run;
        let between = &mut self.between;
        if let Some(mut pieces) = Pieces::open(folder.dir(), name, *position)? {
            while items.is_empty()
                && let Some(bytes) = pieces.next(position)?
            {
                reading.feed(bytes, |place, fact| {
                    take_until(between, *number, place.start, items);
                    items.push(Item::Agent(fact));
                });
                take_until(between, *number, reading.end(), items);
            }
        }
        take_until(between, *number, reading.end(), items);
        // Nothing more of this run can come before what stands behind all of it.
        if items.is_empty() && between.front().is_some_and(|(run, at, _)| (*run, *at) == (*number, BEHIND_ALL)) {
            take_until(between, *number, BEHIND_ALL, items);
        }
        Ok(())
    }
}

/// Moves what happened up to this position over.
fn take_until(between: &mut VecDeque<(u32, u64, Item)>, run: u32, position: u64, items: &mut Vec<Item>) {
    while between.front().is_some_and(|(of_run, at, _)| (*of_run, *at) <= (run, position)) {
        items.extend(between.pop_front().map(|(_, _, item)| item));
    }
}
