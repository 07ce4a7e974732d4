//! Which sessions there are, and what each looks like.
//!
//! * `filter`: which sessions are listed, and in which order.
//! * `again`: those of a list that may have changed since.

mod again;
mod filter;

pub use again::look_again;
pub use filter::{Filter, STATES, Sort};

use crate::error::{Error, Result};
use crate::queues::Places;
use crate::settings::Engine;
use filter::Order;
use ostler_core::id::SessionId;
use ostler_core::outcome::Kind;
use ostler_core::view::{Damaged, Phase, View};
use ostler_store::ended::EndedIndex;
use ostler_store::home::{KnownDir, SessionsDir};
use ostler_store::live::{self, LiveIndex};
use ostler_sys::clock;
use ostler_sys::threads::parallel;
use ostler_view::living;
use ostler_view::overview::Overview;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Ended sessions are listed for this long without `-a`.
const RECENT_S: i64 = 24 * 3600;
/// From so many on another thread is worth its start.
const TWO_THREADS: usize = 16;
/// So many sessions are looked at before another thread may have its turn.
const HANDFUL: usize = 4;

/// A session, or what is wrong with its folder.
pub enum Listed {
    /// A session.
    Good(Box<View>),
    /// A folder that cannot be read as one.
    Bad(Damaged),
}

/// What a list has found, and what it does not show.
pub struct Found<T> {
    /// Those that are shown, in order.
    pub listed: Vec<T>,
    /// Ended earlier than a list goes back.
    pub older: usize,
    /// How many are archived.
    pub archived: usize,
    /// They match as well, but only so many were asked for.
    pub more: usize,
    /// Only some were asked for.
    pub filtered: bool,
    /// Ended without a failure, and only named: see [`Wanted::rest_later`].
    pub rest: Vec<SessionId>,
}

/// Which sessions to list.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Also those that ended more than a day ago, and archived ones.
    pub all: bool,
    /// Only those that it admits.
    pub filter: Filter,
    /// In this order.
    pub sort: Sort,
    /// So many at most.
    pub most: Option<usize>,
    /// Those that are known to have ended without a failure are only named, in no order: for a face that shows the others first and
    /// has these looked at afterwards. Their folders are not opened.
    pub rest_later: bool,
}

impl Wanted {
    /// Whether only some sessions are asked for.
    fn is_filtered(&self) -> bool {
        self.filter != Filter::default()
    }

    /// Cuts a list that is in order; how many were left out.
    fn cut<T>(&self, listed: &mut Vec<T>) -> usize {
        let more = listed.len().saturating_sub(self.most.unwrap_or(usize::MAX));
        listed.truncate(listed.len() - more);
        more
    }
}

/// Every session, or without `all` those of the last day, and of each what `keep` makes of it, in order.
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

/// The same, and of each what `keep` makes of it: of very many, a caller keeps only what it needs.
pub fn find_and<T: Send>(engine: &Engine, wanted: &Wanted, keep: impl Fn(Listed) -> T + Sync) -> Result<Found<T>> {
    let seen = survey(engine, wanted, |found: &mut Vec<(Order, T)>, order, one| found.push((order, keep(one))))?;
    let mut listed = in_order(seen.places);
    let more = wanted.cut(&mut listed);
    // Only counted: nothing in there is opened.
    let archived = if wanted.all { 0 } else { engine.home.count_archived()? };
    Ok(Found { listed, older: seen.older, archived, more, filtered: wanted.is_filtered(), rest: seen.rest })
}

fn in_order<T>(places: Vec<Vec<(Order, T)>>) -> Vec<T> {
    let mut listed: Vec<(Order, T)> = places.into_iter().flatten().collect();
    listed.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    listed.into_iter().map(|(_, kept)| kept).collect()
}

/// What each thread has put into its place, and how many sessions ended too long ago.
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

/// Looks at all of them with as many threads as the machine has, of which each puts what it sees into a place of its own;
/// one damaged folder stops nobody. Where that takes more files than may be open, one thread does it.
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
    // Only what is not shown can do without its folder.
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
    // Ended, and nothing has happened to it since: its folder is not opened.
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
    // Those that run take longest and may lie side by side, so nobody is given more than a handful at a time.
    let given: Vec<(&SessionsDir, AtomicUsize)> =
        sessions_dirs.iter().map(|sessions_dir| (sessions_dir, AtomicUsize::new(0))).collect();
    let places = Places::default();
    let work = || {
        let (mut place, mut rest) = (P::default(), Vec::new());
        for (sessions_dir, next) in &given {
            let overview = Overview::over(sessions_dir, live.as_ref())?;
            while let Some(handful) = sessions_dir.ids.chunks(HANDFUL).nth(next.fetch_add(1, Ordering::Relaxed)) {
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
        living::save(live, engine.home.root(), &sessions_dir.dir);
    }
    Ok(Seen { places, older: older.into_inner(), rest: rest.concat() })
}

/// `None` for a folder that was purged or archived while we looked. That no file can be opened is not the session's fault.
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

/// What one thread has seen, as JSON: one text, and where in it each session stands.
struct Page {
    text: Vec<u8>,
    places: Vec<(Order, Range<usize>)>,
    failed: Option<serde_json::Error>,
}

impl Default for Page {
    fn default() -> Page {
        // Much at once: an allocator that has to grow a thread's memory page by page stops the others each time.
        Page { text: Vec::with_capacity(256 * 1024), places: Vec::new(), failed: None }
    }
}

/// The same as JSON objects, in order. Each thread writes what it sees: with thousands of sessions, moving views between
/// threads takes longer than writing them.
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

/// Whether a person has to do something before it goes on.
#[must_use]
pub fn needs_person(view: &View) -> bool {
    view.state == Phase::Asking || (view.alarm.is_some() || view.message_waits.is_some()) && !view.ended
}
