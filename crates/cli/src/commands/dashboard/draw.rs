//! How the dashboard looks: from the state to a buffer. Colours show the state; marks and words show it without colour.

use super::input::{Answering, Field, Form, Mode};
use super::preview::Preview;
use super::row::{Need, Row};
use super::search;
use super::state::{Line, PREVIEW_HEAD, Pick, State};
use crate::ui::money::rounded;
use ostler_core::asking::RowKind;
use ostler_core::id::SessionId;
use ostler_core::limits::counted;
use ostler_core::record::Mode as SessionMode;
use ostler_tui::{Buffer, Input, Rect, Style, Theme, cut, cut_front, rows_of_words, width};

/// The keys and what they do.
pub const KEYS: [(&str, &str); 28] = [
    ("j k ↓ ↑", "next, previous session"),
    ("g G", "first, last"),
    ("PgUp PgDn", "a page"),
    ("Tab", "next that needs you"),
    ("→ ←", "show or hide the sessions of a job"),
    ("/", "filter as you type; Esc clears it"),
    ("//words", "search all conversations, also those outside ostler"),
    ("Space", "peek: the preview in the whole window"),
    ("J K", "scroll the preview (also Ctrl-D, Ctrl-U, wheel)"),
    ("Ctrl-O", "unfold tool calls in the preview, fold them again"),
    ("Enter", "attach; the detach key (Ctrl-\\) comes back here"),
    ("a", "allow what it asks; shows all of it first"),
    ("x", "deny what it asks, with a reason"),
    ("r", "reply; one that has ended is resumed with it"),
    ("n", "new session"),
    ("i", "interrupt the turn"),
    ("s", "stop"),
    ("R", "resume"),
    ("f", "fork: a copy of the conversation"),
    ("A", "archive (stops it first)"),
    ("d", "diff: what it has changed in its worktree"),
    ("l", "land: bring its work to its base branch"),
    ("o", "shell in its folder"),
    ("y", "copy its id"),
    ("v", "mark; the verbs are for all that are marked"),
    ("Ctrl-L", "draw again"),
    ("?", "these keys"),
    ("q", "quit; sessions keep running"),
];

/// Draws everything and returns the position of the cursor. Of the state only the widths of the input lines change.
pub fn draw(state: &mut State, preview: &mut Preview, buffer: &mut Buffer) -> Option<(u16, u16)> {
    let (rows, columns) = state.size;
    let mut mode = std::mem::replace(&mut state.mode, Mode::List);
    header(state, &mode, buffer);
    if let Mode::Search(searching) = &mut mode {
        let cursor = search::draw(state, searching, buffer);
        state.mode = mode;
        return cursor;
    }
    let areas = state.areas();
    list(state, areas.list, buffer);
    rule(areas.rule, buffer, state.theme);
    if areas.preview.height > 0 {
        preview_head(state, preview, areas.preview, buffer);
        preview.render(state.preview_body(), buffer, state.theme);
    }
    let bottom = Rect::new(0, rows.saturating_sub(1), columns, 1.min(rows));
    let cursor = match &mut mode {
        Mode::Keys { first } => {
            keys(state, *first, buffer);
            let more = *first + keys_at_once(state.size) < key_rows(state.size).len();
            hint(state, if more { "any key shows more, Esc goes back" } else { "any key goes back" }, bottom, buffer);
            None
        }
        Mode::List => {
            footer(state, bottom, buffer);
            None
        }
        Mode::Filter => {
            let x = put(buffer, bottom, 0, "filter ", state.theme.bold());
            let area = Rect { x, width: columns.saturating_sub(x), ..bottom };
            Some(state.filter.render(area, buffer, state.theme))
        }
        Mode::Reply { to, input } => Some(reply(state, to, input, buffer)),
        Mode::Confirm { verb, of } => {
            let line = format!("{} {}? y / n", verb.word(), whom(state, of));
            put(
                buffer,
                bottom,
                0,
                &format!("{line:<0$}", usize::from(columns)),
                state.theme.bold().patch(state.theme.chosen()),
            );
            None
        }
        Mode::Answer(answering) => question(state, answering, buffer),
        // Already drawn above: the search has the whole window.
        Mode::Search(_) => None,
        Mode::New(form) => Some(new_session(state, form, buffer)),
    };
    state.mode = mode;
    cursor
}

/// `tests (k3v9x2ab)`, or `3 sessions`.
pub fn whom(state: &State, of: &[SessionId]) -> String {
    match of {
        [only] => state.rows.get(only).map_or_else(|| only.to_string(), Row::called),
        several => counted(several.len() as u64, "session", "sessions"),
    }
}

pub fn put(buffer: &mut Buffer, area: Rect, x: u16, text: &str, style: Style) -> u16 {
    let room = usize::from(area.width.saturating_sub(x));
    if area.height == 0 || room == 0 {
        return x;
    }
    let text = cut(text, room);
    let wide = u16::try_from(width(&text)).unwrap_or(area.width);
    // Removes the style that was there before: terminals differ in how they show text that is both bold and dim.
    buffer.set_style(Rect { x: area.x + x, width: wide.min(area.width - x), height: 1, ..area }, Style::reset());
    buffer.set_stringn(area.x + x, area.y, &text, room, style);
    x + wide
}

fn header(state: &State, mode: &Mode, buffer: &mut Buffer) {
    let area = Rect::new(0, 0, state.size.1, 1.min(state.size.0));
    let theme = state.theme;
    let mut x = put(buffer, area, 0, "ostler", theme.bold());
    if !state.filter.is_empty() && !matches!(mode, Mode::Filter) {
        x = put(buffer, area, x, &format!(" · filter: {}", state.filter.text()), theme.bold());
    }
    if !state.marked.is_empty() {
        x = put(buffer, area, x, &format!(" · {} marked", state.marked.len()), theme.bold());
    }
    for need in Need::ALL {
        let count = state.count(need);
        if count == 0 || need == Need::Ended {
            continue;
        }
        let style = if need == Need::You { theme.mark().patch(theme.bold()) } else { theme.dim() };
        let words = match (need, count) {
            (Need::You, 1) => "1 needs you".to_owned(),
            (Need::You, more) => format!("{more} need you"),
            (other, count) => format!("{count} {}", other.word()),
        };
        x = put(buffer, area, x, " · ", theme.dim());
        x = put(buffer, area, x, &words, style);
    }
}

// The list.

fn list(state: &State, area: Rect, buffer: &mut Buffer) {
    if state.lines.is_empty() {
        let words: &[&str] = match state.filter.is_empty() {
            true => &["No sessions yet.", "n starts one; or in a shell:", "ostler run demo \"fix the failing test\""],
            false => &["No session matches.", "Esc clears the filter."],
        };
        for (words, y) in words.iter().zip(area.top()..area.bottom()) {
            put(buffer, Rect { y, height: 1, ..area }, 1, words, state.theme.dim());
        }
        return;
    }
    let names = state.seen_rows().map(|row| width(&row.name)).max().unwrap_or(0);
    let columns = Columns::of(usize::from(area.width), names);
    for (line, y) in state.seen().iter().zip(area.top()..area.bottom()) {
        let area = Rect { y, height: 1, ..area };
        match line {
            Line::Head(need, count) => {
                put(buffer, area, 0, &format!("{} {count}", need.word()), state.theme.bold());
            }
            Line::Session(id) => {
                if let Some(row) = state.rows.get(id) {
                    session(state, row, &columns, area, buffer);
                }
            }
            Line::Fold(count) => {
                let words = if state.unfolded { format!("▾ {count} ended") } else { format!("… {count} ended") };
                put(buffer, area, 0, &words, state.theme.dim());
                choose(state, Pick::Fold, area, buffer);
            }
            Line::Older(count) => {
                put(buffer, area, 0, &format!("… {count} older: ostler ls -a"), state.theme.dim());
            }
        }
    }
}

fn choose(state: &State, pick: Pick, area: Rect, buffer: &mut Buffer) {
    if state.picked == Some(pick) {
        buffer.set_style(area, state.theme.chosen());
    }
}

/// How wide each part of a row is; 0: it has no room.
struct Columns {
    name: usize,
    state: usize,
    agent: usize,
    place: usize,
    cost: usize,
    doing: usize,
}

impl Columns {
    /// `names`: how wide the longest name is.
    fn of(width: usize, names: usize) -> Columns {
        // Two columns for the marks and one before the name.
        let room = width.saturating_sub(3);
        let state = if room >= 40 { 15 } else { 12.min(room / 3) };
        let name = names.clamp(8.min(room), (room * 2 / 5).clamp(8.min(room), 32));
        let agent = if room >= 76 { 9 } else { 0 };
        let place = if room >= 92 { 20 } else { 0 };
        let cost = if room >= 100 { 7 } else { 0 };
        let used: usize = [name, state, agent, place, cost].iter().filter(|part| **part > 0).map(|part| part + 1).sum();
        Columns { name, state, agent, place, cost, doing: room.saturating_sub(used) }
    }
}

fn session(state: &State, row: &Row, columns: &Columns, area: Rect, buffer: &mut Buffer) {
    let theme = state.theme;
    let style = state_style(row, theme);
    let marked = state.marked.contains(&row.id);
    put(buffer, Rect { width: area.width.min(1), ..area }, 0, if marked { "*" } else { " " }, theme.bold());
    put(buffer, area, 1, row.mark, style);
    let mut x: u16 = 3;
    let mut cell = |text: &str, wide: usize, style: Style| {
        if wide > 0 {
            let wide = u16::try_from(wide).unwrap_or(u16::MAX);
            put(buffer, Rect { width: (x + wide).min(area.width), ..area }, x, text, style);
            x = x.saturating_add(wide + 1);
        }
    };
    let name = if state.is_below(row) { format!("└ {}", row.name) } else { row.name.clone() };
    cell(&name, columns.name, theme.bold());
    cell(&row.state_words(state.now), columns.state, style);
    cell(&row.agent, columns.agent, theme.plain());
    cell(&cut_front(&row.place, columns.place), columns.place, theme.dim());
    cell(&rounded(row.cost_usd).unwrap_or_default(), columns.cost, theme.plain());
    cell(&row.doing(columns.doing), columns.doing, theme.plain());
    choose(state, Pick::Session(row.id), area, buffer);
}

fn state_style(row: &Row, theme: Theme) -> Style {
    match row.need {
        Need::You if row.asking.is_some() => theme.mark().patch(theme.bold()),
        Need::You => theme.bad(),
        Need::Working => theme.good(),
        Need::Waiting => theme.mark(),
        Need::Idle => theme.own(),
        Need::Ended => theme.dim(),
    }
}

pub fn rule(area: Rect, buffer: &mut Buffer, theme: Theme) {
    let sign = if area.height > 1 { "│" } else { "─" };
    for y in area.top()..area.bottom() {
        for x in area.left()..area.right() {
            buffer.set_stringn(x, y, sign, 1, theme.dim());
        }
    }
}

// The preview.

fn preview_head(state: &State, preview: &Preview, area: Rect, buffer: &mut Buffer) {
    let theme = state.theme;
    let Some(row) = state.row() else { return };
    let first = Rect { height: 1.min(area.height), ..area };
    let mut x = put(buffer, first, 0, row.mark, state_style(row, theme));
    x = put(buffer, first, x + 1, &row.name, theme.bold());
    x = put(buffer, first, x, &format!("  {}", row.state_words(state.now)), state_style(row, theme));
    put(buffer, first, x, &format!("  {}", row.id), theme.dim());
    if area.height < PREVIEW_HEAD {
        return;
    }
    let second = Rect { y: area.y + 1, height: 1, ..area };
    let model = preview.model().map(ostler_tui::clean::clean_line).filter(|model| *model != row.agent);
    let agent = model.map_or_else(|| row.agent.clone(), |model| format!("{} {model}", row.agent));
    let tokens = row.tokens.map(|tokens| format!("{} in, {} out", short(tokens.input), short(tokens.output)));
    let queued = (row.queued > 0).then(|| format!("{} queued", row.queued));
    let parts = [preview.notice(), Some(row.place.clone()), Some(agent), queued, rounded(row.cost_usd), tokens];
    let line: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    put(buffer, second, 0, &line.join(" · "), theme.dim());
}

/// `950`, `3.1k`, `2.4M`.
fn short(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        1000..1_000_000 => format!("{}.{}k", number / 1000, number % 1000 / 100),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

// The last row, and what is above it.

pub fn hint(state: &State, text: &str, area: Rect, buffer: &mut Buffer) {
    put(buffer, area, 0, text, state.theme.dim());
}

fn footer(state: &State, area: Rect, buffer: &mut Buffer) {
    if let Some(said) = &state.said {
        let style = if said.bad { state.theme.bad().patch(state.theme.bold()) } else { state.theme.bold() };
        put(buffer, area, 0, &said.text, style);
        return;
    }
    if let [first, ..] = &state.busy[..] {
        put(buffer, area, 0, &format!("{first}…"), state.theme.bold());
        return;
    }
    let row = state.row();
    let asks = row.is_some_and(Row::is_asking);
    let mut parts: Vec<&str> = Vec::new();
    parts.extend(state.peek.then_some("Space back"));
    parts.extend(asks.then_some(["a allow", "x deny"]).into_iter().flatten());
    if let Some(row) = row {
        parts.extend((!row.ended).then_some("Enter attach"));
        parts.extend((row.ended && !row.command).then_some("R resume"));
        parts.extend((!row.command || row.mode == Some(SessionMode::Terminal)).then_some("r reply"));
        parts.extend((!state.peek).then_some("Space peek"));
    }
    parts.extend(["n new", "/ filter", "? keys", "q quit"]);
    // Hints that do not fit are removed from the end, except the last two: "? keys" and "q quit".
    while width(&parts.join(" · ")) > usize::from(area.width) && parts.len() > 2 {
        let place = parts.len() - 3;
        parts.remove(place);
    }
    let line = parts.join(" · ");
    hint(state, &line, area, buffer);
}

/// Reserves these rows at the bottom of the window for a panel, with a rule above.
fn panel(state: &State, height: u16, title: &str, buffer: &mut Buffer) -> Rect {
    let (rows, columns) = state.size;
    let height = height.min(rows.saturating_sub(1));
    let top = rows.saturating_sub(height + 1);
    let area = Rect::new(0, top, columns, height + 1);
    clear(area, buffer);
    let head = Rect { height: 1, ..area };
    rule(head, buffer, state.theme);
    put(buffer, head, 2.min(columns), &format!(" {title} "), state.theme.bold().patch(state.theme.chosen()));
    Rect { y: top + 1, height, ..area }
}

pub fn clear(area: Rect, buffer: &mut Buffer) {
    let blank = " ".repeat(usize::from(area.width));
    for y in area.top()..area.bottom() {
        buffer.set_stringn(area.x, y, &blank, usize::from(area.width), Style::new());
        buffer.set_style(Rect { y, height: 1, ..area }, Style::reset());
    }
}

fn reply(state: &State, to: &[SessionId], input: &mut Input, buffer: &mut Buffer) -> (u16, u16) {
    let (rows, columns) = state.size;
    let most = (rows / 3).clamp(1, 8);
    let height = u16::try_from(input.height(usize::from(columns), usize::from(most))).unwrap_or(most);
    let area = panel(state, height + 1, &format!("reply to {}", whom(state, to)), buffer);
    let last = Rect { y: area.bottom().saturating_sub(1), height: 1.min(area.height), ..area };
    hint(state, "Enter sends · Alt-Enter new line · Esc keeps it for later", last, buffer);
    input.render(Rect { height: area.height.saturating_sub(1), ..area }, buffer, state.theme)
}

fn question(state: &State, answering: &mut Answering, buffer: &mut Buffer) -> Option<(u16, u16)> {
    let theme = state.theme;
    let (columns, height) = state.question_room();
    let rows = answering.rows(columns);
    let seen: Vec<_> = rows.iter().skip(answering.top).take(usize::from(height)).collect();
    let words = answering.takes_words();
    let verb = if answering.allow { if words { "answer" } else { "allow" } } else { "deny" };
    let shown = u16::try_from(seen.len()).unwrap_or(height);
    let area = panel(state, shown + 1 + u16::from(words), &format!("{verb}: {} asks", answering.called), buffer);
    for (row, y) in seen.iter().zip(area.top()..area.bottom()) {
        let style = match row.kind {
            RowKind::Head => theme.bold(),
            RowKind::Input => theme.plain(),
            RowKind::Said => theme.dim(),
        };
        put(buffer, Rect { y, height: 1, ..area }, 2.min(area.width), &row.text, style);
    }
    let last = Rect { y: area.bottom().saturating_sub(1), height: 1.min(area.height), ..area };
    let below = rows.len().saturating_sub(answering.top + seen.len());
    if let Some(said) = &state.said {
        put(buffer, last, 0, &said.text, theme.bold());
    } else {
        let more =
            if below > 0 { format!("{} more: PgDn · ", counted(below as u64, "row", "rows")) } else { String::new() };
        let what = match (answering.allow, words) {
            (true, _) if !answering.seen => "read all of it first · Esc leaves it",
            (true, false) => "y allows exactly this · Esc leaves it",
            (true, true) => "Enter answers · Esc leaves it",
            (false, _) => "Enter denies it, with what you write as the reason · Esc leaves it",
        };
        hint(state, &format!("{more}{what}"), last, buffer);
    }
    words.then(|| {
        let line = Rect { y: last.y.saturating_sub(1), ..last };
        answering.input.render(line, buffer, theme)
    })
}

fn new_session(state: &State, form: &mut Form, buffer: &mut Buffer) -> (u16, u16) {
    let theme = state.theme;
    let (rows, columns) = state.size;
    // A box in the middle, so that it is not mistaken for the line of a reply.
    let wide = columns.saturating_sub(2).min(76);
    let most = (rows / 3).clamp(1, 8);
    let label: u16 = 9;
    let room = wide.saturating_sub(label + 3);
    let height = u16::try_from(form.prompt.height(usize::from(room), usize::from(most))).unwrap_or(most);
    let tall = (height + 7).min(rows);
    let area = Rect::new((columns - wide) / 2, (rows - tall) / 2, wide, tall);
    clear(area, buffer);
    frame(area, "new session", buffer, theme);
    let inner = Rect::new(area.x + 2, area.y + 1, wide.saturating_sub(3), tall.saturating_sub(2));
    let mut cursor = (inner.x, inner.y);
    let mut y = inner.y;
    for field in Field::ALL {
        let tall = if field == Field::Prompt { height } else { 1 };
        if y + tall > inner.bottom() {
            break;
        }
        let here = form.field == field;
        let style = if here { theme.bold().patch(theme.own()) } else { theme.dim() };
        let line = Rect { y, height: 1, ..inner };
        put(buffer, line, 0, field.word(), style);
        let value = Rect { x: inner.x + label, y, width: inner.width.saturating_sub(label), height: tall };
        let choice = move |text: &str| if here { format!("‹ {text} ›") } else { format!("  {text}") };
        match field {
            Field::Prompt => {
                let at = form.prompt.render(value, buffer, theme);
                if here {
                    cursor = at;
                }
            }
            Field::Folder => {
                let at = form.folder.render(value, buffer, theme);
                if here {
                    cursor = at;
                }
            }
            Field::Agent | Field::Kind => {
                let text = match field {
                    Field::Agent => form.agents.get(form.agent).map_or("", String::as_str),
                    Field::Kind if form.terminal => "in its own terminal",
                    Field::Kind | Field::Prompt | Field::Folder => "headless: a chat",
                };
                put(buffer, value, 0, &choice(text), if here { theme.bold() } else { theme.plain() });
                if here {
                    cursor = (value.x, value.y);
                }
            }
        }
        y += tall;
    }
    let last = Rect { y: area.bottom().saturating_sub(2), height: 1, ..inner };
    let words = state
        .said
        .as_ref()
        .map_or("Enter starts it · Tab next field · ←→ choose · Esc cancels", |said| &said.text);
    let style = if state.said.is_some() { theme.bold() } else { theme.dim() };
    put(buffer, last, 0, words, style);
    cursor
}

/// A border with a title.
fn frame(area: Rect, title: &str, buffer: &mut Buffer, theme: Theme) {
    if area.height < 2 || area.width < 4 {
        return;
    }
    let across = "─".repeat(usize::from(area.width - 2));
    let style = theme.own();
    buffer.set_stringn(area.x, area.y, format!("╭{across}╮"), usize::from(area.width), style);
    buffer.set_stringn(area.x, area.bottom() - 1, format!("╰{across}╯"), usize::from(area.width), style);
    for y in area.top() + 1..area.bottom() - 1 {
        buffer.set_stringn(area.x, y, "│", 1, style);
        buffer.set_stringn(area.right() - 1, y, "│", 1, style);
    }
    put(buffer, Rect { height: 1, ..area }, 2, &format!(" {title} "), theme.bold());
}

/// How many rows of the list of keys fit at once.
pub fn keys_at_once((rows, columns): (u16, u16)) -> usize {
    let height = usize::from(rows.saturating_sub(2)).max(1);
    if columns >= 2 * KEY_COLUMN { 2 * height } else { height }
}

/// The width of a key with what it does.
const KEY_COLUMN: u16 = 60;
/// The width of the key within that.
const KEY: u16 = 11;

/// The rows of the list of keys: each key with what it does, which takes several rows in a narrow window.
pub fn key_rows((_, columns): (u16, u16)) -> Vec<(&'static str, String)> {
    let wide = if columns >= 2 * KEY_COLUMN { KEY_COLUMN } else { columns };
    // A free column, so that two texts side by side do not touch.
    let room = wide.saturating_sub(KEY + 1);
    let rows = KEYS.iter().flat_map(|&(key, what)| {
        rows_of_words(what, room)
            .into_iter()
            .enumerate()
            .map(move |(row, what)| (if row == 0 { key } else { "" }, what))
    });
    rows.collect()
}

fn keys(state: &State, first: usize, buffer: &mut Buffer) {
    let (rows, columns) = state.size;
    let area = Rect::new(0, 1.min(rows), columns, rows.saturating_sub(2));
    clear(area, buffer);
    let shown = key_rows(state.size).into_iter().skip(first).take(keys_at_once(state.size));
    for (place, (key, what)) in shown.enumerate() {
        let height = usize::from(area.height).max(1);
        let (Ok(column), Ok(row)) = (u16::try_from(place / height), u16::try_from(place % height)) else { continue };
        let x = (column * KEY_COLUMN).min(columns);
        let line = Rect {
            x,
            y: area.y + row,
            width: if columns >= 2 * KEY_COLUMN { KEY_COLUMN } else { columns }.min(columns - x),
            height: 1.min(area.height),
        };
        put(buffer, Rect { width: line.width.min(KEY), ..line }, 1, key, state.theme.bold());
        put(buffer, line, KEY, &what, state.theme.plain());
    }
}
