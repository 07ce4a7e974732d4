//! The list for people: one line for each session, whatever the width of the window.

use super::tilde;
use crate::exit::Result;
use crate::say;
use crate::ui::asking::UNSEEN;
use crate::ui::columns::{Column, fit};
use crate::ui::money::rounded;
use crate::ui::next_step::after_loss;
use crate::ui::style::Style;
use crate::ui::table::{Cell, cut, lay_out};
use crate::ui::time::{age, clock, start_time};
use ostler_core::asking::Shown;
use ostler_core::fact::Verdict;
use ostler_core::id::SessionId;
use ostler_core::outcome::Kind;
use ostler_core::start_when::StartWhen;
use ostler_core::view::{Damaged, Phase, RetryingNow, View};
use ostler_engine::Engine;
use ostler_engine::list::{self, Found, Listed, Wanted};
use ostler_engine::process::now;
use ostler_jobs::fan;
use std::collections::HashMap;
use unicode_width::UnicodeWidthStr;

/// Below this many columns there is no column for ids: a session without a name is shown by its id, followed by its
/// title.
const ROOM_FOR_IDS: usize = 64;

const MARK: Column = Column { head: "", min: 1, max: 1, spare: 0 };
const ID: Column = Column { head: "ID", min: 8, max: 8, spare: 0 };
const REST: [Column; 6] = [
    Column { head: "NAME", min: 10, max: 32, spare: 0 },
    Column { head: "STATE", min: 24, max: 24, spare: 0 },
    Column { head: "AGENT", min: 10, max: 16, spare: 2 },
    Column { head: "WHERE", min: 14, max: 40, spare: 3 },
    Column { head: "COST", min: 8, max: 8, spare: 4 },
    Column { head: "LAST", min: 20, max: 100, spare: 1 },
];

/// How the sessions are shown.
#[derive(Clone, Copy)]
pub struct Look {
    pub style: Style,
    /// The width of the window, if there is one.
    pub width: Option<usize>,
}

impl Look {
    fn has_ids(self) -> bool {
        self.width.is_none_or(|width| width >= ROOM_FOR_IDS)
    }
}

/// One session, as it is shown.
pub struct Row {
    cells: Vec<Cell>,
    /// Which cell is its name.
    name: usize,
    /// The name of the session that asks, and its question.
    asks: Option<(String, Shown)>,
    /// It has not ended.
    pub runs: bool,
    /// Its relation to the job above it.
    family: Family,
}

/// What relates a job and its children.
#[derive(Default)]
struct Family {
    id: Option<SessionId>,
    parent: Option<SessionId>,
    job: Option<String>,
}

/// Jobs with very many children, of which only those that run are shown.
const FOLDED: [&str; 2] = ["loop", "worker"];

/// Lists each child of a job below the job, the oldest first.
fn below_their_jobs(listed: Vec<Row>, all: bool) -> Vec<Row> {
    let jobs: HashMap<SessionId, bool> =
        listed.iter().filter_map(|row| Some((row.family.id?, FOLDED.contains(&row.family.job.as_deref()?)))).collect();
    if jobs.is_empty() {
        return listed;
    }
    let mut children: HashMap<SessionId, Vec<Row>> = HashMap::new();
    let mut others = Vec::new();
    for row in listed {
        match row.family.parent.and_then(|parent| Some((parent, *jobs.get(&parent)?))) {
            Some((_, true)) if !row.runs && !all => {}
            Some((parent, _)) => children.entry(parent).or_default().push(row),
            None => others.push(row),
        }
    }
    let mut rows = Vec::new();
    // A job may itself be the child of a job.
    let mut waiting: Vec<(usize, Row)> = others.into_iter().rev().map(|row| (0, row)).collect();
    while let Some((depth, mut row)) = waiting.pop() {
        if let Some(name) = row.cells.get_mut(row.name).filter(|_| depth > 0) {
            *name = std::mem::replace(name, Cell::new("")).indented(&format!("{}└ ", "  ".repeat(depth - 1)));
        }
        let below = row.family.id.and_then(|id| children.remove(&id)).unwrap_or_default();
        waiting.extend(below.into_iter().map(|child| (depth + 1, child)));
        rows.push(row);
    }
    rows
}

/// The parent of a session that `fan` has started is the session that it is a copy of; it is listed below the job.
fn copies_belong_to_their_job(engine: &Engine, listed: &mut [Row]) {
    let fans: Vec<SessionId> = listed
        .iter()
        .filter(|row| row.family.job.as_deref() == Some(fan::KIND))
        .filter_map(|row| row.family.id)
        .collect();
    for job in fans {
        // A job whose steps cannot be read is listed without children.
        let Ok(begun) = engine.begun_by_job(job) else { continue };
        for row in listed.iter_mut().filter(|row| row.family.id.is_some_and(|id| begun.contains(&id))) {
            row.family.parent = Some(job);
        }
    }
}

/// The sessions that were asked for. Their rows are made where the sessions are read: in several threads when there are
/// many.
pub fn find(engine: &Engine, wanted: &Wanted, look: Look) -> Result<Found<Row>> {
    let (ids, style) = (look.has_ids(), look.style);
    // Families are put together first: a session is counted where it is shown.
    let uncut = Wanted { most: None, ..wanted.clone() };
    let mut found = list::find_and(engine, &uncut, |one| match one {
        Listed::Good(view) => row(&view, ids, style),
        Listed::Bad(damaged) => damaged_row(&damaged, ids, style),
    })?;
    copies_belong_to_their_job(engine, &mut found.listed);
    let mut listed = below_their_jobs(found.listed, wanted.all);
    let more = listed.len().saturating_sub(wanted.most.unwrap_or(usize::MAX));
    listed.truncate(listed.len() - more);
    Ok(Found { listed, more, ..found })
}

/// The table, and below it what is hidden.
pub fn text(found: Found<Row>, Look { style, width }: Look) -> String {
    let hidden = hidden(&found).filter(|_| width.is_some());
    let ids = Look { style, width }.has_ids();
    let mut columns = vec![MARK];
    columns.extend(ids.then_some(ID));
    columns.extend(REST);
    if let (false, Some(width), Some(name)) = (ids, width, columns.iter_mut().find(|column| column.head == "NAME")) {
        // Room for an id and enough of the title to show what it is about, before any other column gets room.
        const OTHERS: usize = 29;
        name.min = width.saturating_sub(OTHERS).clamp(name.min, 18);
    }
    let head = columns.iter().map(|column| Cell::painted(column.head, style, Style::dim)).collect();
    let mut rows = vec![head];
    let mut questions = Vec::new();
    for Row { cells, asks, .. } in found.listed {
        rows.push(cells);
        questions.extend(asks);
    }
    let shows_last = fit(&columns, &mut rows, width);
    let mut text = lay_out(&rows, width);
    if let Some(width) = width.filter(|_| !shows_last) {
        text.extend(questions.iter().map(|asks| style.yellow(&question(asks, width)) + "\n"));
    }
    if let Some(hidden) = hidden {
        text.push_str(&format!("{}\n", style.dim(&hidden)));
    }
    text
}

/// What a session asks, in a line below a table that has no room for the question.
fn question((who, shown): &(String, Shown), width: usize) -> String {
    let head = cut(&ostler_screen::printable(&format!("? {who}: ")), width / 2);
    let room = width.saturating_sub(head.width());
    format!("{head}{}", shown.line(room).asked)
}

/// Prints it on standard output.
pub fn print(found: Found<Row>, look: Look) -> Result<()> {
    if !found.listed.is_empty() {
        return say::text(&text(found, look));
    }
    let style = look.style;
    let first = "ostler run demo \"fix the failing test\"";
    match (found.filtered, hidden(&found)) {
        (true, _) => say::text("No session matches.\n"),
        (false, Some(hidden)) => say::text(&format!("No sessions now or in the last day; {hidden}\n")),
        (false, None) => say::text(&format!("No sessions yet. Start one: {}\n", style.bold(first))),
    }
}

/// `12 ended earlier, 3 archived: ostler ls -a`.
fn hidden<T>(found: &Found<T>) -> Option<String> {
    let counted = |count: usize, what: &str| (count > 0).then(|| format!("{count} {what}"));
    let parts: Vec<String> =
        [counted(found.older, "ended earlier"), counted(found.archived, "archived")].into_iter().flatten().collect();
    let older = (!parts.is_empty()).then(|| format!("{}: ostler ls -a", parts.join(", ")));
    let more = counted(found.more, "more match; to see them, leave out -n");
    [more, older].into_iter().flatten().reduce(|first, second| format!("{first}; {second}"))
}

fn row(view: &View, ids: bool, style: Style) -> Row {
    let (mark, word) = state_word(view);
    let paint = paint(mark);
    let agent = agent_name(view);
    let name = match ids {
        true => view.title.clone(),
        // Only the id identifies the session; the title says what it is about.
        false => view.name.clone().unwrap_or_else(|| format!("{} {}", view.id, view.title)),
    };
    let mut cells = vec![Cell::painted(mark, style, paint)];
    cells.extend(ids.then(|| Cell::painted(view.id.as_str(), style, Style::dim)));
    cells.extend([
        Cell::painted(&name, style, Style::bold),
        Cell::painted(&word, style, paint),
        Cell::new(&agent),
        Cell::painted(&place(view), style, Style::dim),
        Cell::new(&rounded(view.cost_usd).unwrap_or_default()),
        last(view),
    ]);
    let who = || view.name.clone().unwrap_or_else(|| view.id.to_string());
    let family = Family { id: Some(view.id), parent: view.parent, job: view.job.clone() };
    let asks = view.asking.as_ref().map(|asking| (who(), Shown::of(asking)));
    Row { cells, name: 1 + usize::from(ids), asks, runs: !view.ended, family }
}

fn damaged_row(damaged: &Damaged, ids: bool, style: Style) -> Row {
    let red = |text| Cell::painted(text, style, Style::red);
    let mut cells = vec![red("!")];
    cells.extend(ids.then(|| Cell::new(&damaged.id)));
    let name = if ids { "-" } else { &damaged.id };
    cells.extend([Cell::new(name), red("damaged"), Cell::new("-"), Cell::new("-"), Cell::new("")]);
    cells.push(Cell::new(&damaged.damage));
    Row { cells, name: 1 + usize::from(ids), asks: None, runs: false, family: Family::default() }
}

/// The colour shows the state; the mark shows the same without colour.
fn paint(mark: &str) -> fn(Style, &str) -> String {
    match mark {
        "?" | "!" => Style::yellow,
        "✘" => Style::red,
        "■" => Style::magenta,
        "○" => Style::cyan,
        "✔" => Style::dim,
        _ => Style::green,
    }
}

fn last(view: &View) -> Cell {
    match doing(view) {
        Doing::Asks(shown) => Cell::fitting(UNSEEN, move |room| shown.line(room).asked),
        Doing::Says(text) => Cell::new(&text),
    }
}

/// What is shown after a session in a list.
pub enum Doing {
    /// It asks this.
    Asks(Shown),
    /// A line.
    Says(String),
}

/// What a person needs first: what is wrong, what it asks, how long it has been quiet, what it said last.
pub fn doing(view: &View) -> Doing {
    let said = view.last.clone().or_else(|| failure(view)).unwrap_or_default();
    let text = match (&view.alarm, &view.asking) {
        (Some(alarm), _) if !view.ended => format!("! {alarm}"),
        (_, Some(ask)) => {
            return Doing::Asks(Shown::of(ask));
        }
        _ if let Some(words) = waits_words(view) => words,
        _ if let Some(why) = &view.message_waits => format!("not delivered yet: {why}"),
        _ if let Some(steps) = after_loss(view) => {
            if said.is_empty() {
                steps
            } else {
                format!("{steps} ({said})")
            }
        }
        _ if no_answer(view).is_some() => no_answer(view).unwrap_or_default(),
        _ if !view.maybe_delivered.is_empty() => {
            let n = view.maybe_delivered.first().copied().unwrap_or_default();
            format!("! message {n} may have been delivered; see ostler send {} --list", view.id)
        }
        _ if is_retrying(view) => view.retrying.as_ref().map(retry_words).unwrap_or_default(),
        _ if matches!(view.state, Phase::Working | Phase::Running) && view.quiet_s >= 60 => {
            format!("(quiet {}) {said}", age(i64::try_from(view.quiet_s).unwrap_or(i64::MAX)))
        }
        _ => said,
    };
    Doing::Says(text.lines().next().unwrap_or_default().to_owned())
}

/// What a queued session waits for: its place in a queue, a time, other sessions.
pub fn waits_words(view: &View) -> Option<String> {
    let waits = view.waits.as_ref().filter(|_| view.state == Phase::Queued)?;
    let StartWhen { at, after, queue, .. } = &waits.when;
    let mut words = Vec::new();
    // A session that is in a queue has nothing else to wait for any more.
    if waits.place.is_none() {
        words.extend(after.iter().map(|one| match one.outcome {
            Some(Kind::Succeeded) => format!("waits for {}", one.id),
            Some(kind) => format!("waits until {} is {}", one.id, kind.word()),
            None => format!("waits until {} has ended", one.id),
        }));
        words.extend(at.map(|at| format!("starts at {}", start_time(at, now()))));
    }
    words.extend(queue.as_ref().map(|queue| match waits.place {
        Some(place) => format!("number {place} in queue {}", queue.name),
        None => format!("then queue {}", queue.name),
    }));
    Some(words.join(", "))
}

/// After this time a start without an answer is mentioned.
const NO_ANSWER_S: u64 = 30;

/// The program has not opened the conversation for so long that it may not speak the protocol.
pub fn no_answer(view: &View) -> Option<String> {
    let seconds = view.no_answer_s.filter(|seconds| view.state == Phase::Starting && *seconds >= NO_ANSWER_S)?;
    Some(format!("no answer for {}; is it an ACP agent?", age(seconds.cast_signed())))
}

/// The running turn is only waiting for the model's server.
pub fn is_retrying(view: &View) -> bool {
    view.retrying.is_some() && view.state == Phase::Working
}

pub fn retry_words(now: &RetryingNow) -> String {
    format!("retrying: {}", now.words())
}

/// Why the last turn of a running session failed, when the agent said nothing about it.
fn failure(view: &View) -> Option<String> {
    let turn = view.last_turn.as_ref().filter(|turn| turn.verdict == Verdict::Failed && !view.ended)?;
    turn.reason.clone()
}

/// The last two parts of the folder, and what git has checked out there.
pub fn place(view: &View) -> String {
    let path = tilde(&view.cwd);
    let parts: Vec<&str> = path.split('/').collect();
    let short = match &parts[..] {
        [.., first, second] if parts.len() > 3 || parts[0] == "~" && parts.len() > 2 => format!("{first}/{second}"),
        _ => path.clone(),
    };
    match &view.branch {
        Some(branch) => format!("{short} ({branch})"),
        None => short,
    }
}

/// A command is shown by the name of its program, not by that of `env` before it.
pub fn agent_name(view: &View) -> String {
    if let Some(kind) = &view.job {
        return kind.clone();
    }
    if view.agent != "command" {
        return view.agent.clone();
    }
    let is_env = |word: &str| word == "env" || word.contains('=');
    let named = view.command.iter().find(|word| !is_env(word)).or(view.command.first());
    let program = named.map_or("command", String::as_str);
    program.rsplit('/').next().unwrap_or(program).to_owned()
}

/// The mark and the words for a state: what it is, and for how long.
pub fn state_word(view: &View) -> (&'static str, String) {
    let for_how_long = age(now().as_second() - view.since.as_second());
    if let Some(outcome) = view.outcome.as_ref().filter(|_| view.ended) {
        let mark = match outcome.kind {
            Kind::Succeeded => "✔",
            Kind::Failed | Kind::Lost => "✘",
            Kind::Interrupted | Kind::Stopped => "■",
        };
        let archived = if view.archived { " (archived)" } else { "" };
        return (mark, format!("{} {for_how_long}{archived}", outcome.kind.word()));
    }
    let mark = match view.state {
        Phase::Asking => "?",
        _ if view.alarm.is_some() || view.message_waits.is_some() => "!",
        Phase::Queued => "…",
        Phase::Idle | Phase::Waiting => "○",
        Phase::Starting | Phase::Working | Phase::Running | Phase::Stopping | Phase::Ended => "●",
    };
    if let Some((what, until)) = view.waits_for.as_ref().zip(view.resumes_at).filter(|_| view.state == Phase::Waiting) {
        return (mark, format!("{what} until {}", clock(until, now())));
    }
    (mark, format!("{} {for_how_long}", view.status))
}
