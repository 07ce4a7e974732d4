//! `ended.index`: what lists and lookups need of sessions that have ended, in one file, so that they open no folder that has
//! not changed.
//!
//! It is derived and may be deleted. Whoever finds a session at rest that is not in it appends a line; the newest line of a
//! session counts. A line holds the date on which the session's folder last changed. Whatever happens to a session that is at
//! rest changes that date ([`crate::rest`] takes a name away first), so a line whose date is still right is right. One that
//! changed less than a moment ago gets no line: a further change could have the same date.
//!
//! When it was created, which session it came from and what it is called are taken without asking for the date: the first two
//! never change, and a new name is noted here ([`forget`]).

use crate::StoreError;
use crate::journal::mark_of;
use crate::rest::glance;
use jiff::Timestamp;
use ostler_core::id::SessionId;
use ostler_core::outcome::Closing;
use ostler_sys::dir::{Date, Dir, Sync};
use rustix::fs::OFlags;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;

const NAME: &str = "ended.index";
/// A folder that changed more lately than this gets no line.
const MOMENT_S: i64 = 2;
/// So many lines that do not count are not worth a new file.
const DEAD_LINES: usize = 1000;
/// Fewer new lines than this are not worth a write.
const NEW_LINES: usize = 32;

/// What is known of a session that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub id: SessionId,
    /// When its folder changed last.
    changed: Date,
    pub ended: Timestamp,
    pub created: Timestamp,
    pub parent: Option<SessionId>,
    pub name: Option<String>,
}

/// The file as it was when it was opened, and what is to be added.
#[derive(Debug, Default)]
pub struct EndedIndex {
    text: Vec<u8>,
    /// Where the newest line of each session is. Of thousands few are asked for, so none is understood before that.
    lines: HashMap<SessionId, Range<usize>>,
    /// Lines that do not count.
    dead: usize,
    new: Mutex<Vec<Ended>>,
}

impl EndedIndex {
    /// One that cannot be read is empty.
    #[must_use]
    pub fn read(home: &Path) -> EndedIndex {
        let mut index =
            EndedIndex { text: std::fs::read(home.join(NAME)).unwrap_or_default(), ..EndedIndex::default() };
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', &index.text) {
            let line = start..end;
            start = end + 1;
            if line.is_empty() {
                continue;
            }
            let word = index.text[line.clone()].split(|&byte| byte == b' ').next().unwrap_or_default();
            let replaced = match std::str::from_utf8(word).ok().and_then(SessionId::parse) {
                Some(id) => index.lines.insert(id, line).is_some(),
                None => true,
            };
            index.dead += usize::from(replaced);
        }
        index
    }

    /// Whatever was known of the session when it ended. It may have been resumed since.
    #[must_use]
    pub fn once(&self, id: SessionId) -> Option<Ended> {
        parse(&self.text[self.lines.get(&id)?.clone()])?.1
    }

    /// The session, if it has ended and nothing has happened to it since. `sessions`: the folder in which its folder is.
    #[must_use]
    pub fn still(&self, sessions: &Dir, id: SessionId) -> Option<Ended> {
        let known = self.once(id)?;
        let now = sessions.changed(id.as_str()).ok()??;
        (known.changed == now).then_some(known)
    }

    /// Remembers the session if it is at rest, and tells what it was at its end.
    pub fn learn(&self, sessions: &Dir, id: SessionId) -> Option<Closing> {
        // Asked for first: what happens after that is seen by the next who asks.
        let changed = sessions.changed(id.as_str()).ok()??;
        let (_, closing) = glance(sessions, id)?;
        self.add(changed, &closing);
        Some(closing)
    }

    fn add(&self, changed: Date, closing: &Closing) {
        let session = &closing.session;
        let new = Ended {
            id: session.id,
            changed,
            ended: closing.ended,
            created: session.created,
            parent: session.parent,
            name: session.name.clone(),
        };
        let settled = ostler_sys::clock::now().as_second() - changed.seconds >= MOMENT_S;
        if let Ok(mut list) = self.new.lock()
            && settled
        {
            list.push(new);
        }
    }

    /// Appends what was added. Best effort: what is not here is looked for in its folder.
    pub fn save(self, home: &Path) {
        let new = self.new.lock().map(|mut new| std::mem::take(&mut *new)).unwrap_or_default();
        if new.len() < NEW_LINES {
            return;
        }
        let Ok(dir) = Dir::open(home) else {
            return;
        };
        if !dir.is_ours().unwrap_or(false) {
            return;
        }
        if self.dead > DEAD_LINES.max(self.lines.len()) {
            let mut known: HashMap<SessionId, Ended> =
                self.lines.keys().filter_map(|&id| Some((id, self.once(id)?))).collect();
            known.extend(new.into_iter().map(|ended| (ended.id, ended)));
            let lines: String = known.values().map(line).collect();
            let _ = dir.replace(NAME, lines.as_bytes(), Sync::No);
        } else {
            let _ = append(&dir, &new.iter().map(line).collect::<String>());
        }
    }
}

/// The session has another name now. `home`: the folder in which the folder of all sessions is.
pub fn forget(home: &Dir, id: SessionId) -> Result<(), StoreError> {
    if home.stat(NAME).map_err(StoreError::io(NAME))?.is_none() {
        return Ok(());
    }
    append(home, &with_check(format!("{id} -"))).map_err(StoreError::io(NAME))
}

fn append(home: &Dir, lines: &str) -> io::Result<()> {
    let file = home.file(NAME, OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND)?;
    // A line that was cut off before it ends here, and is read as none.
    File::from(file).write_all(format!("\n{lines}").as_bytes())
}

fn line(ended: &Ended) -> String {
    let Ended { id, changed, ended, created, parent, name } = ended;
    let (seconds, nanos) = (changed.seconds, changed.nanos);
    let parent = parent.as_ref().map_or("-", SessionId::as_str);
    let mut line = format!("{id} {seconds} {nanos} {} {} {parent}", ended.as_nanosecond(), created.as_nanosecond());
    if let Some(name) = name {
        // A name may have spaces, and no line break.
        let _ = write!(line, " {name}");
    }
    with_check(line)
}

fn with_check(mut line: String) -> String {
    let check = mark_of(line.as_bytes());
    let _ = writeln!(line, "\t{check:016x}");
    line
}

/// The session, and what is known of it unless it is to be forgotten. `None`: the line is damaged.
fn parse(line: &[u8]) -> Option<(SessionId, Option<Ended>)> {
    let (line, check) = std::str::from_utf8(line).ok()?.rsplit_once('\t')?;
    if u64::from_str_radix(check, 16).ok()? != mark_of(line.as_bytes()) {
        return None;
    }
    let mut fields = line.splitn(7, ' ');
    let id = SessionId::parse(fields.next()?)?;
    let seconds = fields.next()?;
    if seconds == "-" {
        return Some((id, None));
    }
    let changed = Date { seconds: seconds.parse().ok()?, nanos: fields.next()?.parse().ok()? };
    let mut time = || Timestamp::from_nanosecond(fields.next()?.parse().ok()?).ok();
    let (ended, created) = (time()?, time()?);
    let parent = match fields.next()? {
        "-" => None,
        // A line of another form, such as one without this field, is read as none.
        word => Some(SessionId::parse(word)?),
    };
    let name = fields.next().map(str::to_owned);
    Some((id, Some(Ended { id, changed, ended, created, parent, name })))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn ended(id: &str, name: Option<&str>) -> Ended {
        Ended {
            id: SessionId::parse(id).unwrap(),
            changed: Date { seconds: 1, nanos: 2 },
            ended: Timestamp::from_second(30).unwrap(),
            created: Timestamp::from_second(20).unwrap(),
            parent: SessionId::parse("zzzzzzzz"),
            name: name.map(str::to_owned),
        }
    }

    fn write(home: &Path, sessions: &[Ended]) {
        append(&Dir::open(home).unwrap(), &sessions.iter().map(line).collect::<String>()).unwrap();
    }

    #[test]
    fn a_line_without_the_field_for_the_parent_is_none_and_not_another_name() {
        let whole = line(&Ended { parent: None, ..ended("aaaaaaaa", Some("job 39")) });
        assert_eq!(parse(whole.trim_end().as_bytes()).unwrap().1.unwrap().name.as_deref(), Some("job 39"));
        let without = with_check(whole.split_once('\t').unwrap().0.replace(" - ", " "));
        assert_eq!(parse(without.trim_end().as_bytes()), None);
    }

    #[test]
    fn what_was_written_is_read_and_the_newest_line_of_a_session_counts() {
        let home = tempfile::tempdir().unwrap();
        let (one, other) = (ended("aaaaaaaa", Some("a name with spaces")), ended("bbbbbbbb", None));
        write(home.path(), &[one.clone(), other.clone()]);
        let later = Ended { ended: Timestamp::from_second(99).unwrap(), ..other.clone() };
        write(home.path(), std::slice::from_ref(&later));
        let index = EndedIndex::read(home.path());
        assert_eq!(index.once(one.id), Some(one.clone()));
        assert_eq!(index.once(other.id), Some(later));
        forget(&Dir::open(home.path()).unwrap(), one.id).unwrap();
        assert_eq!(EndedIndex::read(home.path()).once(one.id), None);
    }

    #[test]
    fn a_damaged_line_costs_that_line_alone() {
        let home = tempfile::tempdir().unwrap();
        let sessions = [ended("aaaaaaaa", Some("first")), ended("bbbbbbbb", Some("second"))];
        write(home.path(), &sessions);
        let whole = std::fs::read(home.path().join(NAME)).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(home.path().join(NAME), &bytes).unwrap();
            let index = EndedIndex::read(home.path());
            let right = sessions.iter().filter(|one| index.once(one.id).as_ref() == Some(*one)).count();
            let believed = index.lines.keys().filter(|&&id| index.once(id).is_some()).count();
            assert!(believed == right, "nothing wrong is believed; byte {at}: {index:?}");
            assert!(right >= 1 || whole[at] == b'\n', "byte {at}: {index:?}");
            std::fs::write(home.path().join(NAME), &whole[..at]).unwrap();
            write(home.path(), &[ended("cccccccc", None)]);
            let index = EndedIndex::read(home.path());
            assert!(index.once(SessionId::parse("cccccccc").unwrap()).is_some(), "cut off at {at}");
        }
    }

    #[test]
    fn a_session_whose_folder_changed_is_not_taken_for_ended() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("aaaaaaaa")).unwrap();
        let sessions = Dir::open(home.path()).unwrap();
        let changed = sessions.changed("aaaaaaaa").unwrap().unwrap();
        let one = Ended { changed, ..ended("aaaaaaaa", None) };
        write(home.path(), std::slice::from_ref(&one));
        let index = EndedIndex::read(home.path());
        assert_eq!(index.still(&sessions, one.id), Some(one.clone()));
        std::fs::create_dir(home.path().join("aaaaaaaa/runs")).unwrap();
        let again = sessions.changed("aaaaaaaa").unwrap().unwrap();
        assert_eq!(index.still(&sessions, one.id).is_some(), again == changed, "{changed:?} {again:?}");
    }
}
