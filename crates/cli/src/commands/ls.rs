//! `ostler ls`, and `ostler` alone: what there is, made for eyes on a terminal and for scripts on a pipe.

use crate::args::Ls;
use crate::context::{Context, variable};
use crate::exit::{Code, Result};
use crate::say::{self, not_written, say};
use crate::ui::style::Style;
use crate::ui::table::{Cell, lay_out};
use crate::ui::time::age;
use ostler_core::id::SessionId;
use ostler_core::outcome::Kind;
use ostler_core::view::{Damaged, Phase, View};
use ostler_store::home::Shelf;
use ostler_store::overview::Overview;
use ostler_sys::clock;
use ostler_sys::threads::side_by_side;
use std::io::{BufWriter, IsTerminal, Write};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Ended sessions are listed for this long without `-a`.
const RECENT_S: i64 = 24 * 3600;
/// So many sessions are looked at before another thread may have its turn.
const HANDFUL: usize = 4;

/// A session, or what is wrong with its folder.
pub enum Listed {
    Good(Box<View>),
    Bad(Damaged),
}

pub fn run(context: &Context, args: &Ls) -> Result<Code> {
    if args.foreign {
        super::foreign::list(context, args.json)?;
        return Ok(Code::Succeeded);
    }
    if args.json {
        print_json(context, args.all)?;
    } else {
        print_table(context, &list(context, args.all, |one| one)?)?;
    }
    Ok(Code::Succeeded)
}

/// `ostler` alone: the list, or on a fresh machine the three commands to start with.
pub fn bare(context: &Context) -> Result<Code> {
    let listed = list(context, false, |one| one)?;
    if listed.is_empty() {
        let style = context.style;
        say!("ostler keeps coding-agent sessions. Start with:\n")?;
        for (command, what) in [
            ("ostler run demo \"fix the failing test\"", "see one work, without key or network"),
            ("ostler run -d -- make test", "keep any command in the background"),
            ("ostler ls", "see what runs"),
        ] {
            say!("  {}{}{}", style.bold(command), " ".repeat(42 - command.len()), style.dim(what))?;
        }
        say!("\nostler --help lists the rest.")?;
        return Ok(Code::Succeeded);
    }
    print_table(context, &listed)?;
    Ok(Code::Succeeded)
}

/// In which order they are listed: what is damaged, what needs a person, what runs, what has ended; the newest first.
type Order = (u8, i64, SessionId);

fn order(id: SessionId, one: &Listed) -> Order {
    match one {
        Listed::Bad(_) => (0, 0, id),
        Listed::Good(view) => {
            let group = if needs_person(view) {
                1
            } else if view.ended {
                3
            } else {
                2
            };
            (group, -view.created.as_microsecond(), id)
        }
    }
}

/// Looks at all of them and keeps of each what `keep` makes of it, in order.
pub fn list<T: Send>(context: &Context, all: bool, keep: impl Fn(Listed) -> T + Sync) -> Result<Vec<T>> {
    let put = |found: &mut Vec<(Order, T)>, order: Order, one: Listed| found.push((order, keep(one)));
    let mut listed: Vec<(Order, T)> = survey(context, all, put)?.into_iter().flatten().collect();
    listed.sort_unstable_by_key(|(order, _)| *order);
    Ok(listed.into_iter().map(|(_, kept)| kept).collect())
}

/// Looks at all of them with as many threads as the machine has, of which each puts what it sees into a place of its own;
/// one damaged folder stops nobody.
fn survey<P: Default + Send>(
    context: &Context,
    all: bool,
    put: impl Fn(&mut P, Order, Listed) + Sync,
) -> Result<Vec<P>> {
    let shelves = context.home.shelves(all)?;
    let now = clock::now().as_second();
    let recent = |one: &Listed| match one {
        Listed::Good(view) => all || !view.ended || now - view.updated.as_second() < RECENT_S,
        Listed::Bad(_) => true,
    };
    // Those that run take longest and may lie side by side, so nobody is given more than a handful at a time.
    let given: Vec<(&Shelf, AtomicUsize)> = shelves.iter().map(|shelf| (shelf, AtomicUsize::new(0))).collect();
    let work = || {
        let mut place = P::default();
        for (shelf, next) in &given {
            let overview = Overview::over(shelf)?;
            while let Some(handful) = shelf.ids.chunks(HANDFUL).nth(next.fetch_add(1, Ordering::Relaxed)) {
                for &id in handful {
                    if let Some(one) = look_at(&overview, shelf, id).filter(recent) {
                        put(&mut place, order(id, &one), one);
                    }
                }
            }
        }
        Ok(place)
    };
    let sessions: usize = shelves.iter().map(|shelf| shelf.ids.len()).sum();
    side_by_side(if sessions < 32 { 1 } else { 8 }, work).into_iter().collect()
}

/// `None` for a folder that was purged or archived while we looked.
fn look_at(overview: &Overview<'_>, shelf: &Shelf, id: SessionId) -> Option<Listed> {
    match overview.look(id) {
        Ok(view) => Some(Listed::Good(Box::new(view))),
        Err(_) if !shelf.place(id).path.exists() => None,
        Err(error) => {
            let damage = error.without_session().to_string();
            Some(Listed::Bad(Damaged::new(id.as_str(), overview.is_locked(id), damage)))
        }
    }
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

fn print_json(context: &Context, all: bool) -> Result<()> {
    let put = |page: &mut Page, order: Order, one: Listed| {
        let begin = page.text.len();
        let written = match &one {
            Listed::Good(view) => serde_json::to_writer(&mut page.text, view),
            Listed::Bad(damaged) => serde_json::to_writer(&mut page.text, damaged),
        };
        page.places.push((order, begin..page.text.len()));
        page.failed = page.failed.take().or(written.err());
    };
    let mut pages = survey(context, all, put)?;
    if let Some(error) = pages.iter_mut().find_map(|page| page.failed.take()) {
        return Err(std::io::Error::from(error).into());
    }
    let mut listed: Vec<(Order, &[u8])> = Vec::new();
    for page in &pages {
        listed.extend(page.places.iter().map(|(order, place)| (*order, &page.text[place.clone()])));
    }
    listed.sort_unstable_by_key(|(order, _)| *order);
    print_array(listed.into_iter().map(|(_, one)| one)).map_err(not_written)
}

fn print_array<'a>(listed: impl Iterator<Item = &'a [u8]>) -> std::io::Result<()> {
    let mut out = BufWriter::with_capacity(64 * 1024, std::io::stdout().lock());
    out.write_all(b"[")?;
    for (index, one) in listed.enumerate() {
        out.write_all(if index == 0 { b"\n" } else { b",\n" })?;
        out.write_all(one)?;
    }
    out.write_all(b"\n]\n")?;
    out.flush()
}

fn needs_person(view: &View) -> bool {
    view.state == Phase::Asking || view.alarm.is_some() && !view.ended
}

fn print_table(context: &Context, listed: &[Listed]) -> Result<()> {
    let style = context.style;
    let width = if std::io::stdout().is_terminal() { ostler_sys::pty::size(std::io::stdout()) } else { None };
    let head = |text: &str| Cell::painted(text, move |text| style.dim(text));
    let mut rows = vec![["", "ID", "STATE", "AGENT", "AGE", "WHERE", "LAST"].map(head).into()];
    rows.extend(listed.iter().map(|one| match one {
        Listed::Good(view) => row(view, style),
        Listed::Bad(damaged) => vec![
            Cell::painted("!", move |text| style.red(text)),
            Cell::new(&damaged.id),
            Cell::painted("damaged", move |text| style.red(text)),
            Cell::new("-"),
            Cell::new("-"),
            Cell::new("-"),
            Cell::new(&damaged.damage),
        ],
    }));
    let columns = width.map(|(_, columns)| usize::from(columns));
    make_narrow(&mut rows, columns);
    let text = lay_out(&rows, columns);
    say::text(&text)
}

/// Leaves out what a narrow window has no room for: where first, then agent and age.
fn make_narrow(rows: &mut [Vec<Cell>], columns: Option<usize>) {
    const WHERE: usize = 5;
    const AGE: usize = 4;
    const AGENT: usize = 3;
    let dropped: &[usize] = match columns {
        Some(0..50) => &[WHERE, AGE, AGENT],
        Some(50..76) => &[WHERE],
        Some(_) | None => &[],
    };
    for row in rows {
        for &column in dropped {
            row.remove(column);
        }
    }
}

fn row(view: &View, style: Style) -> Vec<Cell> {
    let (mark, word) = state_word(view);
    let paint = move |text: &str| match mark {
        "?" | "!" => style.yellow(text),
        "✘" => style.red(text),
        "✔" => style.dim(text),
        _ => style.green(text),
    };
    let name = match &view.name {
        Some(name) => format!("{} {name}", view.id),
        None => view.id.as_str().to_owned(),
    };
    let agent = if view.agent == "command" { command_name(view) } else { view.agent.clone() };
    let last = match (&view.alarm, &view.asking) {
        (Some(alarm), _) if !view.ended => format!("! {alarm}"),
        (_, Some(ask)) => format!("asks: {}", ask.words()),
        _ => view.last.clone().unwrap_or_default(),
    };
    vec![
        Cell::painted(mark, paint),
        Cell::painted(&name, move |text| style.bold(text)),
        Cell::painted(&word, paint),
        Cell::new(&agent),
        Cell::new(&age(clock::now().as_second() - view.created.as_second())),
        Cell::painted(&tilde(&view.cwd), move |text| style.dim(text)),
        Cell::new(last.lines().next().unwrap_or_default()),
    ]
}

/// A command is known by its program.
fn command_name(view: &View) -> String {
    let program = view.command.first().map_or("command", String::as_str);
    let short = program.rsplit('/').next().unwrap_or(program);
    crate::ui::table::cut(short, 16)
}

/// The mark and the word for a state; what needs a person stands out.
pub fn state_word(view: &View) -> (&'static str, String) {
    let archived = if view.archived { " (archived)" } else { "" };
    if let Some(outcome) = view.outcome.as_ref().filter(|_| view.ended) {
        let mark = match outcome.kind {
            Kind::Succeeded => "✔",
            Kind::Failed | Kind::Lost => "✘",
            Kind::Interrupted | Kind::Stopped => "■",
        };
        return (mark, format!("{}{archived}", outcome.kind.word()));
    }
    let quiet = if view.state == Phase::Working && view.quiet_s >= 60 {
        format!(", quiet {}", age(i64::try_from(view.quiet_s).unwrap_or(i64::MAX)))
    } else {
        String::new()
    };
    let mark = match view.state {
        Phase::Asking => "?",
        _ if view.alarm.is_some() => "!",
        Phase::Starting | Phase::Working | Phase::Idle | Phase::Stopping | Phase::Ended => "●",
    };
    (mark, format!("{}{quiet}", view.state.word()))
}

/// Home as `~`.
pub fn tilde(path: &str) -> String {
    match variable("HOME").filter(|home| home.len() > 1) {
        Some(home) => match path.strip_prefix(&home) {
            Some("") => "~".to_owned(),
            Some(rest) if rest.starts_with('/') => format!("~{rest}"),
            Some(_) | None => path.to_owned(),
        },
        None => path.to_owned(),
    }
}
