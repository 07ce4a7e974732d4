//! The list for eyes: one line for each session, whatever the width of the window.

use super::tilde;
use crate::exit::Result;
use crate::say;
use crate::ui::asking::UNSEEN;
use crate::ui::columns::{Column, fit};
use crate::ui::money::rounded;
use crate::ui::next_step::after_loss;
use crate::ui::style::Style;
use crate::ui::table::{Cell, cut, lay_out};
use crate::ui::time::age;
use ostler_core::asking::Shown;
use ostler_core::fact::Verdict;
use ostler_core::outcome::Kind;
use ostler_core::view::{Damaged, Phase, RetryingNow, View};
use ostler_engine::list::{Found, Listed};
use ostler_engine::process::now;
use unicode_width::UnicodeWidthStr;

/// Below this many columns there is none for ids: what has no name is called by its id, with its title behind that.
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

/// The table, and below it what is hidden. `width`: that of the window, if there is one.
pub fn text(found: &Found<Listed>, style: Style, width: Option<usize>) -> String {
    let ids = width.is_none_or(|width| width >= ROOM_FOR_IDS);
    let mut columns = vec![MARK];
    columns.extend(ids.then_some(ID));
    columns.extend(REST);
    if let (false, Some(width), Some(name)) = (ids, width, columns.iter_mut().find(|column| column.head == "NAME")) {
        // An id and enough of the title behind it to tell what it is about, before there is anything else.
        const OTHERS: usize = 29;
        name.min = width.saturating_sub(OTHERS).clamp(name.min, 18);
    }
    let head = columns.iter().map(|column| Cell::painted(column.head, move |text| style.dim(text))).collect();
    let mut rows = vec![head];
    rows.extend(found.listed.iter().map(|one| match one {
        Listed::Good(view) => row(view, ids, style),
        Listed::Bad(damaged) => damaged_row(damaged, ids, style),
    }));
    let shows_last = fit(&columns, &mut rows, width);
    let mut text = lay_out(&rows, width);
    if let Some(width) = width.filter(|_| !shows_last) {
        text.extend(found.listed.iter().filter_map(|one| question(one, width)).map(|line| style.yellow(&line) + "\n"));
    }
    if let Some(hidden) = hidden(found).filter(|_| width.is_some()) {
        text.push_str(&format!("{}\n", style.dim(&hidden)));
    }
    text
}

/// What a session asks, in a line below a table that has no room for it.
fn question(listed: &Listed, width: usize) -> Option<String> {
    let Listed::Good(view) = listed else { return None };
    let head = format!("? {}: ", view.name.as_deref().unwrap_or(view.id.as_str()));
    let head = cut(&ostler_screen::printable(&head), width / 2);
    let room = width.saturating_sub(head.width());
    Some(format!("{head}{}", Shown::of(view.asking.as_ref()?).line(room).asked))
}

/// Prints it on standard output.
pub fn print(found: &Found<Listed>, style: Style, width: Option<usize>) -> Result<()> {
    if !found.listed.is_empty() {
        return say::text(&text(found, style, width));
    }
    let first = "ostler run demo \"fix the failing test\"";
    match (found.filtered, hidden(found)) {
        (true, _) => say::text("No session matches.\n"),
        (false, Some(hidden)) => say::text(&format!("No sessions now or in the last day; {hidden}\n")),
        (false, None) => say::text(&format!("No sessions yet. Start one: {}\n", style.bold(first))),
    }
}

/// `12 ended earlier, 3 archived: ostler ls -a`.
fn hidden(found: &Found<Listed>) -> Option<String> {
    let counted = |count: usize, what: &str| (count > 0).then(|| format!("{count} {what}"));
    let parts: Vec<String> =
        [counted(found.older, "ended earlier"), counted(found.archived, "archived")].into_iter().flatten().collect();
    let older = (!parts.is_empty()).then(|| format!("{}: ostler ls -a", parts.join(", ")));
    let more = counted(found.more, "more match; to see them, leave out -n");
    [more, older].into_iter().flatten().reduce(|first, second| format!("{first}; {second}"))
}

fn row(view: &View, ids: bool, style: Style) -> Vec<Cell> {
    let (mark, word) = state_word(view);
    let paint = paint(mark, style);
    let agent = agent_name(view);
    let name = match ids {
        true => view.title.clone(),
        // Only the id says which one it is; the title says what it is about.
        false => view.name.clone().unwrap_or_else(|| format!("{} {}", view.id, view.title)),
    };
    let mut cells = vec![Cell::painted(mark, paint)];
    cells.extend(ids.then(|| Cell::painted(view.id.as_str(), move |text| style.dim(text))));
    cells.extend([
        Cell::painted(&name, move |text| style.bold(text)),
        Cell::painted(&word, paint),
        Cell::new(&agent),
        Cell::painted(&place(view), move |text| style.dim(text)),
        Cell::new(&rounded(view.cost_usd).unwrap_or_default()),
        last(view),
    ]);
    cells
}

fn damaged_row(damaged: &Damaged, ids: bool, style: Style) -> Vec<Cell> {
    let red = move |text: &str| style.red(text);
    let mut cells = vec![Cell::painted("!", red)];
    cells.extend(ids.then(|| Cell::new(&damaged.id)));
    let name = if ids { "-" } else { &damaged.id };
    cells.extend([Cell::new(name), Cell::painted("damaged", red), Cell::new("-"), Cell::new("-"), Cell::new("")]);
    cells.push(Cell::new(&damaged.damage));
    cells
}

/// Colour is state; the mark says the same without colour.
fn paint(mark: &'static str, style: Style) -> impl Fn(&str) -> String + Copy + 'static {
    move |text: &str| match mark {
        "?" | "!" => style.yellow(text),
        "✘" => style.red(text),
        "■" => style.magenta(text),
        "○" => style.cyan(text),
        "✔" => style.dim(text),
        _ => style.green(text),
    }
}

fn last(view: &View) -> Cell {
    match doing(view) {
        Doing::Asks(shown) => Cell::fitting(UNSEEN, move |room| shown.line(room).asked),
        Doing::Says(text) => Cell::new(&text),
    }
}

/// What stands behind a session in a list.
pub enum Doing {
    /// It asks this.
    Asks(Shown),
    /// A line.
    Says(String),
}

/// What a person looks for first: what is wrong, what it asks, how long it has been quiet, what it said last.
pub fn doing(view: &View) -> Doing {
    let said = view.last.clone().or_else(|| failure(view)).unwrap_or_default();
    let text = match (&view.alarm, &view.asking) {
        (Some(alarm), _) if !view.ended => format!("! {alarm}"),
        (_, Some(ask)) => {
            return Doing::Asks(Shown::of(ask));
        }
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

/// After so long a start without an answer is worth a word.
const NO_ANSWER_S: u64 = 30;

/// Its program has not opened the conversation, for so long that it may not speak the protocol.
pub fn no_answer(view: &View) -> Option<String> {
    let seconds = view.no_answer_s.filter(|seconds| view.state == Phase::Starting && *seconds >= NO_ANSWER_S)?;
    Some(format!("no answer for {}; is it an ACP agent?", age(seconds.cast_signed())))
}

/// The running turn only waits for the model's server.
pub fn is_retrying(view: &View) -> bool {
    view.retrying.is_some() && view.state == Phase::Working
}

pub fn retry_words(now: &RetryingNow) -> String {
    format!("retrying: {}", now.words())
}

/// Why the last turn of a session that goes on failed, when the agent said nothing of it.
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

/// A command is known by its program.
pub fn agent_name(view: &View) -> String {
    if view.agent != "command" {
        return view.agent.clone();
    }
    let program = view.command.first().map_or("command", String::as_str);
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
        Phase::Idle => "○",
        Phase::Starting | Phase::Working | Phase::Running | Phase::Stopping | Phase::Ended => "●",
    };
    (mark, format!("{} {for_how_long}", view.status))
}
