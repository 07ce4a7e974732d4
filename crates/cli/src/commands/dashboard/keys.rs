//! What a key does, depending on the mode.

use super::draw::{key_rows, keys_at_once};
use super::input::{Answering, Field, Form, Mode, Verb};
use super::search::Searching;
use super::state::{Line, Pick, State};
use ostler_core::id::SessionId;
use ostler_core::record;
use ostler_engine::send::Answer;
use ostler_tui::Key;

/// How far the mouse wheel moves.
const WHEEL: isize = 3;

/// What is to be done outside of the state.
#[derive(Clone, Debug)]
pub enum Effect {
    Quit,
    Suspend,
    Redraw,
    Attach(SessionId),
    /// A shell in this folder.
    Shell(String),
    Diff(SessionId),
    /// Into the clipboard.
    Copy(String),
    /// Opens the line for a message; text that was not sent comes back.
    OpenReply(Vec<SessionId>),
    OpenForm,
    /// Scrolls the preview.
    Scroll(Scroll),
    /// A click on this row of the preview.
    Click(u16),
    /// Done to sessions, in another thread.
    Work(Work),
    /// Searches all conversations, in another thread.
    Search(String),
}

/// What is done to sessions. It may take as long as a session takes to end.
#[derive(Clone, Debug)]
pub enum Work {
    Answer {
        id: SessionId,
        answer: Answer,
    },
    Send {
        to: Vec<SessionId>,
        text: String,
    },
    Launch {
        agent: String,
        folder: String,
        terminal: bool,
        prompt: Option<String>,
    },
    Do(Verb, Vec<SessionId>),
    Resume(Vec<SessionId>),
    Fork(Vec<SessionId>),
    Restore(SessionId),
    /// A conversation that no session has, by its agent's own id.
    Adopt(String),
}

impl Work {
    /// The sessions that it is done to.
    pub fn of(&self) -> &[SessionId] {
        match self {
            Work::Answer { id, .. } | Work::Restore(id) => std::slice::from_ref(id),
            Work::Send { to: of, .. } | Work::Do(_, of) | Work::Resume(of) | Work::Fork(of) => of,
            Work::Launch { .. } | Work::Adopt(_) => &[],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scroll {
    Rows(isize),
    HalfPages(isize),
    Start,
    End,
    UnfoldAll,
}

impl State {
    pub fn press(&mut self, key: Key) -> Vec<Effect> {
        self.said = None;
        // Any other key than a second q cancels leaving.
        let leaving = std::mem::take(&mut self.leaving);
        match key {
            Key::Suspend => return vec![Effect::Suspend],
            Key::Redraw => return vec![Effect::Redraw],
            _ => {}
        }
        let effects = match &self.mode {
            Mode::List if self.peek => self.press_in_peek(key, leaving),
            Mode::List => self.press_in_list(key, leaving),
            Mode::Filter => self.press_in_filter(key),
            Mode::Keys { first } => {
                let next = first + keys_at_once(self.size);
                let more =
                    next < key_rows(self.size).len() && !matches!(key, Key::Escape | Key::Interrupt | Key::Text('q'));
                self.mode = if more { Mode::Keys { first: next } } else { Mode::List };
                Vec::new()
            }
            Mode::Reply { .. } => self.press_in_reply(key),
            Mode::Answer(_) => self.press_in_answer(key),
            Mode::Confirm { .. } => self.press_in_confirm(key),
            Mode::New(_) => self.press_in_form(key),
            Mode::Search(_) => self.press_in_search(key),
        };
        self.settle_question();
        effects
    }

    fn press_in_peek(&mut self, key: Key, leaving: bool) -> Vec<Effect> {
        let scroll = match key {
            Key::Text(' ' | 'q') | Key::Escape | Key::Interrupt => {
                self.peek = false;
                self.settle();
                return Vec::new();
            }
            Key::Text('j') | Key::Down => Scroll::Rows(1),
            Key::Text('k') | Key::Up => Scroll::Rows(-1),
            Key::PageDown => Scroll::HalfPages(2),
            Key::PageUp => Scroll::HalfPages(-2),
            Key::Text('g') | Key::Home => Scroll::Start,
            Key::Text('G') | Key::End => Scroll::End,
            Key::Enter if self.row().is_some_and(|row| row.ended) => return Vec::new(),
            other => return self.press_in_list(other, leaving),
        };
        vec![Effect::Scroll(scroll)]
    }

    fn press_in_list(&mut self, key: Key, leaving: bool) -> Vec<Effect> {
        let page = isize::try_from(self.areas().list.height.saturating_sub(1).max(1)).unwrap_or(1);
        match key {
            Key::Text('q') | Key::Interrupt if self.busy.is_empty() || leaving => {
                return vec![Effect::Quit];
            }
            Key::Text('q') | Key::Interrupt => {
                self.leaving = true;
                self.say(format!("exits when this is done: {}; q leaves now", self.busy.join(", ")));
            }
            Key::EndOfInput => return vec![Effect::Scroll(Scroll::HalfPages(1))],
            Key::DeleteBefore => return vec![Effect::Scroll(Scroll::HalfPages(-1))],
            Key::Text('j') | Key::Down => self.step(1),
            Key::Text('k') | Key::Up => self.step(-1),
            Key::PageDown => self.step(page),
            Key::PageUp => self.step(-page),
            Key::Text('g') | Key::Home | Key::Top => self.select_first(),
            Key::Text('G') | Key::End | Key::Bottom => self.select_last(),
            Key::Text('J') | Key::RowDown => return vec![Effect::Scroll(Scroll::Rows(1))],
            Key::Text('K') | Key::RowUp => return vec![Effect::Scroll(Scroll::Rows(-1))],
            Key::UnfoldAll | Key::Unfold => return vec![Effect::Scroll(Scroll::UnfoldAll)],
            Key::Right => self.unfold_job(true),
            Key::Left => self.unfold_job(false),
            Key::Tab => self.next_need(1),
            Key::BackTab => self.next_need(-1),
            Key::Escape => self.back(),
            Key::Text('?') => self.mode = Mode::Keys { first: 0 },
            Key::Text('/') => self.mode = Mode::Filter,
            Key::Text('v') => self.mark(),
            Key::Text('n') => return vec![Effect::OpenForm],
            Key::Text(' ') | Key::Enter if self.picked == Some(Pick::Fold) => {
                self.unfolded = !self.unfolded;
                self.list_again();
            }
            Key::Text(' ') if self.row().is_some() => self.peek = true,
            Key::Click { row, column } => return self.click(row, column),
            Key::WheelUp { row, column } => return self.wheel(row, column, -WHEEL),
            Key::WheelDown { row, column } => return self.wheel(row, column, WHEEL),
            Key::Enter | Key::Text(_) => return self.verb(key),
            Key::Pasted(_) => self.say("what was pasted is ignored here; r replies to the session"),
            _ => {}
        }
        Vec::new()
    }

    /// What is done to the marked sessions, or to the selected one.
    fn verb(&mut self, key: Key) -> Vec<Effect> {
        let meant = self.meant();
        let verbs = "axriosRfAydl";
        let known = key == Key::Enter || matches!(key, Key::Text(letter) if verbs.contains(letter));
        if !known {
            self.say("no such key; ? shows all");
            return Vec::new();
        }
        if meant.is_empty() {
            self.say("no session is selected");
            return Vec::new();
        }
        match key {
            Key::Enter => return self.open(),
            Key::Text('o') => {
                let folder = self.row().map(|row| row.cwd.clone()).filter(|cwd| !cwd.is_empty());
                return folder.map(Effect::Shell).into_iter().collect();
            }
            Key::Text('d') => return self.row().map(|row| Effect::Diff(row.id)).into_iter().collect(),
            Key::Text('l') => self.mode = Mode::Confirm { verb: Verb::Land, of: meant },
            Key::Text(letter @ ('a' | 'x')) => self.answer(letter == 'a', meant),
            Key::Text('r') => return vec![Effect::OpenReply(meant)],
            Key::Text('i') => self.mode = Mode::Confirm { verb: Verb::Interrupt, of: meant },
            Key::Text('s') => self.mode = Mode::Confirm { verb: Verb::Stop, of: meant },
            Key::Text('A') => self.mode = Mode::Confirm { verb: Verb::Archive, of: meant },
            Key::Text('R') => return self.done_with_marks(Work::Resume(meant)),
            Key::Text('f') => return self.done_with_marks(Work::Fork(meant)),
            Key::Text('y') => {
                let ids: Vec<&str> = meant.iter().map(SessionId::as_str).collect();
                let ids = ids.join(" ");
                self.say(format!("copied: {ids}"));
                return vec![Effect::Copy(ids)];
            }
            _ => {}
        }
        Vec::new()
    }

    fn done_with_marks(&mut self, work: Work) -> Vec<Effect> {
        self.marked.clear();
        vec![Effect::Work(work)]
    }

    /// A session that has ended cannot be attached to, but can be read.
    fn open(&mut self) -> Vec<Effect> {
        let Some((id, ended, damaged)) = self.row().map(|row| (row.id, row.ended, row.damaged)) else {
            return Vec::new();
        };
        if damaged {
            self.complain(format!("{id} is damaged; see ostler doctor"));
        } else if ended {
            self.peek = true;
            self.say("it has ended; R resumes it, r replies");
        } else {
            return vec![Effect::Attach(id)];
        }
        Vec::new()
    }

    fn back(&mut self) {
        if self.peek {
            self.peek = false;
        } else if !self.filter.is_empty() {
            self.filter.clear();
            self.list_again();
        } else {
            self.marked.clear();
        }
        self.settle();
    }

    fn mark(&mut self) {
        let Some(id) = self.row().map(|row| row.id) else { return };
        if !self.marked.remove(&id) {
            self.marked.insert(id);
        }
        self.step(1);
    }

    fn click(&mut self, row: u16, column: u16) -> Vec<Effect> {
        let (areas, body) = (self.areas(), self.preview_body());
        if contains(areas.list, row, column) {
            let line = self.seen().get(usize::from(row - areas.list.y)).copied();
            match line {
                Some(Line::Session(id)) => self.select(Pick::Session(id)),
                Some(Line::Fold(_)) => {
                    self.picked = Some(Pick::Fold);
                    self.unfolded = !self.unfolded;
                    self.list_again();
                }
                Some(Line::Head(..) | Line::Older(_)) | None => {}
            }
        } else if contains(body, row, column) {
            return vec![Effect::Click(row - body.y)];
        }
        Vec::new()
    }

    fn wheel(&mut self, row: u16, column: u16, by: isize) -> Vec<Effect> {
        if contains(self.areas().preview, row, column) {
            return vec![Effect::Scroll(Scroll::Rows(by))];
        }
        self.step(by);
        Vec::new()
    }

    fn press_in_filter(&mut self, key: Key) -> Vec<Effect> {
        match key {
            Key::Escape | Key::Interrupt => {
                self.filter.clear();
                self.mode = Mode::List;
            }
            Key::Enter => self.mode = Mode::List,
            Key::Backspace if self.filter.is_empty() => self.mode = Mode::List,
            Key::Text('/') if self.filter.is_empty() => self.mode = Mode::Search(Box::new(Searching::new())),
            Key::Up => self.step(-1),
            Key::Down => self.step(1),
            Key::NewLine | Key::Pasted('\n') => {}
            other => self.filter.press(other),
        }
        self.list_again();
        Vec::new()
    }

    fn press_in_reply(&mut self, key: Key) -> Vec<Effect> {
        let Mode::Reply { to, input } = &mut self.mode else { return Vec::new() };
        match key {
            // What was written is there again the next time.
            Key::Escape => self.mode = Mode::List,
            Key::Interrupt if input.is_empty() => self.mode = Mode::List,
            Key::Interrupt => input.give_up(),
            Key::Enter if input.text().trim().is_empty() => {}
            Key::Enter => {
                let work = Work::Send { to: to.clone(), text: input.text().to_owned() };
                self.sent.push(input.text().to_owned());
                self.mode = Mode::List;
                return self.done_with_marks(work);
            }
            Key::PageUp => return vec![Effect::Scroll(Scroll::HalfPages(-1))],
            Key::PageDown => return vec![Effect::Scroll(Scroll::HalfPages(1))],
            other => input.press(other),
        }
        Vec::new()
    }

    /// Starts answering the first of these sessions that asks and can be answered here.
    pub fn answer(&mut self, allow: bool, mut meant: Vec<SessionId>) {
        let several = meant.len() > 1;
        while !meant.is_empty() {
            let Some(row) = self.rows.get(&meant.remove(0)) else { continue };
            if row.asking.is_none() || row.ended {
                continue;
            }
            if row.mode == Some(record::Mode::Terminal) {
                let words = format!("{} asks on its own screen; Enter attaches to it", row.called());
                self.complain(words);
                continue;
            }
            if let Some(answering) = Answering::of(row, allow, meant) {
                self.mode = Mode::Answer(Box::new(answering));
                self.settle_question();
            }
            return;
        }
        if self.said.is_none() {
            self.say(if several { "none of them is asking anything" } else { "it is not asking anything" });
        }
    }

    fn press_in_answer(&mut self, key: Key) -> Vec<Effect> {
        let (_, height) = self.question_room();
        let page = usize::from(height.saturating_sub(1).max(1));
        let Mode::Answer(answering) = &mut self.mode else { return Vec::new() };
        if answering.settled && !matches!(key, Key::Escape | Key::Interrupt) {
            let words = answering.is_settled();
            self.complain(words);
            return Vec::new();
        }
        match key {
            Key::Escape | Key::Interrupt => self.mode = Mode::List,
            Key::PageDown => answering.top += page,
            Key::PageUp => answering.top = answering.top.saturating_sub(page),
            Key::Down => answering.top += 1,
            Key::Up => answering.top = answering.top.saturating_sub(1),
            Key::Text('y') if !answering.takes_words() => return self.give_answer(),
            Key::Text('n') if !answering.takes_words() => self.mode = Mode::List,
            Key::Enter if answering.takes_words() => return self.give_answer(),
            Key::Enter => self.say("y allows it, Esc leaves it"),
            other if answering.takes_words() => answering.input.press(other),
            _ => {}
        }
        Vec::new()
    }

    fn give_answer(&mut self) -> Vec<Effect> {
        let Mode::Answer(answering) = &mut self.mode else { return Vec::new() };
        let words = answering.input.text().trim().to_owned();
        if answering.allow && !answering.seen {
            self.say("read all of it first: PgDn");
            return Vec::new();
        }
        if answering.allow && answering.takes_words() && words.is_empty() {
            self.say("it asks a question in words; type the answer");
            return Vec::new();
        }
        let answer = Answer {
            request: answering.ask.request.clone(),
            allow: answering.allow,
            always: false,
            text: (!words.is_empty()).then_some(words),
        };
        let (id, allow, further) = (answering.id, answering.allow, std::mem::take(&mut answering.further));
        self.mode = Mode::List;
        self.marked.remove(&id);
        if !further.is_empty() {
            self.answer(allow, further);
            self.said = None;
        }
        vec![Effect::Work(Work::Answer { id, answer })]
    }

    fn press_in_confirm(&mut self, key: Key) -> Vec<Effect> {
        let Mode::Confirm { verb, of } = &self.mode else { return Vec::new() };
        let (verb, of) = (*verb, of.clone());
        match key {
            Key::Text('y') => {
                self.mode = Mode::List;
                self.done_with_marks(Work::Do(verb, of))
            }
            Key::Text('n' | 'q') | Key::Escape | Key::Interrupt => {
                self.mode = Mode::List;
                Vec::new()
            }
            Key::Click { .. } | Key::WheelUp { .. } | Key::WheelDown { .. } => Vec::new(),
            // Any other key cancels, so that a later `y` in text that was meant for something else does not confirm.
            _ => {
                self.mode = Mode::List;
                self.say(format!("{} was not done", verb.word()));
                Vec::new()
            }
        }
    }

    fn press_in_form(&mut self, key: Key) -> Vec<Effect> {
        let Mode::New(form) = &mut self.mode else { return Vec::new() };
        match (key, form.field) {
            // What was filled in is there again the next time.
            (Key::Escape | Key::Interrupt, _) => self.put_form_away(),
            (Key::Tab, _) | (Key::Down, Field::Agent | Field::Folder | Field::Kind) => form.next_field(1),
            (Key::BackTab, _) | (Key::Up, Field::Agent | Field::Folder | Field::Kind) => form.next_field(-1),
            (Key::Enter, _) => return self.launch(),
            (Key::Right | Key::Text(' '), Field::Agent) => form.next_agent(1),
            (Key::Left, Field::Agent) => form.next_agent(-1),
            (Key::Right | Key::Left | Key::Text(' '), Field::Kind) => form.terminal = !form.terminal,
            (Key::NewLine | Key::Pasted('\n'), Field::Folder) => {}
            (other, Field::Folder) => form.folder.press(other),
            (other, Field::Prompt) => form.prompt.press(other),
            (_, Field::Agent | Field::Kind) => {}
        }
        Vec::new()
    }

    fn launch(&mut self) -> Vec<Effect> {
        let Mode::New(form) = &self.mode else { return Vec::new() };
        let Form { agents, agent, folder, terminal, prompt, .. } = &**form;
        let prompt = Some(prompt.text().trim().to_owned()).filter(|prompt| !prompt.is_empty());
        let Some(agent) = agents.get(*agent).cloned() else { return Vec::new() };
        if prompt.is_none() && !terminal {
            self.say("a prompt is missing; to open it in a terminal instead, change the kind (Tab)");
            return Vec::new();
        }
        let work = Work::Launch { agent, folder: folder.text().to_owned(), terminal: *terminal, prompt };
        // Kept until the session has started.
        self.put_form_away();
        vec![Effect::Work(work)]
    }

    fn put_form_away(&mut self) {
        if let Mode::New(form) = std::mem::replace(&mut self.mode, Mode::List) {
            self.form = Some(form).filter(|form| !form.prompt.is_empty());
        }
    }

    /// Handles the result of something that was done. What a person has written is kept until it has arrived.
    pub fn done(&mut self, work: &Work, said: Result<String, String>) {
        match (work, &said) {
            (Work::Launch { .. }, Ok(_)) => self.form = None,
            (Work::Send { to, .. }, Ok(_)) => drop(self.unsent.remove(to)),
            (Work::Send { to, text }, Err(_)) => drop(self.unsent.insert(to.clone(), text.clone())),
            _ => {}
        }
        match said {
            Ok(words) => self.say(words),
            Err(words) => self.complain(words),
        }
    }
}

fn contains(area: ostler_tui::Rect, row: u16, column: u16) -> bool {
    (area.top()..area.bottom()).contains(&row) && (area.left()..area.right()).contains(&column)
}
