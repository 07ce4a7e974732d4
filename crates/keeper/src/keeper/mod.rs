//! The keeper: the half that decides. It moves bytes to files, talks to clients, delivers messages, proves, stops. It
//! may be killed at any moment: everything it knows is in files, and its replacement continues with the same work.
//!
//! One thread, one `poll`, no timer while nothing is due: an idle session costs no wake-up at all.
//!
//! [`Keeper`] owns the loop and what is known of the session. The rest are parts that own their fields, decide by
//! themselves and can be tested alone; the keeper passes facts between them and writes the journal. What the keeper
//! does with a part is in the part's file.
//!
//! * [`output`] and [`input`] move bytes; [`streams`] is how output moves, [`output_limits`] how much may.
//! * [`terminal`] has the window, the [`screen`] and its [`snapshots`]; [`typing`] types messages into it,
//!   [`prompting`] where the agent's prompt has to be seen. [`own_record`] finds what no hook reports.
//! * [`reader`] turns what the agent reports into facts; [`retrying`] reports that a turn only waits for the model's
//!   server, and for how long.
//! * [`clients`] are told that something changed; they read the files themselves. [`serving`] answers their requests,
//!   [`upgrade`] replaces this keeper by a newer one.
//! * [`proof`] finds out whether a turn is saved, [`autosave`] copies transcripts, [`counting`] finds what was used,
//!   for agents that do not report it.
//! * [`journal`] records what happens, [`progress`] lets readers of a long session begin near its end.
//! * [`holder_link`] is what is known of the holder. [`next_run`] makes a run that begins by itself, [`next_run_order`] has
//!   it started.
//! * [`requests`] works through the inbox, [`effects`] performs what the life cycle asks for. [`tree`] and [`database_query`]
//!   do the hard parts of ending: nothing left behind, nothing lost.
//! * [`queued`] checks whether a program that has to wait was started, and withdraws it.
//! * [`notifications`] has a person notified, and [`turn_snapshots`] has the working tree saved, each by a process of its
//!   own.
//! * [`conversation_lock`] makes sure that no other process writes to the conversation, or that it is reported;
//!   [`native_id`] finds out which conversation it is, for agents that only draw.

mod autosave;
mod clients;
mod continuing;
mod conversation_lock;
mod counting;
pub mod database_query;
mod dialogs;
mod effects;
pub mod handing_over;
pub mod helper_process;
mod holder_link;
mod input;
mod journal;
mod native_id;
mod next_run;
mod next_run_order;
mod notifications;
mod output;
mod output_limits;
mod own_record;
mod poll;
pub mod preparing;
mod progress;
pub mod prompt_screen;
mod prompting;
mod proof;
mod queued;
mod reader;
mod redelivery;
mod requests;
mod retrying;
pub mod screen_snapshots;
mod serving;
mod streams;
mod terminal;
mod timers;
mod tree;
mod turn_snapshots;
mod typing;
mod upgrade;

pub use notifications::{start_sender, start_sender_in};
pub use tree::started_by;

use crate::files::{enter_folder, helper_record};
use crate::handles::{self, Handles};
use crate::{Settings, VERSION, holder};
use autosave::Autosave;
use clients::Clients;
use conversation_lock::ConversationLock;
use counting::Counting;
use helper_process::Errand;
use holder_link::HolderLink;
use input::Input;
use journal::Log;
use native_id::NativeIdSearch;
use next_run_order::Ordering;
use notifications::Senders;
use ostler_agents::Agent;
use ostler_agents::speak::Opening;
use ostler_core::event::{Entry, Event};
use ostler_core::life::{CONNECTION_LOST, State};
use ostler_core::moment::Moment;
use ostler_core::record::{Mode, Session};
use ostler_core::start_when::Begin;
use ostler_store::feed::Feed;
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::journal::{self as stored_journal, Journal};
use ostler_store::progress::{self as stored_progress, Past};
use ostler_store::{RunRecord, StoreError, inbox, limits};
use ostler_sys::cgroup::Group;
use ostler_sys::clock::{self, since_boot_ms};
use ostler_sys::dir;
use ostler_sys::lock::{self, Held};
use ostler_sys::pause_points::{self, Point, Role};
use ostler_sys::process::{Identity, Pidfd};
use ostler_sys::signals::{Signals, ignore};
use ostler_sys::stack;
use ostler_view::fold;
use output::Output;
use own_record::OwnRecordWatch;
use poll::Woken;
use preparing::Preparing;
use progress::Noted;
use proof::Proof;
use reader::Reader;
use rustix::fs::OFlags;
use rustix::process::Signal;
use screen_snapshots::Snapshots;
use std::fs::File;
use std::io;
use std::path::Path;
use streams::Hold;
use terminal::Terminal;
use timers::Timers;
use turn_snapshots::TurnSnapshots;

/// How long killed processes may take to be gone from their cgroup.
const EMPTY_MS: u64 = 5000;

/// Why a keeper had to exit; its replacement tries again.
#[derive(Debug, thiserror::Error)]
enum KeeperError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    System(#[from] io::Error),
    #[error("nothing is known about agent {0:?}")]
    Agent(String),
    #[error("the run has no process")]
    NoProcess,
}

/// The process called `__keeper`.
#[must_use]
pub fn main(arguments: &[String], settings: Settings) -> i32 {
    ignore(Signal::PIPE);
    // Exceeding a limit on the size of files is then an error, like a full disk.
    ignore(Signal::XFSZ);
    let _ = rustix::thread::set_name(c"ostler-keeper");
    pause_points::act_as(Role::Keeper);
    match Keeper::take_over(arguments, settings).and_then(Keeper::keep) {
        Ok(()) | Err(KeeperError::NoProcess) => 0,
        Err(error) => {
            note_failure(&error);
            1
        }
    }
}

/// The journal is a keeper's only log. If it is the journal that failed, this message is lost, but the crash is still
/// shown. The keeper's working directory is the session's folder, and its replacement starts only when the keeper is
/// gone.
fn note_failure(error: &KeeperError) {
    let noted = || -> Result<(), KeeperError> {
        let event = Event::Alarm { text: format!("the keeper failed: {error}") };
        Journal::open(&dir::Dir::open(".")?)?.append(&entry(0, About::default(), event))?;
        Ok(())
    };
    let _ = noted();
}

/// Where an event comes from.
#[derive(Clone, Debug, Default)]
struct About {
    out: Option<u64>,
    request: Option<String>,
    inbox: Option<u64>,
    notify: Option<Moment>,
}

fn entry(run: u32, about: About, event: Event) -> Entry {
    let About { out, request, inbox, notify } = about;
    Entry { at: clock::now(), ms: since_boot_ms(), run, out, request, inbox, notify, event }
}

/// What was done after a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handled {
    /// Keys went to the program. Nothing else has changed; what the program does with them wakes the keeper again.
    Keys,
    Something,
}

struct Keeper {
    folder: Folder,
    run: RunFolder,
    session: Session,
    record: RunRecord,
    agent: &'static dyn Agent,
    process: Identity,
    group: Option<Group>,
    handles: Handles,
    signals: Signals,
    /// Held for as long as this process lives.
    lock: Held,
    holder: HolderLink,

    journal: Log,
    state: State,
    noted: Noted,

    output: Output,
    input: Input,
    terminal: Terminal,
    reader: Reader,
    own_record: Option<OwnRecordWatch>,
    clients: Clients,
    proof: Proof,
    conversation_lock: ConversationLock,
    native_id_search: NativeIdSearch,
    counting: Counting,
    autosave: Autosave,
    senders: Senders,
    timers: Timers,
    turn_snapshots: TurnSnapshots,
    preparing: Preparing,
    handing_over: Option<Errand>,
    settings: Settings,
    /// The last alarm about a limit; it is not repeated.
    limit_hit: Option<String>,

    agent_exited: bool,
    /// The next moment at which something is due.
    wake_ms: Option<u64>,
    done: bool,
}

impl Keeper {
    /// Becomes the keeper of a session: waits for the lock, folds the journal, and notes that it has started. The keeper is
    /// boxed, and this is never inlined, so that the stack of all this can be given back.
    #[inline(never)]
    fn take_over(arguments: &[String], settings: Settings) -> Result<Box<Keeper>, KeeperError> {
        let mut handles = Handles::from_arguments(arguments)?;
        let folder = enter_folder(&handles)?;
        let lock_file = folder.dir().file("keeper.lock", OFlags::RDWR | OFlags::CREATE)?;
        let held = lock::exclusive(lock_file)?;
        pause_points::at(Point::KeeperLocked);
        let mut signals = Signals::take(&[Signal::TERM, Signal::HUP, Signal::INT])?;
        folder.even_when_full(|| folder.write_keeper(&helper_record().map_err(full_or("keeper.json"))?))?;
        pause_points::at(Point::KeeperSigned);

        let session = folder.session()?;
        let run = folder.run(folder.newest_run()?)?;
        let mut record = run.record()?;
        let agent = ostler_agents::find_for(&session.agent, &record.plan)
            .ok_or_else(|| KeeperError::Agent(session.agent.clone()))?;
        // The holder that started this keeper for a process, before it started that process.
        let of = holder::option(arguments, holder::OF).and_then(|pid| pid.parse().ok());
        if record.agent.is_none() && record.not_started.is_none() {
            // A predecessor made the next run but was killed before it could order it, or before the run was started.
            let holder = HolderLink::of(&folder)?;
            Ordering { folder: &folder, run: &run, handles: &mut handles, signals: &mut signals, holder }
                .carry_out()?;
            record = run.record()?;
            if of.is_none() {
                return Err(KeeperError::NoProcess);
            }
        }
        if record.not_started.is_some() {
            next_run::conclude_not_started(&folder, &run, &session, &record, &handles, settings)?;
            return Err(KeeperError::NoProcess);
        }
        let Some(process) = record.agent.clone() else {
            return Err(KeeperError::NoProcess);
        };
        if of.is_some() && of != record.holder {
            // That holder was killed. Another holder has started the process, and a keeper for it.
            return Err(KeeperError::NoProcess);
        }
        if of.is_some()
            && let Some(agent) = Pidfd::open(&process)?
        {
            handles.put(handles::AGENT, agent.into());
        }
        let Past { state, bad_lines, behind, .. } = stored_progress::past(folder.dir(), &record.plan)?;
        let input = || {
            let file = run.dir().file("in", OFlags::RDWR | OFlags::CREATE).map_err(full_or("in"))?;
            Feed::open(run.dir(), File::from(file))
        };
        let mut keeper = Box::new(Keeper {
            journal: Log::new(folder.even_when_full(|| Journal::open(folder.dir()))?, behind),
            noted: Noted::with(bad_lines),
            output: Output::new(&record, run.dir(), &handles, settings.output)?,
            input: Input::new(folder.even_when_full(input)?, &handles)?,
            terminal: Terminal::new(Snapshots::new(&run)),
            reader: Reader::default(),
            own_record: None,
            clients: Clients::default(),
            proof: Proof::default(),
            conversation_lock: ConversationLock::default(),
            native_id_search: NativeIdSearch::default(),
            counting: Counting::default(),
            // A program without a conversation has no transcript, and no timer runs for it.
            autosave: Autosave::new(record.autosave_ms.filter(|_| record.plan.speaks().converses())),
            senders: Senders::default(),
            timers: Timers::default(),
            turn_snapshots: TurnSnapshots::of(&session, &record.plan),
            preparing: Preparing::default(),
            handing_over: None,
            settings,
            limit_hit: None,
            agent_exited: false,
            wake_ms: None,
            done: false,
            group: record.cgroup.as_deref().map(Path::new).and_then(Group::open),
            holder: HolderLink::default(),
            lock: held,
            folder,
            run,
            session,
            record,
            agent,
            process,
            handles,
            signals,
            state,
        });
        keeper.send_what_was_noted();
        keeper.snapshot_at_takeover();
        keeper.begin()?;
        pause_points::at(Point::KeeperReady);
        keeper.prepare_the_next();
        Ok(keeper)
    }

    fn begin(&mut self) -> Result<(), KeeperError> {
        if self.state.run < self.record.run {
            self.folder.keep_reserve();
            let first = fold::started(&self.record);
            self.write(first)?;
            self.note_cost_before()?;
            self.sync_launch();
            pause_points::at(Point::LaunchSynced);
        }
        // From the beginning of the running turn, so that this keeper knows as much about it as its predecessor did.
        self.reader = Reader::of(self.agent, &self.session, &self.record.plan, &self.state);
        self.take_back_unanswered()?;
        self.count_what_is_open();
        let me = Identity::me()?;
        self.note(Event::KeeperStarted { pid: me.pid(), start: Some(me.start()), version: VERSION.to_owned() })?;
        self.holder = HolderLink::of(&self.folder)?;
        if self.holder.process().is_none() {
            self.replace_holder()?;
        }
        self.say_that_connection_is_lost()?;
        self.look_at_claim()?;
        self.check_exit()?;
        self.end_pause_of_another_boot()?;
        self.drop_again()?;
        self.resume_half_done()?;
        self.work_inbox()
    }

    /// When an agent was found without helpers, the other ends of its pipes are lost. What it still writes is not read;
    /// this is reported once.
    fn say_that_connection_is_lost(&mut self) -> Result<(), KeeperError> {
        let plan = &self.record.plan;
        let connected = plan.mode() == Mode::Terminal || self.handles.get(handles::STDOUT_READ).is_some();
        if connected || !plan.speaks().converses() || !self.state.is_running() {
            return Ok(());
        }
        let said = stored_journal::newest(self.folder.dir(), |entry| match entry.event {
            Event::Alarm { text } if text == CONNECTION_LOST => Some(entry.run),
            _ => None,
        })?;
        if said == Some(self.record.run) {
            return Ok(());
        }
        self.note(Event::Alarm { text: CONNECTION_LOST.to_owned() })
    }

    /// The opening is the same for every keeper, and goes in before everything else.
    fn open_conversation(&mut self) -> Result<(), KeeperError> {
        if !self.state.is_running() || !self.record.plan.opens() {
            return Ok(());
        }
        let opening = Opening { cwd: &self.session.cwd, resume: self.record.native_id.as_deref() };
        match self.agent.opening(&opening) {
            Some(bytes) => self.put_in("opening", bytes),
            None => Ok(()),
        }
    }

    /// Does again what a predecessor may have noted but not done. Doing it twice does no harm.
    fn resume_half_done(&mut self) -> Result<(), KeeperError> {
        self.open_conversation()?;
        // A message that is typed by sight continues according to the screen.
        if let Some(message) = self.state.feeding().filter(|_| !self.types_by_sight()) {
            self.feed(message)?;
        }
        if self.state.input_has_ended() {
            self.end_input()?;
        }
        if self.state.is_running() && self.state.steps.asked_ms.is_some() {
            self.ask_to_leave()?;
        }
        Ok(())
    }

    #[inline(never)]
    fn keep(mut self: Box<Self>) -> Result<(), KeeperError> {
        let mut has_started = false;
        loop {
            self.move_bytes()?;
            if self.record.plan.mode() == Mode::Terminal {
                // Before everything else: a person waits for the echo of a key.
                self.clients.tell(since_boot_ms())?;
            }
            if inbox::size(self.folder.dir())? > self.state.inbox {
                self.work_inbox()?;
            }
            if self.state.begin == Begin::Begun {
                self.mind_conversation()?;
            } else {
                self.look_at_claim()?;
            }
            self.act()?;
            self.start_sender_when_due();
            self.take_turn_snapshot_when_due();
            if self.done {
                return Ok(());
            }
            // While the program waits there is nothing to look at, and no timer runs.
            if self.state.begin == Begin::Begun {
                self.say_that_no_answer_comes()?;
                self.name_conversation_when_due()?;
                self.count_when_due()?;
                self.autosave()?;
                self.snapshot_when_due()?;
                self.report_limit_hit()?;
                self.raise_retry_alarm_when_due()?;
            }
            self.replace_holder_when_due()?;
            self.clients.tell(since_boot_ms())?;
            self.note_progress_when_due();
            if !std::mem::replace(&mut has_started, true) {
                // No later call goes as deep as the start did.
                stack::give_back();
            }
            let mut only_keys = true;
            while only_keys {
                let woken = self.poll()?;
                // A client that has to be told is told in a full round, however fast it types.
                only_keys = !woken.is_empty() && self.clients.due_ms().is_none_or(|due| since_boot_ms() < due);
                for woken in woken {
                    only_keys &= self.handle(woken)? == Handled::Keys;
                    if self.done {
                        return Ok(());
                    }
                }
            }
            if self.agent_exited && self.folder.dir().is_deleted()? {
                // The session's folder was deleted: the outcome can no longer be written.
                return self.leave_nothing();
            }
        }
    }

    /// Ends the processes that are left of a session whose folder is gone, and removes its cgroup.
    fn leave_nothing(&self) -> Result<(), KeeperError> {
        let tree = self.tree();
        tree.end(&tree.left()?, true)?;
        if let Some(group) = &self.group {
            group.wait_until_empty(EMPTY_MS)?;
        }
        limits::clear(&self.record);
        Ok(())
    }

    fn handle(&mut self, woken: Woken) -> Result<Handled, KeeperError> {
        match woken {
            Woken::Signals => {
                while let Some(signal) = self.signals.next()? {
                    if signal == Signal::TERM.as_raw() {
                        self.request_shutdown("SIGTERM to the keeper")?;
                    } else if signal == Signal::HUP.as_raw() {
                        self.reopen_listener()?;
                    }
                }
            }
            Woken::Line => self.hear_holder()?,
            Woken::Holder => {
                self.replace_holder()?;
                // The holder may have died between recording how the agent ended and reporting it.
                self.check_exit()?;
            }
            Woken::Agent => {
                self.agent_exited = true;
                self.check_exit()?;
                if !self.state.has_exited() {
                    // A holder that is stopped does not report the exit. When a keeper sleeps and its journal is
                    // unchanged, readers assume that the agent lives (`view/src/live_views.rs`).
                    self.journal.touch()?;
                }
            }
            Woken::Listener => {
                if let Some(listener) = self.handles.get(handles::LISTENER) {
                    self.clients.welcome(listener)?;
                }
            }
            Woken::Client(index) => return self.hear_client(index),
            Woken::Proof => self.proof.changed()?,
            Woken::OwnRecord => self.own_record_changed()?,
            Woken::Snapshot => {
                let taken = self.terminal.snapshots.taken(&self.run);
                self.trim(taken)?;
            }
            Woken::Sender(index) => self.sender_ended(index),
            Woken::Timer => self.timers.take(),
            Woken::TurnSnapshot => self.turn_snapshots.ended(),
            Woken::Preparing => self.preparing_changed()?,
            Woken::HandingOver => self.handover_ended()?,
            // Their bytes are moved at the top of the loop.
            Woken::Output | Woken::Room => {}
        }
        Ok(Handled::Something)
    }

    /// Moves whatever can be moved: output to its file and into facts, input from its file.
    fn move_bytes(&mut self) -> Result<(), KeeperError> {
        if self.output.held().is_some() || !self.journal.is_written() {
            self.try_disk_again()?;
        }
        if self.terminal.snapshots.are_behind(self.output.end()) {
            self.output.skip();
        } else {
            self.pump_output()?;
        }
        if self.output.held() == Some(Hold::DiskFull) {
            self.folder.show_that_output_waits();
        }
        self.understand()?;
        self.consult_own_record()?;
        self.input.pump(&self.handles)?;
        if let Some(message) = self.state.feeding()
            && !self.types_by_sight()
            && self.input.is_taken()
            && self.all_is_typed()?
        {
            pause_points::at(Point::MessageTaken);
            self.note(Event::Delivered { n: message.n })?;
        }
        Ok(())
    }

    /// A limit that was hit is reported once. The kernel does not report it everywhere, but the process that hit the
    /// limit soon writes something, which wakes the keeper.
    fn report_limit_hit(&mut self) -> Result<(), KeeperError> {
        match limits::limit_hit(&self.session, &self.record) {
            Some(text) if self.limit_hit.as_ref() != Some(&text) => {
                self.limit_hit = Some(text.clone());
                self.note(Event::Alarm { text })
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn full_or(file: &'static str) -> impl Fn(io::Error) -> StoreError {
    move |error| StoreError::Io { file: file.to_owned(), error }
}
