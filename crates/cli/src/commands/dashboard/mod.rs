//! `ostler ui`: the dashboard. All sessions grouped by what they need, a live preview of the selected one, and a key
//! for each verb.
//!
//! * `state`, `input`, `keys`: what is shown and what a key does, without a terminal: events in, effects out.
//! * `row`: what the list needs of a session. `draw`: from the state to a buffer.
//! * `preview`: the selected session. `verbs`: what is done to sessions, in other threads. `beginning`: the start of
//!   the watch over all sessions. `search`: all conversations.
//!
//! This file is the loop: it waits for keys, for changes of sessions and for finished verbs, and does nothing in
//! between. Only while a duration is on the screen it also wakes to update it, at most once a second.

mod beginning;
mod draw;
mod input;
mod keys;
mod preview;
mod printed_text;
mod row;
mod search;
mod state;
#[cfg(test)]
mod tests;
mod verbs;

use super::attach::{self, Leaves};
use super::ls::tilde;
use crate::context::{Context, variable};
use crate::exit::{Code, Failure, Result};
use beginning::{Begun, Watching};
use input::{Field, Form, Mode};
use keys::{Effect, Work};
use ostler_core::id::SessionId;
use ostler_core::record;
use ostler_engine::content::Kind;
use ostler_engine::draft::Draft;
use ostler_engine::installed;
use ostler_engine::list::{Wanted, find_and, look_again};
use ostler_engine::process::now;
use ostler_engine::watch::Change;
use ostler_tui::frame::{self, Frames};
use ostler_tui::terminal::{self, Event, Interest, Modes, Signal, Terminal, TerminalGuard, Wait};
use ostler_tui::{Buffer, Input, Key, Keys, Rect, Theme, clipboard, progress};
use preview::Preview;
use row::{Need, Row};
use search::Searcher;
use state::{Pick, State};
use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};
use verbs::Workers;

/// How long the rest of a sequence may take to follow an escape.
const ESCAPE: Duration = Duration::from_millis(40);
/// Changes of sessions are read at most this often: streamed text need not be drawn letter by letter.
const NEWS: Duration = Duration::from_millis(100);
/// Where the kernel watches no files, sessions are checked this often.
const UNWATCHED: Duration = Duration::from_secs(1);

/// Durations are updated at most this often.
const TICK: Duration = Duration::from_secs(1);
/// Prevents a busy loop when the clock is read a little early.
const SOONEST_TICK: Duration = Duration::from_millis(20);

/// Saves the title of the window, and restores it.
const KEEP_TITLE: &str = "\x1b[22;2t";
const RESTORE_TITLE: &str = "\x1b[23;2t";

pub fn run(context: &Context) -> Result<Code> {
    if !terminal::is_there() {
        return Err(Failure::usage("ui needs a terminal; list the sessions with: ostler ls"));
    }
    let works = progress::is_understood(variable);
    // Before any thread starts. Undoes whatever the dashboard, or a session shown in it, has set in the terminal.
    let mut leave = ostler_screen::Screen::reset().to_vec();
    leave.extend(if works { progress::RESTS } else { "" }.bytes());
    leave.extend(frame::LEAVE.bytes().chain(RESTORE_TITLE.bytes()));
    let guard = TerminalGuard::post(&leave)?;
    let mut dashboard = Dashboard::open(context, guard, works)?;
    loop {
        let left = dashboard.stay();
        // The terminal is restored first, also when something went wrong.
        dashboard.close();
        match left? {
            Left::Quit => return Ok(Code::Succeeded),
            Left::Attach(id) => {
                if dashboard.attach(id) {
                    return Ok(Code::Succeeded);
                }
            }
            Left::Shell(folder) => dashboard.shell(&folder),
            Left::Diff(id) => dashboard.diff(id),
        }
        if !dashboard.take_terminal()? {
            return Ok(Code::Succeeded);
        }
    }
}

/// Why the dashboard is no longer shown.
enum Left {
    Quit,
    Attach(SessionId),
    Shell(String),
    Diff(SessionId),
}

struct Dashboard<'a> {
    context: &'a Context,
    state: State,
    preview: Preview,
    watching: Watching,
    /// `None` while another program has the terminal.
    terminal: Option<Terminal>,
    /// Restores the terminal if this process is killed.
    guard: TerminalGuard,
    frames: Frames,
    keys: Keys,
    workers: Workers,
    /// `None`: nothing was searched for yet.
    searcher: Option<Searcher>,
    draft: Option<Draft>,
    /// A session that was started here, to be selected as soon as it is listed.
    begun: Option<SessionId>,
    /// When changes of sessions, and of the one in the preview, are read again.
    changes_due: Option<Instant>,
    preview_due: Option<Instant>,
    /// When the screen becomes outdated without an event, because a duration is shown.
    tick: Option<Instant>,
    /// When that happened last.
    ticked: Option<Instant>,
    /// The title of the window.
    title: String,
    /// Whether the terminal was told that something is in progress; `None`: it does not understand that.
    works: Option<bool>,
}

impl<'a> Dashboard<'a> {
    fn open(context: &'a Context, guard: TerminalGuard, works: bool) -> Result<Dashboard<'a>> {
        let theme = Theme { colour: context.style.colour };
        let mut state = State::new(theme, (24, 80), now());
        let wanted = Wanted { rest_later: true, ..Wanted::default() };
        let found = find_and(&context.engine, &wanted, |one| Row::of(&one))?;
        state.fill(found.listed.into_iter().flatten(), found.rest.len(), found.older);
        let mut dashboard = Dashboard {
            context,
            state,
            preview: Preview::empty(),
            watching: Watching::NotYet { rest: found.rest },
            terminal: None,
            guard,
            frames: Frames::default(),
            keys: Keys::default(),
            workers: Workers::new()?,
            searcher: None,
            draft: None,
            begun: None,
            changes_due: None,
            preview_due: None,
            tick: None,
            ticked: None,
            title: String::new(),
            works: works.then_some(false),
        };
        dashboard.take_terminal()?;
        Ok(dashboard)
    }

    // The terminal.

    /// `false`: the terminal is gone.
    fn take_terminal(&mut self) -> Result<bool> {
        let mut terminal = Terminal::take(Modes::Keys, &Signal::ALL)?;
        // A Ctrl-C that was meant for another program is discarded.
        let woken = terminal.wait(&Wait { keys: false, room: false, others: &[], until: Some(Instant::now()) })?;
        self.terminal = Some(terminal);
        self.enter()?;
        Ok(!woken.events.contains(&Event::Gone))
    }

    fn enter(&mut self) -> Result<()> {
        self.guard.taken();
        self.frames.forget();
        self.title.clear();
        self.measure();
        self.put(&format!("{KEEP_TITLE}{}", frame::ENTER))
    }

    fn put(&mut self, text: &str) -> Result<()> {
        match &mut self.terminal {
            Some(terminal) => Ok(terminal.put(text.as_bytes())?),
            None => Ok(()),
        }
    }

    fn close(&mut self) {
        let farewell = self.farewell();
        if let Some(mut terminal) = self.terminal.take() {
            terminal.put_last(farewell.as_bytes());
            drop(terminal);
            self.guard.given_back();
        }
    }

    /// The bytes that restore the terminal.
    fn farewell(&mut self) -> String {
        let rests = if self.works == Some(true) { progress::RESTS } else { "" };
        self.works = self.works.map(|_| false);
        format!("{}{rests}{RESTORE_TITLE}", frame::LEAVE)
    }

    fn measure(&mut self) {
        let size = self.terminal.as_ref().and_then(Terminal::size);
        self.state.resize(size.filter(|(rows, columns)| *rows > 0 && *columns > 0).unwrap_or((24, 80)));
    }

    // Events.

    fn stay(&mut self) -> Result<Left> {
        loop {
            self.paint()?;
            let woken = self.wait()?;
            let mut idle = true;
            for event in woken.events {
                idle = false;
                match event {
                    Event::Keys(bytes) => {
                        for key in self.keys.read(&bytes) {
                            if let Some(left) = self.press(key)? {
                                return Ok(left);
                            }
                        }
                        self.keep_draft();
                    }
                    Event::Resized => self.measure(),
                    Event::Continued => self.enter()?,
                    Event::Suspend => self.suspend()?,
                    Event::Leave | Event::Gone => return Ok(Left::Quit),
                }
            }
            if idle && let Some(key) = self.keys.escape() {
                self.press(key)?;
            }
            self.take_news(woken.changes, woken.preview, woken.done)?;
            if self.state.leaving && self.state.busy.is_empty() {
                return Ok(Left::Quit);
            }
            // Only when no key is pending: a session that is selected only on the way to another need not be read.
            if idle {
                self.catch_up()?;
            }
        }
    }

    fn wait(&mut self) -> Result<Woken> {
        let now = Instant::now();
        let behind = matches!(self.watching, Watching::NotYet { .. }) || self.is_preview_stale();
        let escape = self.keys.has_lone_escape().then(|| now + ESCAPE);
        let watch = match &self.watching {
            Watching::Is(watch, _) => Some(watch),
            Watching::NotYet { .. } | Watching::Begins(_) => None,
        };
        let unwatched = watch.is_some_and(|watch| watch.fd().is_none()).then(|| now + UNWATCHED);
        let at_once = behind.then_some(now);
        let until = [at_once, escape, unwatched, self.tick, self.changes_due, self.preview_due];
        let until = until.into_iter().flatten().min();
        let changes = watch.and_then(|watch| watch.fd()).filter(|_| self.changes_due.is_none());
        let preview = self.preview.watch().and_then(|watch| watch.fd()).filter(|_| self.preview_due.is_none());
        let fds = [changes, preview, Some(self.workers.fd())];
        let others: Vec<Interest<'_>> = fds.iter().flatten().map(|fd| Interest::read(*fd)).collect();
        let Some(terminal) = &mut self.terminal else {
            return Ok(Woken { events: vec![Event::Gone], ..Woken::default() });
        };
        let woken = terminal.wait(&Wait { keys: true, room: true, others: &others, until })?;
        let mut ready = woken.others.iter().copied();
        let mut of = |asked: bool| asked && ready.next().unwrap_or(false);
        let (changes, preview, done) = (of(changes.is_some()), of(preview.is_some()), of(true));
        Ok(Woken { events: woken.events, changes: changes || unwatched.is_some(), preview, done })
    }

    /// Reads what is new about sessions: the first change at once, further ones a little later.
    fn take_news(&mut self, changes: bool, preview: bool, done: bool) -> Result<()> {
        let now = Instant::now();
        let is_due = |due: Option<Instant>| due.is_some_and(|due| now >= due);
        if changes || is_due(self.changes_due) {
            let changed = self.take_changes()?;
            self.changes_due = (!changed.is_empty()).then(|| now + NEWS);
        }
        if preview || is_due(self.preview_due) {
            self.preview_due = preview.then(|| now + NEWS);
            self.preview.refresh(self.state.row());
        }
        if is_due(self.tick) {
            self.ticked = self.tick;
            let busy: Vec<SessionId> = self.state.seen_rows().filter(|row| row.is_busy()).map(|row| row.id).collect();
            self.look_again(&busy)?;
        }
        if done {
            // First, because it empties the socket that wakes the loop. What is sent later wakes the loop again; what
            // was sent before is already in the channels.
            let finished = self.workers.done();
            self.take_beginning()?;
            self.searcher.iter().flat_map(Searcher::heard).for_each(|heard| self.state.hear(heard));
            for done in finished {
                if let Some(place) = self.state.busy.iter().position(|busy| *busy == done.busy) {
                    self.state.busy.remove(place);
                }
                self.begun = done.begun.or(self.begun);
                self.state.done(&done.work, done.said);
            }
            self.select_begun();
        }
        Ok(())
    }

    /// Takes what the starting thread has sent. From its first message on, changes are reported.
    fn take_beginning(&mut self) -> Result<()> {
        while let Some(begun) = self.watching.begun() {
            match begun? {
                Begun::Watch { watch, rows, gone } => {
                    self.watching.is(watch);
                    self.state.put(rows);
                    gone.into_iter().for_each(|id| self.state.remove(id));
                }
                Begun::Rest(rows) => self.state.put_rest(rows),
            }
            self.select_begun();
        }
        Ok(())
    }

    /// The sessions that have changed.
    fn take_changes(&mut self) -> Result<BTreeSet<SessionId>> {
        let Watching::Is(watch, _) = &mut self.watching else { return Ok(BTreeSet::new()) };
        let mut changed = BTreeSet::new();
        let mut gone = Vec::new();
        while let Some(change) = watch.next_change()? {
            match change {
                Change::Appeared { view } | Change::Changed { view } | Change::Ended { view } => {
                    changed.insert(view.id);
                }
                Change::Gone { id } => gone.push(id),
            }
        }
        for id in &gone {
            changed.remove(id);
            self.state.remove(*id);
        }
        self.look_again(&changed.iter().copied().collect::<Vec<_>>())?;
        if let Some(row) = self.state.row().filter(|row| changed.contains(&row.id)) {
            self.preview.find_keeper(&self.context.engine, row);
            self.preview.refresh(Some(row));
        }
        self.select_begun();
        changed.extend(gone);
        Ok(changed)
    }

    fn look_again(&mut self, ids: &[SessionId]) -> Result<()> {
        let rows = look_again(&self.context.engine, ids)?;
        self.state.put(rows.iter().filter_map(Row::of));
        Ok(())
    }

    fn select_begun(&mut self) {
        if let Some(id) = self.begun.filter(|id| self.state.rows.contains_key(id)) {
            self.state.select(Pick::Session(id));
            self.begun = None;
        }
    }

    fn is_preview_stale(&self) -> bool {
        self.state.areas().preview.height > 0 && !self.preview.is_of(self.state.row())
    }

    fn read_preview(&mut self) {
        if self.is_preview_stale() {
            self.preview = Preview::open(&self.context.engine, self.state.row(), self.state.theme);
            self.preview_due = None;
        }
    }

    /// Does what is postponed until no key is pending: reads the selected session, and once starts the watch.
    fn catch_up(&mut self) -> Result<()> {
        if self.is_preview_stale() {
            self.read_preview();
        } else if matches!(self.watching, Watching::NotYet { .. }) {
            let running = self.state.rows.values().filter(|row| !row.ended).map(|row| row.id).collect();
            self.watching.begin(running, self.workers.waker()?)?;
        }
        Ok(())
    }

    // Drawing.

    fn paint(&mut self) -> Result<()> {
        if self.terminal.as_ref().is_none_or(Terminal::is_busy) {
            return Ok(());
        }
        let begun = Instant::now();
        self.state.now = now();
        let (rows, columns) = self.state.size;
        let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
        let cursor = draw::draw(&mut self.state, &mut self.preview, &mut buffer);
        let mut text = self.frames.next(buffer, cursor);
        let title = match self.state.asking() {
            0 => "ostler".to_owned(),
            1 => "ostler: 1 asks".to_owned(),
            more => format!("ostler: {more} ask"),
        };
        if title != self.title {
            text.push_str(&format!("\x1b]2;{title}\x1b\\"));
            self.title = title;
        }
        let works = self.works.map(|_| self.state.count(Need::Working) > 0);
        if works != self.works {
            text.push_str(if works == Some(true) { progress::WORKS } else { progress::RESTS });
            self.works = works;
        }
        self.put(&text)?;
        let times = self.state.seen_rows().chain(self.state.row()).filter_map(|row| row.stays_true(self.state.now));
        self.tick = times.min().map(|time| next_tick(self.ticked, begun, time));
        Ok(())
    }

    fn suspend(&mut self) -> Result<()> {
        let farewell = self.farewell();
        if let Some(terminal) = &mut self.terminal {
            terminal.put_last(farewell.as_bytes());
            self.guard.given_back();
            // If another program has the terminal afterwards, the next read of the keyboard reports it.
            terminal.suspend()?;
        }
        self.enter()
    }

    // Actions.

    fn press(&mut self, key: Key) -> Result<Option<Left>> {
        // The preview may already show a question that the list does not have yet, because the list is updated less
        // often.
        if matches!((&self.state.mode, key), (Mode::List, Key::Text('a' | 'x'))) {
            self.look_again(&self.state.meant())?;
        }
        for effect in self.state.press(key) {
            match effect {
                Effect::Quit => return Ok(Some(Left::Quit)),
                Effect::Attach(id) => return Ok(Some(Left::Attach(id))),
                Effect::Shell(folder) => return Ok(Some(Left::Shell(folder))),
                Effect::Diff(id) if self.has_changes(id) => return Ok(Some(Left::Diff(id))),
                Effect::Diff(_) => {}
                Effect::Suspend => self.suspend()?,
                Effect::Redraw => self.frames.forget(),
                Effect::Copy(text) => self.put(&clipboard::copy(&text))?,
                Effect::OpenReply(to) => self.open_reply(to),
                Effect::OpenForm => self.open_form(),
                Effect::Scroll(scroll) => {
                    self.read_preview();
                    self.preview.scroll(scroll);
                }
                Effect::Click(row) => self.preview.click(row),
                Effect::Work(work) => self.start(work)?,
                Effect::Search(text) => self.search(text)?,
            }
        }
        Ok(None)
    }

    fn start(&mut self, work: Work) -> Result<()> {
        let called = draw::whom(&self.state, work.of());
        let busy = self.workers.start(work, &called)?;
        self.state.busy.push(busy);
        Ok(())
    }

    fn search(&mut self, text: String) -> Result<()> {
        if self.searcher.is_none() {
            self.searcher = Some(Searcher::start(self.workers.waker()?)?);
        }
        self.searcher.iter().for_each(|searcher| searcher.ask(text.clone()));
        Ok(())
    }

    /// Text that was written to a session and not sent comes back.
    fn open_reply(&mut self, to: Vec<SessionId>) {
        self.draft = match &to[..] {
            [only] => {
                self.context.engine.select(only.as_str()).and_then(|place| self.context.engine.draft(&place)).ok()
            }
            _ => None,
        };
        let draft = self.draft.as_ref().map(|draft| draft.text()).filter(|text| !text.is_empty());
        let unsent = self.state.unsent.get(&to).map(String::as_str);
        let mut input = Input::new(draft.or(unsent).unwrap_or_default());
        self.state.sent.iter().for_each(|text| input.remember(text));
        self.state.mode = Mode::Reply { to, input };
    }

    fn keep_draft(&mut self) {
        if let (Mode::Reply { input, .. }, Some(draft)) = (&self.state.mode, &mut self.draft) {
            draft.keep(input.text());
        }
    }

    fn open_form(&mut self) {
        if let Some(form) = self.state.form.take() {
            self.state.mode = Mode::New(form);
            return;
        }
        let engine = &self.context.engine;
        let mut agents: Vec<String> =
            installed::installed(&engine.environment).iter().map(|agent| agent.name().to_owned()).collect();
        agents.extend(engine.config.agents.keys().cloned());
        agents.push("demo".to_owned());
        let wanted = self.state.row().map(|row| row.agent.clone());
        let default = engine.default_agent().ok().map(|agent| agent.name().to_owned());
        let place = |name: Option<String>| name.and_then(|name| agents.iter().position(|agent| *agent == name));
        let agent = place(default).or_else(|| place(wanted)).unwrap_or(0);
        let here = || engine.environment.folder().ok().map(|folder| folder.to_string_lossy().into_owned());
        let folder = self.state.row().map(|row| row.cwd.clone()).filter(|cwd| !cwd.is_empty()).or_else(here);
        let folder = Input::new(&folder.map(|folder| tilde(&folder)).unwrap_or_default());
        let form = Form { agents, agent, folder, terminal: false, prompt: Input::new(""), field: Field::Prompt };
        self.state.mode = Mode::New(Box::new(form));
    }

    /// `true`: the process was asked to exit meanwhile.
    fn attach(&mut self, id: SessionId) -> bool {
        let engine = &self.context.engine;
        self.guard.taken();
        let attached = engine.select(id.as_str()).map_err(Failure::from).and_then(|place| {
            let mode = engine.view_without_last(&place)?.mode;
            // A command's output is printed at the cursor. It must not stay behind the dashboard.
            let prints = mode == record::Mode::Headless && engine.kind(&place)? == Kind::Command;
            if prints {
                attach::on_a_screen_of_its_own(|| {
                    attach::open_and_leave(self.context, &place, mode, false, Leaves::Nothing)
                })
            } else {
                attach::open_and_leave(self.context, &place, mode, false, Leaves::Nothing)
            }
        });
        self.guard.given_back();
        self.preview = Preview::empty();
        match attached {
            Ok(left) => left.exits,
            Err(failure) => {
                self.state.complain(failure.to_string());
                false
            }
        }
    }

    /// Whether there is a diff to show. If not, the reason is shown: the terminal is not left for that.
    fn has_changes(&mut self, id: SessionId) -> bool {
        let engine = &self.context.engine;
        match engine.select(id.as_str()).and_then(|place| engine.has_changes(&place)) {
            Ok(true) => return true,
            Ok(false) => self.state.say("it has changed nothing"),
            Err(error) => self.state.complain(Failure::from(error).to_string()),
        }
        false
    }

    fn diff(&mut self, id: SessionId) {
        let engine = &self.context.engine;
        if let Err(error) = engine.select(id.as_str()).and_then(|place| engine.page_changes(&place)) {
            self.state.complain(Failure::from(error).to_string());
        }
    }

    fn shell(&mut self, folder: &str) {
        let shell = variable("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".to_owned());
        let words = format!("[a shell in {}; exit comes back to the dashboard]", tilde(folder));
        crate::say::tell!("{}", ostler_screen::printable(&words));
        if let Err(error) = Command::new(&shell).current_dir(folder).status() {
            self.state.complain(Failure::ours(format!("{shell} in {folder}: {error}")).to_string());
        }
    }
}

/// When to draw a screen again that stays correct for `true_for`. Each duration changes at its own moment within a
/// second; they are updated together, so that many of them cost as much as one.
fn next_tick(last: Option<Instant>, now: Instant, true_for: Duration) -> Instant {
    let wanted = now + true_for.max(SOONEST_TICK);
    last.map_or(wanted, |last| wanted.max(last + TICK))
}

/// What woke the loop.
#[derive(Default)]
struct Woken {
    events: Vec<Event>,
    changes: bool,
    preview: bool,
    done: bool,
}
