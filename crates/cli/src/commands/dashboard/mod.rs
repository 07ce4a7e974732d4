//! `ostler ui`: the dashboard. All sessions by what they need, the selected one live beside them, and a key for each verb.
//!
//! * `state`, `input`, `keys`: what is shown and what a key does, without a terminal: events in, effects out.
//! * `row`: what the list needs of a session. `draw`: from the state to a buffer.
//! * `preview`: the selected session. `verbs`: what is done to sessions, beside the dashboard.
//!
//! This file is the loop: it waits for keys, for changes of sessions and for verbs that are done, and does nothing in between. Only
//! while a duration is on the screen it wakes to count it, at most once a second.

mod draw;
mod input;
mod keys;
mod preview;
mod row;
mod state;
#[cfg(test)]
mod tests;
mod verbs;

use super::attach::{self, Leaves};
use super::ls::tilde;
use crate::context::{Context, variable};
use crate::exit::{Code, Failure, Result};
use input::{Field, Form, Mode};
use keys::Effect;
use ostler_core::id::SessionId;
use ostler_core::record;
use ostler_engine::content::Kind;
use ostler_engine::draft::Draft;
use ostler_engine::installed;
use ostler_engine::list::{Wanted, find_and, look_again};
use ostler_engine::process::now;
use ostler_engine::watch::{Change, Select, Watch};
use ostler_tui::frame::{self, Frames};
use ostler_tui::terminal::{self, Event, Interest, Modes, Signal, Terminal, Wait};
use ostler_tui::{Buffer, Input, Keys, Rect, Theme, clipboard};
use preview::Preview;
use row::Row;
use state::{Pick, State};
use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};
use verbs::Workers;

/// So long the rest of a sequence may take to follow an escape.
const ESCAPE: Duration = Duration::from_millis(40);
/// News of sessions are taken so often at most: what streams need not be drawn letter by letter.
const NEWS: Duration = Duration::from_millis(100);
/// Where the kernel watches no files, sessions are looked at this often.
const UNWATCHED: Duration = Duration::from_secs(1);

/// Keeps the title of the window, and puts it back.
const KEEP_TITLE: &str = "\x1b[22;2t";
const RESTORE_TITLE: &str = "\x1b[23;2t";

pub fn run(context: &Context) -> Result<Code> {
    if !terminal::is_there() {
        return Err(Failure::usage("ui needs a terminal; list the sessions with: ostler ls"));
    }
    let mut dashboard = Dashboard::open(context)?;
    loop {
        let left = dashboard.stay();
        // The terminal is given back first, also when something went wrong.
        dashboard.close();
        match left? {
            Left::Quit => return Ok(Code::Succeeded),
            Left::Attach(id) => dashboard.attach(id),
            Left::Shell(folder) => dashboard.shell(&folder),
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
}

struct Dashboard<'a> {
    context: &'a Context,
    state: State,
    preview: Preview,
    /// `None`: what there is has not been shown yet.
    watch: Option<Watch<'a>>,
    /// `None` while another program has it.
    terminal: Option<Terminal>,
    frames: Frames,
    keys: Keys,
    workers: Workers,
    draft: Option<Draft>,
    /// A session that was begun here, to be selected as soon as it is listed.
    begun: Option<SessionId>,
    /// When news of sessions, and of the one in the preview, are taken again.
    changes_due: Option<Instant>,
    preview_due: Option<Instant>,
    /// When what is on the screen is no longer true by itself.
    tick: Option<Instant>,
    /// The title of the window.
    title: String,
}

impl<'a> Dashboard<'a> {
    fn open(context: &'a Context) -> Result<Dashboard<'a>> {
        let theme = Theme { colour: context.style.colour };
        let mut state = State::new(theme, (24, 80), now());
        let found = find_and(&context.engine, &Wanted::default(), |one| Row::of(&one))?;
        state.fill(found.listed.into_iter().flatten(), found.older);
        let mut dashboard = Dashboard {
            context,
            state,
            preview: Preview::empty(),
            watch: None,
            terminal: None,
            frames: Frames::default(),
            keys: Keys::default(),
            workers: Workers::new()?,
            draft: None,
            begun: None,
            changes_due: None,
            preview_due: None,
            tick: None,
            title: String::new(),
        };
        dashboard.take_terminal()?;
        Ok(dashboard)
    }

    // The terminal.

    /// `false`: it is gone.
    fn take_terminal(&mut self) -> Result<bool> {
        let mut terminal = Terminal::take(Modes::Keys, &Signal::ALL)?;
        // A Ctrl-C that was meant for another program is not ours.
        let woken = terminal.wait(&Wait { keys: false, room: false, others: &[], until: Some(Instant::now()) })?;
        self.terminal = Some(terminal);
        self.enter()?;
        Ok(!woken.events.contains(&Event::Gone))
    }

    fn enter(&mut self) -> Result<()> {
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
        if let Some(mut terminal) = self.terminal.take() {
            terminal.put_last(format!("{}{RESTORE_TITLE}", frame::LEAVE).as_bytes());
        }
    }

    fn measure(&mut self) {
        let size = self.terminal.as_ref().and_then(Terminal::size);
        self.state.resize(size.filter(|(rows, columns)| *rows > 0 && *columns > 0).unwrap_or((24, 80)));
    }

    // What happens.

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
            // Only when no key waits: what is selected for a moment on the way to another need not be read.
            if idle {
                self.catch_up()?;
            }
        }
    }

    fn wait(&mut self) -> Result<Woken> {
        let now = Instant::now();
        let behind = self.watch.is_none() || self.is_preview_stale();
        let escape = self.keys.has_lone_escape().then(|| now + ESCAPE);
        let unwatched = self.watch.as_ref().is_some_and(|watch| watch.fd().is_none()).then(|| now + UNWATCHED);
        let at_once = behind.then_some(now);
        let until = [at_once, escape, unwatched, self.tick, self.changes_due, self.preview_due];
        let until = until.into_iter().flatten().min();
        let changes = self.watch.as_ref().and_then(Watch::fd).filter(|_| self.changes_due.is_none());
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

    /// Takes what is new about sessions: at once when it is the first for a while, a little later when more follows.
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
            let busy: Vec<SessionId> = self.state.seen_rows().filter(|row| row.is_busy()).map(|row| row.id).collect();
            self.look_again(&busy)?;
        }
        if done {
            for done in self.workers.done() {
                if let Some(place) = self.state.busy.iter().position(|busy| *busy == done.busy) {
                    self.state.busy.remove(place);
                }
                self.begun = done.begun.or(self.begun);
                match done.said {
                    Ok(words) => self.state.say(words),
                    Err(words) => self.state.complain(words),
                }
            }
            self.select_begun();
        }
        Ok(())
    }

    /// The sessions that have changed.
    fn take_changes(&mut self) -> Result<BTreeSet<SessionId>> {
        let Some(watch) = &mut self.watch else { return Ok(BTreeSet::new()) };
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

    /// Reads what was left for a moment without keys: the selected session, and at first that anything changes.
    fn catch_up(&mut self) -> Result<()> {
        if self.is_preview_stale() {
            self.read_preview();
        } else if self.watch.is_none() {
            self.watch = Some(self.context.engine.watch(Select::all())?);
            self.take_changes()?;
            // What has ended since the list was made was not told of.
            let running: Vec<SessionId> = self.state.rows.values().filter(|row| !row.ended).map(|row| row.id).collect();
            self.look_again(&running)?;
        }
        Ok(())
    }

    // What is drawn.

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
        self.put(&text)?;
        let times = self.state.seen_rows().chain(self.state.row()).filter_map(|row| row.stays_true(self.state.now));
        self.tick = times.min().map(|time| begun + time.max(Duration::from_millis(20)));
        Ok(())
    }

    fn suspend(&mut self) -> Result<()> {
        if let Some(terminal) = &mut self.terminal {
            terminal.put_last(format!("{}{RESTORE_TITLE}", frame::LEAVE).as_bytes());
            // That the terminal is another program's now is said by its keyboard.
            terminal.suspend()?;
        }
        self.enter()
    }

    // What is done.

    fn press(&mut self, key: ostler_tui::Key) -> Result<Option<Left>> {
        for effect in self.state.press(key) {
            match effect {
                Effect::Quit => return Ok(Some(Left::Quit)),
                Effect::Attach(id) => return Ok(Some(Left::Attach(id))),
                Effect::Shell(folder) => return Ok(Some(Left::Shell(folder))),
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
                Effect::Answer { .. }
                | Effect::Send { .. }
                | Effect::Launch { .. }
                | Effect::Do(..)
                | Effect::Resume(_)
                | Effect::Fork(_) => self.start(effect)?,
            }
        }
        Ok(None)
    }

    fn start(&mut self, effect: Effect) -> Result<()> {
        let of = match &effect {
            Effect::Answer { id, .. } => vec![*id],
            Effect::Send { to: of, .. } | Effect::Do(_, of) | Effect::Resume(of) | Effect::Fork(of) => of.clone(),
            _ => Vec::new(),
        };
        let busy = self.workers.start(effect, &draw::whom(&self.state, &of))?;
        self.state.busy.push(busy);
        Ok(())
    }

    /// What was written to a session and not sent comes back.
    fn open_reply(&mut self, to: Vec<SessionId>) {
        self.draft = match &to[..] {
            [only] => {
                self.context.engine.select(only.as_str()).and_then(|place| self.context.engine.draft(&place)).ok()
            }
            _ => None,
        };
        let input = Input::new(self.draft.as_ref().map_or("", |draft| draft.text()));
        self.state.mode = Mode::Reply { to, input };
    }

    fn keep_draft(&mut self) {
        if let (Mode::Reply { input, .. }, Some(draft)) = (&self.state.mode, &mut self.draft) {
            draft.keep(input.text());
        }
    }

    fn open_form(&mut self) {
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

    fn attach(&mut self, id: SessionId) {
        let engine = &self.context.engine;
        let attached = engine.select(id.as_str()).map_err(Failure::from).and_then(|place| {
            let mode = engine.view_without_last(&place)?.mode;
            // A command prints where the cursor is; what it prints does not stay behind the dashboard.
            let prints = mode == record::Mode::Headless && engine.kind(&place)? == Kind::Command;
            if prints {
                attach::on_a_screen_of_its_own(|| {
                    attach::open_and_leave(self.context, &place, mode, false, Leaves::Nothing)
                })
            } else {
                attach::open_and_leave(self.context, &place, mode, false, Leaves::Nothing)
            }
        });
        if let Err(failure) = attached {
            self.state.complain(failure.to_string());
        }
        self.preview = Preview::empty();
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

/// What the loop has waited for.
#[derive(Default)]
struct Woken {
    events: Vec<Event>,
    changes: bool,
    preview: bool,
    done: bool,
}
