//! The holder: the small parent of the agent. It has opened the terminal or the pipes and started the agent (see
//! `begin`). From then on it only waits: it collects exits, writes `exit.json`, keeps every descriptor open, and starts
//! the keeper again when that dies.
//!
//! | happens                        | does                                                                        |
//! | ------------------------------ | --------------------------------------------------------------------------- |
//! | the agent ends                 | writes exit.json, then collects the agent, then tells the keeper            |
//! | a process it left behind ends  | collects it, tells the keeper                                               |
//! | the keeper ends                | starts it again: at once, or after a growing pause when it keeps dying young |
//! | a client connects, no keeper   | starts it again                                                             |
//! | SIGTERM                        | tells the keeper, which stops the session                                   |
//! | "close input", "finish"        | does so                                                                     |
//! | "start the next run"           | its keeper, then its process; then the keeper that ordered it may exit      |
//!
//! A replacement holder does the same but is not the agent's parent: it watches the agent through its pidfd, and asks
//! the kernel how the agent ended.
//!
//! The file is long because the whole behaviour of this process is one loop over one state: the table above.

use crate::control::{self, News, Order};
use crate::files::{enter_folder, helper_record, write_exit};
use crate::handles::{self, Handles, Helper, environment};
use crate::start_agent::{self, NotStarted, Seen, Starting};
use crate::{KEEPER, replacement_holder};
use ostler_store::RunRecord;
use ostler_store::folder::{Folder, RunFolder};
use ostler_sys::clock::since_boot_ms;
use ostler_sys::pause_points::{self, Point, Role};
use ostler_sys::process::{Identity, Pidfd, WaitStatus};
use ostler_sys::signals::{Signals, ignore};
use ostler_sys::spawn::{StartError, Started};
use ostler_sys::{cgroup, socket, spawn};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::process::Signal;
use rustix::time::Timespec;
use std::cell::Cell;
use std::ffi::CString;
use std::io;

/// A keeper that lived shorter than the first limit died young. For a keeper that exited with an error the second limit
/// counts, because on a slow machine it takes long to start.
const YOUNG_MS: u64 = 60;
const FAILED_YOUNG_MS: u64 = 10_000;
/// How many keepers may die young before there is a pause, and before the holder waits until a client connects.
const FREE_DEATHS: u32 = 5;
const LAST_DEATH: u32 = 20;
/// When the agent has ended, perhaps no client ever connects. So this many more keepers are tried before the holder
/// exits too.
const LAST_TRIES: u32 = 5;
/// How long the agent may take to exit when the holder has to end it, because no keeper lives long enough.
const LONE_GRACE_MS: u64 = 5000;
/// After this many young deaths of its keepers a new binary is given up, and the binary before it is used again.
const NEW_BINARY_DEATHS: u32 = 3;
const LONGEST_PAUSE_MS: u64 = 10_000;
/// How long to wait for the kernel to report how a process ended that another process must collect.
const EXIT_WAIT_MS: u64 = 3000;
/// How often writing to a full disk is tried again. There is no event for "room again".
const FULL_DISK_MS: u64 = 250;

/// The signals that the holder reads, so that they do not end or interrupt it.
pub const SIGNALS: [Signal; 4] = [Signal::CHILD, Signal::TERM, Signal::HUP, Signal::INT];

/// What the holder is given when there is a keeper already: its end of the line, and a pidfd of that keeper.
pub const LINE: &str = "line";
pub const KEEPER_PROCESS: &str = "keeper";

/// The flag before the pid of an agent that is our child already.
pub const BEGUN: &str = "--begun";

/// The flag before the pid of the holder, for a keeper that has the pipes of this holder and was started before the
/// process that it is to keep.
pub const OF: &str = "--of";

/// The process called `__holder`.
#[must_use]
pub fn main(arguments: &[String]) -> i32 {
    match option(arguments, replacement_holder::FLAG) {
        Some(session) => i32::from(replacement_holder::go_on(session, &|| hold(arguments)).is_err()),
        None => hold(arguments),
    }
}

fn hold(arguments: &[String]) -> i32 {
    ignore(Signal::PIPE);
    // Exceeding a limit on the size of files is then an error, like a full disk.
    ignore(Signal::XFSZ);
    let _ = rustix::thread::set_name(c"ostler-holder");
    pause_points::act_as(Role::Holder);
    match run(arguments) {
        Ok(()) => 0,
        // Standard error of a helper is not read; a launch is told of errors in another way.
        Err(_) => 1,
    }
}

fn run(arguments: &[String]) -> io::Result<()> {
    let mut handles = Handles::from_arguments(arguments)?;
    let folder = enter_folder(&handles)?;
    let number = option(arguments, "--run").and_then(|number| number.parse().ok()).unwrap_or(1);
    let signals = Signals::take(&SIGNALS)?;
    rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1))?;
    let run = folder.run(number).map_err(io::Error::other)?;
    pause_points::at(Point::HolderEntered);
    let line = match handles.copy(LINE)? {
        Some(line) => line,
        None => {
            let (line, keeper_line) = socket::pair()?;
            handles.put(handles::HOLDER_LINE, keeper_line);
            line
        }
    };
    handles.close(LINE);
    let agent = match option(arguments, BEGUN).and_then(|pid| pid.parse().ok()) {
        Some(pid) => AgentWatch { process: child(pid)?, watch: Watch::Child },
        None => replacement(&folder, &run, &mut handles)?,
    };
    if matches!(agent.watch, Watch::Over) {
        // The process that wrote exit.json may have told a keeper that no longer listened.
        control::tell(&line, News::Exited)?;
    }
    let keeping = match handles.copy(KEEPER_PROCESS)? {
        Some(pidfd) => Keeping::Alive { pidfd, child: None, since_ms: since_boot_ms(), failed: false },
        None => Keeping::Pausing { until_ms: 0 },
    };
    handles.close(KEEPER_PROCESS);
    let holder = Holder {
        folder,
        run,
        handles,
        signals,
        line,
        agent,
        keeping,
        unwritten: None,
        deaths: 0,
        unwanted: false,
        kill_at_ms: None,
        binary_before: None,
    };
    holder.wait()
}

/// Takes the place of a holder that is gone: the agent is the child of another process.
fn replacement(folder: &Folder, run: &RunFolder, handles: &mut Handles) -> io::Result<AgentWatch> {
    let record = run.record().map_err(io::Error::other)?;
    let process = record.agent.ok_or_else(|| io::Error::other("the run has no agent process to watch"))?;
    if handles.get(handles::LISTENER).is_none() {
        handles.put(handles::LISTENER, socket::open(folder.dir())?);
    }
    let me = helper_record()?;
    folder.even_when_full(|| folder.write_holder(&me)).map_err(io::Error::other)?;
    pause_points::at(Point::ReplacementEntered);
    if run.exit().map_err(io::Error::other)?.is_some() {
        return Ok(AgentWatch { process, watch: Watch::Over });
    }
    if handles.get(handles::AGENT).is_none() {
        match Pidfd::open(&process)? {
            Some(agent) => handles.put(handles::AGENT, agent.into()),
            None => {
                // The agent ended after the process that started us had looked, and its exit status cannot be found out
                // any more.
                write_exit(folder, run, None)?;
                return Ok(AgentWatch { process, watch: Watch::Over });
            }
        }
    }
    Ok(AgentWatch { process, watch: Watch::Foreign { exited_ms: None } })
}

/// The value after a flag.
pub(crate) fn option<'a>(arguments: &'a [String], flag: &str) -> Option<&'a str> {
    let place = arguments.iter().position(|argument| argument == flag)?;
    arguments.get(place + 1).map(String::as_str)
}

/// Starts the process of a further run of this session.
fn start_further(
    folder: &Folder,
    run: &RunFolder,
    handles: &mut Handles,
    keep: &dyn Fn(&Handles),
) -> Result<Identity, NotStarted> {
    let (session, record, groups) = (folder.session()?, run.record()?, cgroup::base());
    let environment = &with(environment(), &record.variables);
    let starting = Starting { session: &session, folder, run, record, environment, groups: groups.as_ref() };
    Ok(child(start_agent::start(starting, handles, None, Seen::Kept(keep))?)?)
}

/// The environment with these variables in it.
fn with(environment: Vec<CString>, variables: &[(String, String)]) -> Vec<CString> {
    let is_set = |entry: &CString| {
        let name = entry.as_bytes().split(|byte| *byte == b'=').next();
        variables.iter().any(|(set, _)| Some(set.as_bytes()) == name)
    };
    let set = variables.iter().filter_map(|(name, value)| CString::new(format!("{name}={value}")).ok());
    environment.into_iter().filter(|entry| !is_set(entry)).chain(set).collect()
}

/// The identity of a child of ours. Its pid is not reused before we collect it.
fn child(pid: i32) -> io::Result<Identity> {
    Identity::of(pid)?.ok_or_else(|| io::Error::other("the system does not show our own child process"))
}

struct Holder {
    folder: Folder,
    run: RunFolder,
    handles: Handles,
    signals: Signals,
    /// Our end of the line; the keepers' end is among the handles.
    line: OwnedFd,
    agent: AgentWatch,
    /// How the agent ended, as long as the disk has no room for this record.
    unwritten: Option<Option<WaitStatus>>,
    keeping: Keeping,
    /// Keepers that died young, one after the other.
    deaths: u32,
    /// The holder has received SIGTERM: the session is to end.
    unwanted: bool,
    /// When to kill the agent that the holder has sent SIGTERM, because there is no keeper to end it.
    kill_at_ms: Option<u64>,
    binary_before: Option<OwnedFd>,
}

struct AgentWatch {
    process: Identity,
    watch: Watch,
}

/// How the holder learns of the agent's end.
enum Watch {
    /// It is our child.
    Child,
    /// It is the child of another process; since when it is known to have exited.
    Foreign {
        exited_ms: Option<u64>,
    },
    Over,
}

/// The state of the keeper.
enum Keeping {
    Alive {
        pidfd: OwnedFd,
        /// Its pid, when we started it.
        child: Option<i32>,
        since_ms: u64,
        /// It exited with an error.
        failed: bool,
    },
    Pausing {
        until_ms: u64,
    },
    /// No keeper is started before that time, and then only when a client connects.
    GivenUp {
        until_ms: u64,
    },
}

impl Keeping {
    /// A keeper that we have just started.
    fn with(started: Started) -> Keeping {
        Keeping::Alive { child: Some(started.pid), pidfd: started.pidfd, since_ms: since_boot_ms(), failed: false }
    }
}

/// The keeper of a run whose process is about to be started. It waits for the keeper of the run before.
fn start_next_keeper(handles: &Handles, number: u32) -> Result<Started, StartError> {
    let number = number.to_string();
    let me = rustix::process::getpid().as_raw_nonzero().to_string();
    handles.start_helper(&Helper { word: KEEPER, flags: &["--run", &number, OF, &me], more: &[] }, &environment())
}

/// What woke us.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Woken {
    Signals,
    Line,
    Keeper,
    Agent,
    Listener,
}

impl Holder {
    fn wait(mut self) -> io::Result<()> {
        // The agent may have ended before this first look.
        self.collect()?;
        loop {
            self.look_after_keeper();
            for woken in self.poll()? {
                match woken {
                    Woken::Signals => self.handle_signals()?,
                    Woken::Line => {
                        if self.handle_orders()? {
                            return Ok(());
                        }
                    }
                    Woken::Keeper => {
                        // Its last orders first: it may have said from which binary to start the next keeper.
                        if self.handle_orders()? {
                            return Ok(());
                        }
                        self.collect()?;
                        // Its last orders may have made the holder start another keeper.
                        if self.keeper_has_ended()? {
                            self.keeper_died();
                        }
                    }
                    Woken::Agent => self.foreign_exited(),
                    Woken::Listener => self.start_keeper(),
                }
            }
            self.learn_foreign_end()?;
            self.end_agent_alone()?;
            if self.is_forgotten()? || self.is_without_keeper_and_agent() {
                return Ok(());
            }
            if let Some(status) = self.unwritten {
                self.agent_ended(status)?;
            }
        }
    }

    fn poll(&self) -> io::Result<Vec<Woken>> {
        let mut kinds = vec![Woken::Signals, Woken::Line];
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&self.line, PollFlags::IN)];
        let mut deadline = None;
        match &self.keeping {
            Keeping::Alive { pidfd, .. } => {
                kinds.push(Woken::Keeper);
                fds.push(PollFd::new(pidfd, PollFlags::IN));
            }
            Keeping::Pausing { until_ms } => deadline = Some(*until_ms),
            Keeping::GivenUp { until_ms } if since_boot_ms() < *until_ms => deadline = Some(*until_ms),
            Keeping::GivenUp { .. } => {
                if let Some(listener) = self.handles.get(handles::LISTENER) {
                    kinds.push(Woken::Listener);
                    fds.push(PollFd::new(listener, PollFlags::IN));
                }
            }
        }
        if let (Watch::Foreign { exited_ms }, Some(agent)) = (&self.agent.watch, self.handles.get(handles::AGENT)) {
            kinds.push(Woken::Agent);
            // Readable when the agent has exited; hung up when its parent has collected it.
            fds.push(PollFd::new(agent, if exited_ms.is_none() { PollFlags::IN } else { PollFlags::empty() }));
            deadline = deadline.into_iter().chain(exited_ms.map(|ms| ms + EXIT_WAIT_MS)).min();
        }
        if !matches!(self.agent.watch, Watch::Over) {
            deadline = deadline.into_iter().chain(self.kill_at_ms).min();
        }
        if self.unwritten.is_some() {
            deadline = deadline.into_iter().chain([since_boot_ms() + FULL_DISK_MS]).min();
        }
        let timeout = deadline.map(|ms| {
            let wait = ms.saturating_sub(since_boot_ms());
            Timespec {
                tv_sec: i64::try_from(wait / 1000).unwrap_or(0),
                tv_nsec: i64::try_from(wait % 1000).unwrap_or(0) * 1_000_000,
            }
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let woken = kinds.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty()).map(|(&kind, _)| kind);
        Ok(woken.collect())
    }

    fn handle_signals(&mut self) -> io::Result<()> {
        while let Some(signal) = self.signals.next()? {
            if signal == Signal::CHILD.as_raw() {
                self.collect()?;
            } else if signal == Signal::TERM.as_raw() {
                self.unwanted = true;
                control::tell(&self.line, News::Terminated)?;
                if !matches!(self.keeping, Keeping::Alive { .. }) {
                    self.start_keeper();
                }
            }
            // A hang-up or Ctrl-C that reaches the holder was meant for a terminal that it does not have.
        }
        Ok(())
    }

    /// Collects every child that has ended. How the agent ended is on disk before its pid is free again.
    fn collect(&mut self) -> io::Result<()> {
        while let Some(ended) = spawn::next_ended()? {
            if ended.pid == self.agent.process.pid() && matches!(self.agent.watch, Watch::Child) {
                self.agent_ended(Some(ended.status))?;
                spawn::collect(ended.pid);
                pause_points::at(Point::AgentCollected);
            } else {
                if let Keeping::Alive { child: Some(pid), failed, .. } = &mut self.keeping
                    && *pid == ended.pid
                {
                    *failed = ended.status.code().is_some_and(|code| code != 0);
                }
                spawn::collect(ended.pid);
                control::tell(&self.line, News::Reaped)?;
            }
        }
        Ok(())
    }

    /// Records how the agent ended. When the disk has no room even for that, it is kept in memory until there is room.
    fn agent_ended(&mut self, status: Option<WaitStatus>) -> io::Result<()> {
        self.agent.watch = Watch::Over;
        pause_points::at(Point::ExitSeen);
        match write_exit(&self.folder, &self.run, status) {
            Ok(()) => {
                pause_points::at(Point::ExitWritten);
                self.unwritten = None;
                control::tell(&self.line, News::Exited)?;
                if matches!(self.keeping, Keeping::GivenUp { .. }) && !self.unwanted {
                    self.deaths = LAST_DEATH - LAST_TRIES;
                    self.keeping = Keeping::Pausing { until_ms: 0 };
                }
            }
            Err(_) => self.unwritten = Some(status),
        }
        Ok(())
    }

    fn foreign_exited(&mut self) {
        if let Watch::Foreign { exited_ms } = &mut self.agent.watch {
            exited_ms.get_or_insert_with(since_boot_ms);
        }
    }

    fn learn_foreign_end(&mut self) -> io::Result<()> {
        let Watch::Foreign { exited_ms: Some(exited_ms) } = self.agent.watch else {
            return Ok(());
        };
        let status = match self.handles.copy(handles::AGENT)? {
            Some(pidfd) => Pidfd::adopt(pidfd, &self.agent.process).exit_status(),
            None => None,
        };
        if status.is_some() || since_boot_ms() >= exited_ms + EXIT_WAIT_MS {
            self.agent_ended(status)?;
        }
        Ok(())
    }

    /// The agent and the keeper are gone and so is the folder: there is nothing to hold and no process to report to.
    fn is_forgotten(&self) -> io::Result<bool> {
        let over = matches!(self.agent.watch, Watch::Over) && !matches!(self.keeping, Keeping::Alive { .. });
        Ok(over && self.folder.dir().is_deleted()?)
    }

    /// No keeper lives, none will be started, and the agent has ended: what is known about it is on disk.
    fn is_without_keeper_and_agent(&self) -> bool {
        let over = matches!(self.agent.watch, Watch::Over) && self.unwritten.is_none();
        over && matches!(self.keeping, Keeping::GivenUp { .. })
    }

    /// Ends the agent of a session that is to end and that no keeper can end.
    fn end_agent_alone(&mut self) -> io::Result<()> {
        let alone = self.unwanted && matches!(self.keeping, Keeping::GivenUp { .. });
        if !alone || matches!(self.agent.watch, Watch::Over) {
            return Ok(());
        }
        let Some(agent) = self.handles.copy(handles::AGENT)? else {
            return Ok(());
        };
        let agent = Pidfd::adopt(agent, &self.agent.process);
        let now = since_boot_ms();
        let signal = match self.kill_at_ms {
            None => Signal::TERM,
            Some(kill_at_ms) if now >= kill_at_ms => Signal::KILL,
            Some(_) => return Ok(()),
        };
        self.kill_at_ms = Some(now + LONE_GRACE_MS);
        agent.signal(signal).map(drop)
    }

    /// True when the holder is to exit.
    fn handle_orders(&mut self) -> io::Result<bool> {
        while let Some((order, file)) = control::next_order(&self.line)? {
            match order {
                Some(Order::CloseInput) => {
                    self.handles.close(handles::STDIN_WRITE);
                    pause_points::at(Point::InputClosed);
                }
                Some(Order::Finish) => {
                    pause_points::at(Point::FinishHeard);
                    return Ok(true);
                }
                Some(Order::UseBinary) => {
                    if let Some(binary) = file {
                        self.binary_before = self.handles.copy(handles::BINARY)?;
                        self.handles.put(handles::BINARY, binary);
                        self.deaths = 0;
                    }
                }
                Some(Order::StartRun) => {
                    self.start_run();
                    if let Some(file) = file {
                        control::carried_out(&file);
                    }
                }
                Some(Order::UseListener) => {
                    if let Some(listener) = file {
                        self.handles.put(handles::LISTENER, listener);
                    }
                }
                Some(Order::UseWriter) => {
                    if let Some(lock) = file {
                        self.handles.put(handles::WRITER, lock);
                    }
                }
                Some(Order::UseSlot) => {
                    if let Some(slot) = file {
                        self.handles.put(handles::SLOT, slot);
                    }
                }
                None => {}
            }
        }
        Ok(false)
    }

    /// Starts the next process of a session that continues by itself. When a keeper and its replacement both ask for
    /// it, it is done once.
    fn start_run(&mut self) {
        let Ok(newest) = self.folder.newest_run() else {
            return;
        };
        if newest == self.run.number || !matches!(self.agent.watch, Watch::Over) {
            return;
        }
        let Ok(run) = self.folder.run(newest) else {
            return;
        };
        // A run that could not be started has this as its outcome: it is not tried again under the same number.
        if run.record().is_ok_and(|record| record.not_started.is_some()) {
            return;
        }
        // Not for the next keeper, which is started before the new input and the new agent exist.
        for name in [handles::STDIN_WRITE, handles::STDIN_READ, handles::AGENT] {
            self.handles.close(name);
        }
        let next = Cell::new(None);
        let keep = |handles: &Handles| {
            next.set(start_next_keeper(handles, run.number).ok());
            pause_points::at(Point::NextKeeperStarted);
        };
        let process = start_further(&self.folder, &run, &mut self.handles, &keep);
        // When that keeper could not be started, one is started after the keeper that ordered the run has exited.
        if let Some(started) = next.take() {
            self.keeping = Keeping::with(started);
        }
        match process {
            Ok(process) => {
                pause_points::at(Point::RunStarted);
                self.agent = AgentWatch { process, watch: Watch::Child };
                self.run = run;
            }
            Err(error) => self.note_not_started(&run, &error),
        }
    }

    /// The next keeper makes this the outcome of the run. When not even the reason can be written, the run is removed
    /// and the session ends with the run before it.
    fn note_not_started(&self, run: &RunFolder, error: &NotStarted) {
        let not_started = Some(format!("cannot start the next process: {error}"));
        let noted = self.folder.even_when_full(|| {
            let record = RunRecord { not_started: not_started.clone(), ..run.record()? };
            run.write_record(&record)
        });
        if noted.is_err() {
            // A run that cannot be removed is treated as one that never began.
            let _ = self.folder.discard_run(run.number);
        }
    }

    fn keeper_has_ended(&self) -> io::Result<bool> {
        let Keeping::Alive { pidfd, .. } = &self.keeping else {
            return Ok(false);
        };
        let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
        match poll(&mut fds, Some(&Timespec::default())) {
            Ok(ended) => Ok(ended > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn keeper_died(&mut self) {
        let Keeping::Alive { since_ms, failed, .. } = self.keeping else {
            return;
        };
        pause_points::at(Point::KeeperDied);
        let now = since_boot_ms();
        let young_ms = if failed { FAILED_YOUNG_MS } else { YOUNG_MS };
        self.deaths = if now.saturating_sub(since_ms) < young_ms { self.deaths + 1 } else { 0 };
        if self.deaths >= NEW_BINARY_DEATHS
            && let Some(before) = self.binary_before.take()
        {
            self.handles.put(handles::BINARY, before);
            self.deaths = 0;
        }
        let last = if self.unwanted { FREE_DEATHS } else { LAST_DEATH };
        self.keeping = if self.deaths >= last {
            Keeping::GivenUp { until_ms: now + LONGEST_PAUSE_MS }
        } else {
            let pause = match self.deaths.checked_sub(FREE_DEATHS) {
                None => 0,
                Some(further) => (10 << further.min(10)).min(LONGEST_PAUSE_MS),
            };
            Keeping::Pausing { until_ms: now + pause }
        };
        if self.deaths >= FREE_DEATHS {
            self.show_crash_loop();
        }
    }

    /// `ls` reads the count from the holder's record. When the record cannot be written, the missing keeper is shown
    /// anyway.
    fn show_crash_loop(&self) {
        if let Ok(mut record) = helper_record() {
            record.crashes = self.deaths;
            record.gave_up = matches!(self.keeping, Keeping::GivenUp { .. });
            let _ = self.folder.write_holder(&record);
        }
    }

    fn look_after_keeper(&mut self) {
        if let Keeping::Pausing { until_ms } = self.keeping
            && since_boot_ms() >= until_ms
        {
            self.start_keeper();
        }
    }

    fn start_keeper(&mut self) {
        let number = self.run.number.to_string();
        let keeper = Helper { word: KEEPER, flags: &["--run", &number], more: &[] };
        self.keeping = match self.handles.start_helper(&keeper, &environment()) {
            Ok(started) => Keeping::with(started),
            // No process or no memory: handled like a keeper that died at once.
            Err(_) => {
                self.deaths += 1;
                Keeping::Pausing { until_ms: since_boot_ms() + 1000 }
            }
        };
        pause_points::at(Point::KeeperReplaced);
    }
}
