//! Which sessions there are, and what each looks like.
//!
//! * `filter`: which sessions are listed, and in which order.
//! * `again`: looks again at sessions of a list that may have changed.

mod again;
mod filter;

pub use again::look_again;
pub use filter::{Filter, STATES, Sort};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::queues::Places;
use filter::Order;
use ostler_core::id::SessionId;
use ostler_core::outcome::Kind;
use ostler_core::view::{Damaged, Phase, View};
use ostler_store::ended::EndedIndex;
use ostler_store::home::{KnownDir, SessionsDir};
use ostler_store::live::{self, LiveIndex};
use ostler_sys::clock;
use ostler_sys::threads::parallel;
use ostler_view::live_views;
use ostler_view::overview::Overview;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Ended sessions are listed for this long without `-a`.
const RECENT_S: i64 = 24 * 3600;
/// From this many sessions on, it is worth starting more threads.
const TWO_THREADS: usize = 16;
/// How many sessions a thread takes at a time.
const BATCH: usize = 4;

/// A session, or what is wrong with its folder.
pub enum Listed {
    /// A session.
    Good(Box<View>),
    /// A folder that cannot be read as a session.
    Bad(Damaged),
}

/// What a list has found, and what it does not show.
pub struct Found<T> {
    /// The sessions that are shown, in order.
    pub listed: Vec<T>,
    /// How many are not shown because they ended too long ago.
    pub older: usize,
    /// How many are archived.
    pub archived: usize,
    /// How many also match, but exceed the number that was asked for.
    pub more: usize,
    /// Whether only some sessions were asked for.
    pub filtered: bool,
    /// The ids of sessions that ended without a failure: see [`Wanted::rest_later`].
    pub rest: Vec<SessionId>,
}

/// Which sessions to list.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Also those that ended more than a day ago, and archived ones.
    pub all: bool,
    /// Only those that it admits.
    pub filter: Filter,
    /// In this order.
    pub sort: Sort,
    /// At most this many.
    pub most: Option<usize>,
    /// Of sessions that are known to have ended without a failure, only the ids are returned, in no order, and their
    /// folders are not opened. This is for a face that shows the other sessions first and looks at these afterwards.
    pub rest_later: bool,
}

impl Wanted {
    /// Whether only some sessions are asked for.
    fn is_filtered(&self) -> bool {
        self.filter != Filter::default()
    }

    /// Truncates a sorted list; returns how many were left out.
    fn cut<T>(&self, listed: &mut Vec<T>) -> usize {
        let more = listed.len().saturating_sub(self.most.unwrap_or(usize::MAX));
        listed.truncate(listed.len() - more);
        more
    }
}

/// What `keep` makes of every session, in order. Without `all`: without archived sessions, and without those that ended
/// more than a day ago.
pub fn list<T: Send>(engine: &Engine, all: bool, keep: impl Fn(Listed) -> T + Sync) -> Result<Vec<T>> {
    let wanted = Wanted { all, ..Wanted::default() };
    Ok(in_order(
        survey(engine, &wanted, |found: &mut Vec<(Order, T)>, order, one| found.push((order, keep(one))))?.places,
    ))
}

/// The sessions that are asked for, in order.
pub fn find(engine: &Engine, wanted: &Wanted) -> Result<Found<Listed>> {
    find_and(engine, wanted, |one| one)
}

/// The same with what `keep` makes of each session: with very many sessions, a caller keeps only what it needs.
pub fn find_and<T: Send>(engine: &Engine, wanted: &Wanted, keep: impl Fn(Listed) -> T + Sync) -> Result<Found<T>> {
    let seen = survey(engine, wanted, |found: &mut Vec<(Order, T)>, order, one| found.push((order, keep(one))))?;
    let mut listed = in_order(seen.places);
    let more = wanted.cut(&mut listed);
    // Archived sessions are only counted, not opened.
    let archived = if wanted.all { 0 } else { engine.home.count_archived()? };
    Ok(Found { listed, older: seen.older, archived, more, filtered: wanted.is_filtered(), rest: seen.rest })
}

fn in_order<T>(places: Vec<Vec<(Order, T)>>) -> Vec<T> {
    let mut listed: Vec<(Order, T)> = places.into_iter().flatten().collect();
    listed.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    listed.into_iter().map(|(_, kept)| kept).collect()
}

/// What each thread has collected, and how many sessions ended too long ago.
struct Seen<P> {
    places: Vec<P>,
    older: usize,
    rest: Vec<SessionId>,
}

/// What is known of a session without its folder.
enum Known {
    /// Not enough: it is looked at.
    TooLittle,
    /// It ended too long ago to be shown.
    Older,
    /// It ended without a failure, and is only named.
    Rest,
}

/// Looks at all sessions, with as many threads as the machine has processors, at most 8. Each thread collects what it
/// finds in a place of its own; a damaged folder does not stop the others. When this needs more open files than
/// allowed, one thread does it.
fn survey<P: Default + Send>(
    engine: &Engine,
    wanted: &Wanted,
    put: impl Fn(&mut P, Order, Listed) + Sync,
) -> Result<Seen<P>> {
    match survey_with(8, engine, wanted, &put) {
        Err(Error::Store(error)) if error.is_out_of_descriptors() => survey_with(1, engine, wanted, &put),
        other => other,
    }
}

fn survey_with<P: Default + Send>(
    threads: usize,
    engine: &Engine,
    wanted: &Wanted,
    put: &(impl Fn(&mut P, Order, Listed) + Sync),
) -> Result<Seen<P>> {
    // Only a session that is not shown can be listed without opening its folder.
    let hides = !wanted.all && !wanted.is_filtered();
    let (sessions_dirs, mut index) = if hides {
        let KnownDir { sessions_dir, index } = engine.home.known_live()?;
        (sessions_dir.into_iter().collect(), index)
    } else {
        (engine.home.sessions_dirs(wanted.all)?, EndedIndex::default())
    };
    if let Some(sessions_dir) = sessions_dirs.first() {
        index.compare(&sessions_dir.dir);
    }
    let now = clock::now().as_second();
    let older = AtomicUsize::new(0);
    let shown = |one: &Listed| {
        let recent = match one {
            Listed::Good(view) => wanted.all || !view.ended || now - view.updated.as_second() < RECENT_S,
            Listed::Bad(_) => true,
        };
        let matches = wanted.filter.admits(one);
        if let (true, Listed::Good(view)) = (matches, one) {
            older.fetch_add(usize::from(!recent), Ordering::Relaxed);
            let learns = !recent || (wanted.rest_later && view.ended);
            if let Some(sessions_dir) = sessions_dirs.first().filter(|_| learns && !view.archived) {
                index.learn(&sessions_dir.dir, view.id);
            }
        }
        matches && recent
    };
    // The folder of a session that has ended and has not changed since is not opened.
    let known = |sessions_dir: &SessionsDir, id: SessionId| {
        let ended = if hides { index.still(&sessions_dir.dir, id) } else { None };
        match ended.map(|ended| (now - ended.ended.as_second() >= RECENT_S, ended.kind)) {
            Some((true, _)) => Known::Older,
            Some((false, Some(Kind::Succeeded | Kind::Interrupted | Kind::Stopped))) if wanted.rest_later => {
                Known::Rest
            }
            Some((false, _)) | None => Known::TooLittle,
        }
    };
    let sessions: usize = sessions_dirs.iter().map(|sessions_dir| sessions_dir.ids.len()).sum();
    let live = (sessions >= live::WORTH_IT).then(|| LiveIndex::read(engine.home.root()));
    // Running sessions take longest and may be next to each other, so a thread takes only a few sessions at a time.
    let given: Vec<(&SessionsDir, AtomicUsize)> =
        sessions_dirs.iter().map(|sessions_dir| (sessions_dir, AtomicUsize::new(0))).collect();
    let places = Places::default();
    let work = || {
        let (mut place, mut rest) = (P::default(), Vec::new());
        for (sessions_dir, next) in &given {
            let overview = Overview::over(sessions_dir, live.as_ref())?;
            while let Some(handful) = sessions_dir.ids.chunks(BATCH).nth(next.fetch_add(1, Ordering::Relaxed)) {
                for &id in handful {
                    match known(sessions_dir, id) {
                        Known::Older => {
                            older.fetch_add(1, Ordering::Relaxed);
                        }
                        Known::Rest => rest.push(id),
                        Known::TooLittle => {
                            if let Some(mut one) = look_at(&overview, sessions_dir, id)?.filter(shown) {
                                if let Listed::Good(view) = &mut one {
                                    places.fill(&engine.home, view);
                                }
                                put(&mut place, Order::of(wanted.sort, id, &one), one);
                            }
                        }
                    }
                }
            }
        }
        Ok((place, rest))
    };
    let seen =
        parallel(if sessions < TWO_THREADS { 1 } else { threads }, work).into_iter().collect::<Result<Vec<_>>>()?;
    let (places, rest): (Vec<P>, Vec<Vec<SessionId>>) = seen.into_iter().unzip();
    index.save(engine.home.root());
    if let (Some(live), Some(sessions_dir)) = (live, sessions_dirs.iter().find(|sessions_dir| !sessions_dir.archived)) {
        live_views::save(live, engine.home.root(), &sessions_dir.dir);
    }
    Ok(Seen { places, older: older.into_inner(), rest: rest.concat() })
}

/// `None` for a folder that was purged or archived while we looked. When too many files are open, that is an error and
/// not a damaged session.
fn look_at(overview: &Overview<'_>, sessions_dir: &SessionsDir, id: SessionId) -> Result<Option<Listed>> {
    Ok(match overview.look(id) {
        Ok(view) => Some(Listed::Good(Box::new(view))),
        Err(error) if error.is_out_of_descriptors() => return Err(error.of(id).into()),
        Err(_) if !sessions_dir.place(id).path.exists() => None,
        Err(error) => {
            let damage = error.without_session().to_string();
            Some(Listed::Bad(Damaged::new(id.as_str(), overview.is_locked(id), damage, sessions_dir.archived)))
        }
    })
}

/// What one thread has seen, as JSON: one text, and the range of each session in it.
struct Page {
    text: Vec<u8>,
    places: Vec<(Order, Range<usize>)>,
    failed: Option<serde_json::Error>,
}

impl Default for Page {
    fn default() -> Page {
        // Allocated in one piece: an allocator that grows a thread's memory page by page stops the other threads each
        // time.
        Page { text: Vec::with_capacity(256 * 1024), places: Vec::new(), failed: None }
    }
}

/// The same as JSON objects, in order. Each thread writes what it finds: with thousands of sessions, moving views
/// between threads takes longer than writing them.
pub fn json(engine: &Engine, wanted: &Wanted, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> Result<()> {
    let put = |page: &mut Page, order: Order, one: Listed| {
        let begin = page.text.len();
        let written = match &one {
            Listed::Good(view) => serde_json::to_writer(&mut page.text, view),
            Listed::Bad(damaged) => serde_json::to_writer(&mut page.text, damaged),
        };
        page.places.push((order, begin..page.text.len()));
        page.failed = page.failed.take().or(written.err());
    };
    let mut pages = survey(engine, wanted, put)?.places;
    if let Some(error) = pages.iter_mut().find_map(|page| page.failed.take()) {
        return Err(io::Error::from(error).into());
    }
    let mut listed: Vec<(&Order, &[u8])> = Vec::new();
    for page in &pages {
        listed.extend(page.places.iter().map(|(order, place)| (order, &page.text[place.clone()])));
    }
    listed.sort_unstable_by_key(|(order, _)| *order);
    wanted.cut(&mut listed);
    listed.into_iter().try_for_each(|(_, one)| each(one)).map_err(Error::Output)
}

/// Whether a person has to do something before the session continues.
#[must_use]
pub fn needs_person(view: &View) -> bool {
    view.state == Phase::Asking || (view.alarm.is_some() || view.message_waits.is_some()) && !view.ended
}
