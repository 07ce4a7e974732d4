//! `ostler ls`, and `ostler` alone: what there is, made for eyes on a terminal and for scripts on a pipe.

use crate::args::Ls;
use crate::context::{Context, variable};
use crate::exit::{Code, Result};
use crate::say::say;
use crate::ui::style::Style;
use crate::ui::table::{Cell, lay_out};
use crate::ui::time::age;
use ostler_core::id::SessionId;
use ostler_core::outcome::Kind;
use ostler_core::view::{Damaged, Phase, View};
use ostler_store::home::Shelf;
use ostler_store::look;
use ostler_sys::clock;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Ended sessions are listed for this long without `-a`.
const RECENT_S: i64 = 24 * 3600;
/// So many sessions are looked at before another thread may have its turn.
const HANDFUL: usize = 16;

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
type Order = (u8, i64, String);

fn order(one: &Listed) -> Order {
    match one {
        Listed::Bad(damaged) => (0, 0, damaged.id.clone()),
        Listed::Good(view) => {
            let group = if needs_person(view) {
                1
            } else if view.ended {
                3
            } else {
                2
            };
            (group, -view.created.as_microsecond(), view.id.as_str().to_owned())
        }
    }
}

/// Looks at all of them, with as many threads as the machine has, and keeps of each what `keep` makes of it; one damaged
/// folder stops nobody.
pub fn list<T: Send>(context: &Context, all: bool, keep: impl Fn(Listed) -> T + Sync) -> Result<Vec<T>> {
    let shelves = context.home.shelves(all)?;
    let wanted: Vec<(&Shelf, SessionId)> =
        shelves.iter().flat_map(|shelf| shelf.ids.iter().map(move |&id| (shelf, id))).collect();
    let now = clock::now().as_second();
    let recent = |one: &Listed| match one {
        Listed::Good(view) => all || !view.ended || now - view.updated.as_second() < RECENT_S,
        Listed::Bad(_) => true,
    };
    let look = |&(shelf, id): &(&Shelf, SessionId)| {
        let one = look_at(shelf, id).filter(recent)?;
        Some((order(&one), keep(one)))
    };
    let threads =
        if wanted.len() < 32 { 1 } else { std::thread::available_parallelism().map_or(1, usize::from).min(8) };
    // Those that run take longest and may lie side by side, so nobody is given more than a handful at a time.
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some(handful) = wanted.chunks(HANDFUL).nth(next.fetch_add(1, Ordering::Relaxed)) {
            found.extend(handful.iter().filter_map(look));
        }
        found
    };
    let mut listed = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut found = work();
        found.extend(others.into_iter().flat_map(|other| other.join().unwrap_or_default()));
        found
    });
    listed.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
    Ok(listed.into_iter().map(|(_, kept)| kept).collect())
}

/// `None` for a folder that was purged or archived while we looked.
fn look_at(shelf: &Shelf, id: SessionId) -> Option<Listed> {
    match look::look_on(shelf, id) {
        Ok(view) => Some(Listed::Good(Box::new(view))),
        Err(_) if !shelf.place(id).path.exists() => None,
        Err(error) => Some(Listed::Bad(Damaged::new(id.as_str(), error.without_session().to_string()))),
    }
}

fn print_json(context: &Context, all: bool) -> Result<()> {
    let in_json = |one: Listed| {
        let mut text = Vec::with_capacity(1024);
        match &one {
            Listed::Good(view) => serde_json::to_writer(&mut text, view),
            Listed::Bad(damaged) => serde_json::to_writer(&mut text, damaged),
        }
        .map(|()| text)
    };
    let listed = list(context, all, in_json)?.into_iter().collect::<std::result::Result<Vec<_>, _>>();
    let listed = listed.map_err(std::io::Error::from)?;
    let mut text = Vec::with_capacity(listed.iter().map(|one| one.len() + 2).sum::<usize>() + 4);
    text.push(b'[');
    for (index, one) in listed.iter().enumerate() {
        text.extend_from_slice(if index == 0 { b"\n" } else { b",\n" });
        text.extend_from_slice(one);
    }
    text.extend_from_slice(b"\n]\n");
    Ok(std::io::stdout().lock().write_all(&text)?)
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
    Ok(std::io::stdout().lock().write_all(text.as_bytes())?)
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
