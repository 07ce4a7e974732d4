//! The bytes of `ended.index`: a header, one record of fixed size per session in the order of the ids, and the names.
//!
//! One checksum covers everything: a file that is damaged, cut off or of another form is read as if it were not there.

use jiff::Timestamp;
use ostler_core::id::SessionId;
use ostler_core::outcome::Kind;
use ostler_sys::dir::Date;
pub use ostler_sys::pack::check;
use std::collections::BTreeMap;

/// Changes when the format of the file changes.
const MAGIC: &[u8; 16] = b"ostler ended 02\n";
const HEADER: usize = 64;
const RECORD: usize = 64;
/// Records are first narrowed down by the first two characters of the id; so many values of each are distinguished.
const CHARACTERS: usize = 80;

/// What is known of a session that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended<'a> {
    pub id: SessionId,
    /// When its folder changed last.
    pub changed: Date,
    pub ended: Timestamp,
    pub created: Timestamp,
    pub parent: Option<SessionId>,
    /// How it ended; `None`: an earlier version has written the record.
    pub kind: Option<Kind>,
    pub name: Option<std::borrow::Cow<'a, str>>,
}

/// The number in the file; 0 for an unknown kind.
fn number_of(kind: Option<Kind>) -> u32 {
    match kind {
        None => 0,
        Some(Kind::Succeeded) => 1,
        Some(Kind::Failed) => 2,
        Some(Kind::Interrupted) => 3,
        Some(Kind::Stopped) => 4,
        Some(Kind::Lost) => 5,
    }
}

fn kind_of(number: u32) -> Option<Kind> {
    let all = [Kind::Succeeded, Kind::Failed, Kind::Interrupted, Kind::Stopped, Kind::Lost];
    all.into_iter().find(|kind| number_of(Some(*kind)) == number)
}

/// What applies to all records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The number of the folder `woken/`, which names the sessions that have changed since.
    pub woken: u64,
    /// When the date of every folder was compared last, in seconds.
    pub compared: i64,
    /// A hash of the id of that boot.
    pub boot: u64,
}

/// The records of a file.
#[derive(Debug, Default)]
pub struct Table {
    pub header: Header,
    bytes: Vec<u8>,
    count: usize,
    /// For each pair of first characters of an id: the first record.
    starts: Vec<u32>,
}

impl Table {
    /// `None`: the file is damaged, or of another form.
    pub fn parse(bytes: Vec<u8>) -> Option<Table> {
        let number = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let count = usize::try_from(number(40)?).ok()?;
        let names = usize::try_from(number(48)?).ok()?;
        let length = count.checked_mul(RECORD)?.checked_add(HEADER)?.checked_add(names)?;
        if !bytes.starts_with(MAGIC) || bytes.len() != length || number(56)? != check_of_file(&bytes) {
            return None;
        }
        let header = Header { woken: number(16)?, compared: number(24)?.cast_signed(), boot: number(32)? };
        let mut table = Table { header, bytes, count, starts: Vec::new() };
        let mut starts = vec![0; CHARACTERS * CHARACTERS + 1];
        for at in 0..count {
            starts[first(table.id_bytes(at)) + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        table.starts = starts;
        Some(table)
    }

    pub fn len(&self) -> usize {
        self.count
    }

    /// The checksum, which identifies this table.
    pub fn check(&self) -> u64 {
        self.bytes.get(56..64).and_then(|check| check.try_into().ok()).map_or(0, u64::from_le_bytes)
    }

    pub fn ids(&self) -> impl Iterator<Item = SessionId> {
        (0..self.count).filter_map(|at| SessionId::from_bytes(self.id_bytes(at)))
    }

    /// The records of sessions with this name. No other record is decoded: for thousands of them that would take
    /// milliseconds.
    pub fn named(&self, name: &str) -> impl Iterator<Item = Ended<'_>> {
        let names = self.bytes.get(HEADER + self.count * RECORD..).unwrap_or_default();
        let place = |at: usize| {
            let (begin, rest) = self.record(at)[52..].split_first_chunk::<4>()?;
            Some((u32::from_le_bytes(*begin) as usize, u32::from_le_bytes(*rest.first_chunk()?) as usize))
        };
        let is_named = move |at: &usize| {
            place(*at).is_some_and(|(begin, length)| {
                length == name.len() && names.get(begin..).and_then(|rest| rest.get(..length)) == Some(name.as_bytes())
            })
        };
        (0..self.count).filter(is_named).filter_map(|at| self.get(at))
    }

    fn record(&self, at: usize) -> &[u8] {
        &self.bytes[HEADER + at * RECORD..][..RECORD]
    }

    fn id_bytes(&self, at: usize) -> &[u8] {
        &self.record(at)[..8]
    }

    pub fn find(&self, id: SessionId) -> Option<usize> {
        // As one number, which sorts like the characters.
        let wanted = u64::from_be_bytes(*id.as_bytes());
        let begin = first(id.as_bytes());
        let (mut low, mut high) = (*self.starts.get(begin)? as usize, *self.starts.get(begin + 1)? as usize);
        while low < high {
            let middle = usize::midpoint(low, high);
            match u64::from_be_bytes(*self.id_bytes(middle).first_chunk()?).cmp(&wanted) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(middle),
            }
        }
        None
    }

    pub fn get(&self, at: usize) -> Option<Ended<'_>> {
        let record = self.record(at);
        let long = |at: usize| Some(i64::from_le_bytes(record.get(at..at + 8)?.try_into().ok()?));
        let short = |at: usize| Some(u32::from_le_bytes(record.get(at..at + 4)?.try_into().ok()?));
        let time = |s: usize, ns: usize| Timestamp::new(long(s)?, short(ns)?.cast_signed()).ok();
        let id = |at: usize| SessionId::from_bytes(record.get(at..at + 8)?);
        let name_at = HEADER + self.count * RECORD + short(52)? as usize;
        let name = self.bytes.get(name_at..name_at + short(56)? as usize)?;
        Some(Ended {
            id: id(0)?,
            changed: Date { seconds: long(8)?, nanos: short(40)?.into() },
            ended: time(16, 44)?,
            created: time(24, 48)?,
            parent: id(32),
            kind: kind_of(short(60)?),
            name: if name.is_empty() { None } else { Some(std::str::from_utf8(name).ok()?.into()) },
        })
    }
}

/// The file that has these records.
pub fn encode(header: Header, records: &BTreeMap<SessionId, Ended<'_>>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + records.len() * (RECORD + 16));
    let mut names: Vec<u8> = Vec::new();
    bytes.extend(MAGIC);
    for number in [header.woken, header.compared.cast_unsigned(), header.boot, records.len() as u64, 0, 0] {
        bytes.extend(number.to_le_bytes());
    }
    for Ended { id, changed, ended, created, parent, kind, name } in records.values() {
        let name = name.as_deref().unwrap_or_default();
        bytes.extend(id.as_str().as_bytes());
        for seconds in [changed.seconds, ended.as_second(), created.as_second()] {
            bytes.extend(seconds.to_le_bytes());
        }
        bytes.extend(parent.as_ref().map_or(&[0; 8], |parent| parent.as_bytes()));
        let nanos = |time: &Timestamp| time.subsec_nanosecond().cast_unsigned();
        let numbers = [u32::try_from(changed.nanos).unwrap_or(0), nanos(ended), nanos(created)];
        let place = [names.len(), name.len()].map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        for number in numbers.into_iter().chain(place).chain([number_of(*kind)]) {
            bytes.extend(number.to_le_bytes());
        }
        names.extend(name.as_bytes());
    }
    bytes.extend(&names);
    bytes[48..56].copy_from_slice(&(names.len() as u64).to_le_bytes());
    let check = check_of_file(&bytes);
    bytes[56..64].copy_from_slice(&check.to_le_bytes());
    bytes
}

/// The number of the first two characters, which sorts like the ids.
fn first(id: &[u8]) -> usize {
    let place = |at: usize| id.get(at).map_or(0, |byte| usize::from(byte.saturating_sub(b'0')).min(CHARACTERS - 1));
    place(0) * CHARACTERS + place(1)
}

/// The checksum of a file, without the bytes of the checksum itself.
fn check_of_file(bytes: &[u8]) -> u64 {
    let (head, rest) = bytes.split_at(bytes.len().min(56));
    check(head).rotate_left(7) ^ check(rest.get(8..).unwrap_or_default())
}
