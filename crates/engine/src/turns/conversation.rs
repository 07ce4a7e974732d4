//! A copy of a conversation up to the end of a turn, as a session of its own. It has ended: nothing is started, and
//! nothing is paid for. `resume` continues it. The original session stays as it is.
//!
//! The copy is made of the agent's own transcript: its lines up to the prompt of the next turn, under an id of its own.
//! This needs an agent that stores a conversation in one file and reads any such file; other agents are refused.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::foreign_outcome::of_past;
use crate::launch::Launched;
use crate::prepare::prepare;
use crate::resume::ForkRefusal;
use crate::session_ref::SessionRef;
use jiff::Timestamp;
use ostler_agents::recorded::{Recording, What};
use ostler_core::event::{Entry, Event};
use ostler_core::id::SessionId;
use ostler_core::outcome::{Closing, Kind};
use ostler_core::record::{RequestKind, Session};
use ostler_core::view::View;
use ostler_keeper::create_ended::put_ended;
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::home::Place;
use ostler_store::{RunRecord, StoreError, inbox, journal};
use ostler_sys::clock;
use ostler_sys::dir::{Dir, Sync};
use ostler_view::{proof, write_outcome};
use std::io;
use std::path::{Path, PathBuf};

/// A copy that can be made.
pub(super) struct Copy {
    original: Session,
    turn: u32,
    native_id: String,
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Engine {
    /// Refuses a conversation that cannot be copied; writes nothing.
    pub(super) fn plan_conversation(&self, place: &Place, view: &View, turn: u32) -> Result<Copy> {
        let session = || SessionRef::from(view);
        let cannot = || ForkRefusal::CannotCopy { agent: view.agent.clone(), id: place.id };
        let agent = ostler_agents::find(&view.agent).filter(|agent| agent.copies_are_files()).ok_or_else(cannot)?;
        let mut recording = agent.recording().ok_or_else(cannot)?;
        let folder = place.open()?;
        if turn == 0 || turn > view.turns {
            return Err(Error::NoSuchTurn { session: session(), turn, turns: view.turns });
        }
        let native_id = view.native_id.clone().ok_or_else(|| ForkRefusal::NotBegun { session: session() })?;
        let file = proof::own_file(&folder, view)?.map(PathBuf::from);
        let lost = || ForkRefusal::TranscriptLost { session: session(), copied: false };
        let file = file.filter(|file| file.is_file()).ok_or_else(lost)?;
        let text = std::fs::read(&file)?;
        let ends = end_of(&folder, turn)?;
        let end = match ends.filter(|_| turn < view.turns) {
            None => whole_lines(&text),
            Some(at) => prompt_after(&text, at, recording.as_mut())
                .ok_or_else(|| Error::TurnNotFound { session: session(), turn: turn + 1 })?,
        };
        let new = uuid::Uuid::new_v4().to_string();
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !name.contains(&native_id) {
            return Err(cannot().into());
        }
        let path = file.with_file_name(name.replace(&native_id, &new));
        let bytes = replaced(&text[..end], native_id.as_bytes(), new.as_bytes());
        Ok(Copy { original: folder.session()?, turn, native_id: new, path, bytes })
    }

    /// Writes the copy, and makes its session.
    pub(super) fn make_conversation(&self, copy: Copy) -> Result<Launched> {
        let Copy { original, turn, native_id, path, bytes } = copy;
        let (folder, name) = (path.parent().unwrap_or(Path::new("/")), path.file_name());
        let name = name.and_then(|name| name.to_str()).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Dir::open(folder)?.replace(name, &bytes, Sync::Yes)?;
        let source = original.id;
        let session = Session {
            id: SessionId::from_random(uuid::Uuid::new_v4().as_u128() as u64),
            name: None,
            parent: Some(source),
            fork: None,
            adopted: None,
            created: clock::now(),
            ..original
        };
        let transcript = path.to_string_lossy().into_owned();
        let prepared = prepare(self, &session, 1, &native_id, true)?;
        let record = RunRecord { transcript: Some(transcript.clone()), ..prepared.record };
        let closing = Closing {
            native_id: Some(native_id),
            transcript: Some(transcript),
            ended: session.created,
            ..write_outcome::of(&session, 1)
        };
        let outcome = of_past(Kind::Stopped, format!("a copy of {source} up to turn {turn}; not started yet"), closing);
        let nothing_more = |_: &Folder, _: &RunFolder| Ok::<(), StoreError>(());
        let place = put_ended(&self.home, &session, &record, &outcome, nothing_more)?;
        Ok(Launched { place, session })
    }

    /// The prompt of a turn, as far as it is known.
    pub(super) fn prompt_of(&self, place: &Place, view: &View, turn: u32) -> Result<Option<String>> {
        let folder = place.open()?;
        let mut turns = 0;
        let mut places = std::collections::HashMap::new();
        let mut fed = None;
        for Entry { event, .. } in journal::read(folder.dir(), 0)?.entries {
            match event {
                Event::Accepted { n, place, .. } => drop(places.insert(n, place)),
                Event::Feeding { n, .. } => fed = places.get(&n).copied(),
                Event::TurnEnded { .. } => {
                    turns += 1;
                    if turns == turn {
                        break;
                    }
                    fed = None;
                }
                _ => {}
            }
        }
        let given = fed.map(|at| inbox::read_one(folder.dir(), at)).transpose()?.flatten();
        Ok(match given.map(|request| request.kind) {
            Some(RequestKind::Message { text, .. }) => Some(text),
            Some(_) | None => view.prompt.clone().filter(|_| turn == 1),
        })
    }
}

/// When a turn ended.
fn end_of(folder: &Folder, turn: u32) -> Result<Option<Timestamp>> {
    let entries = journal::read(folder.dir(), 0)?.entries;
    let mut ends = entries.iter().filter(|entry| matches!(entry.event, Event::TurnEnded { .. }));
    Ok(ends.nth(usize::try_from(turn).unwrap_or(usize::MAX).saturating_sub(1)).map(|entry| entry.at))
}

/// Where the last complete line ends.
fn whole_lines(text: &[u8]) -> usize {
    text.iter().rposition(|&byte| byte == b'\n').map_or(0, |place| place + 1)
}

/// Where the line with the first prompt after this time begins.
fn prompt_after(text: &[u8], at: Timestamp, recording: &mut dyn Recording) -> Option<usize> {
    let mut position = 0;
    let mut items = Vec::new();
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        recording.line(line.strip_suffix(b"\n").unwrap_or(line), &mut items);
        recording.finish(&mut items);
        let told = |item: &ostler_agents::recorded::Recorded| {
            matches!(item.what, What::Told { .. }) && item.at.is_some_and(|then| then >= at)
        };
        if items.drain(..).any(|item| told(&item)) {
            return Some(position);
        }
        position += line.len();
    }
    None
}

fn replaced(text: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.windows(old.len().max(1)).position(|window| window == old) {
        bytes.extend_from_slice(&rest[..place]);
        bytes.extend_from_slice(new);
        rest = &rest[place + old.len()..];
    }
    bytes.extend_from_slice(rest);
    bytes
}
