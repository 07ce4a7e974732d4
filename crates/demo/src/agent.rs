//! The main loop of the process: it waits, takes in prompts, plays one turn after the other, and exits.
//!
//! [`Agent::wait`] is the only place that waits for anything. A turn calls it for every wait, for a short pause as well
//! as for a tool that runs for minutes. So an interrupt, a signal, a new prompt and the transcript's timer are always
//! handled within one wake-up.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use uuid::Uuid;

use crate::face::{Command, Content, Face, Message, Prompt, Question, Scene, Verdict};
use crate::leave::{LastTurn, Leave, Trouble};
use crate::options::{Options, Pace};
use crate::protocol;
use crate::signals::Signals;
use crate::transcript::Transcript;
use crate::turn;

pub struct Agent {
    pub traits: Traits,
    face: Box<dyn Face>,
    signals: Rc<Signals>,
    transcript: Transcript,
    queue: VecDeque<Prompt>,
    input: Input,
    turn: TurnState,
    /// The turn that is about to begin has to end at once.
    interrupts_next: bool,
    asked: Option<Asked>,
    /// What this process would have cost so far if it had a model.
    pub spent_micro_usd: u64,
}

/// The settings of the agent.
pub struct Traits {
    pub read_only: bool,
    pub ask: bool,
    pub pace: Pace,
    pub home: PathBuf,
    pub cwd: PathBuf,
    pub session: Uuid,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Input {
    Open,
    Ended,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TurnState {
    None,
    Running,
    Interrupted,
}

/// The open question. There is at most one.
struct Asked {
    request_id: String,
    verdict: Option<Verdict>,
}

impl Agent {
    pub fn new(options: &Options, face: Box<dyn Face>, signals: Rc<Signals>, transcript: Transcript) -> Agent {
        Agent {
            traits: Traits {
                ask: options.ask,
                read_only: options.read_only,
                pace: options.pace,
                home: options.home.clone(),
                cwd: options.cwd.clone(),
                session: options.conversation.session(),
            },
            face,
            signals,
            transcript,
            queue: VecDeque::new(),
            input: Input::Open,
            turn: TurnState::None,
            interrupts_next: false,
            asked: None,
            spent_micro_usd: 0,
        }
    }

    /// Runs until there is a reason to exit.
    pub fn live(mut self) -> Leave {
        let leave = match self.work() {
            Ok(last_turn) => Leave::Finished(last_turn),
            Err(leave) => leave,
        };
        if !leave.writes_transcript() {
            return leave;
        }
        match (self.transcript.write(), leave) {
            (Ok(()), leave) | (Err(_), leave @ Leave::Trouble(_)) => leave,
            (Err(trouble), _) => Leave::Trouble(trouble),
        }
    }

    fn work(&mut self) -> Result<LastTurn, Leave> {
        let mut last_turn = LastTurn::WithoutError;
        while let Some(prompt) = self.next_prompt()? {
            last_turn = turn::play(self, &prompt)?;
        }
        Ok(last_turn)
    }

    fn next_prompt(&mut self) -> Result<Option<Prompt>, Leave> {
        loop {
            if let Some(prompt) = self.queue.pop_front() {
                return Ok(Some(prompt));
            }
            match self.input {
                Input::Open => self.wait(None, &[])?,
                Input::Ended => return Ok(None),
            }
        }
    }

    /// Waits until something happened or until `until`, and handles what belongs to the agent. `also` are the caller's
    /// own descriptors; the caller looks at them afterwards.
    pub fn wait(&mut self, until: Option<Instant>, also: &[BorrowedFd<'_>]) -> Result<(), Leave> {
        let input_ready = self.poll(until, also).map_err(|error| Leave::Trouble(Trouble::Wait(error)))?;
        self.signals.calm();
        if self.face.has_keyboard() && self.signals.take_interrupt() {
            self.attend(Command::Interrupt)?;
        }
        if let Some(signal) = self.signals.end() {
            return Err(Leave::Signal(signal));
        }
        if self.signals.take_resized() {
            self.face.resized()?;
        }
        if input_ready {
            for command in self.face.hear()? {
                self.attend(command)?;
            }
        }
        if self.transcript.due().is_some_and(|due| due <= Instant::now()) {
            // A full disk may have room a moment later: the batch is kept, and the write is tried again on exit.
            let _ = self.transcript.write();
        }
        Ok(())
    }

    /// Whether the input is ready.
    fn poll(&self, until: Option<Instant>, also: &[BorrowedFd<'_>]) -> io::Result<bool> {
        let now = Instant::now();
        let deadline =
            if self.signals.any() { Some(now) } else { until.into_iter().chain(self.transcript.due()).min() };
        let timeout = deadline.map(|deadline| deadline.saturating_duration_since(now));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());

        let mut watched = vec![self.signals.wake()];
        watched.extend_from_slice(also);
        match self.input {
            Input::Open => watched.push(self.face.input()),
            Input::Ended => {}
        }
        let mut fds: Vec<PollFd<'_>> =
            watched.into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        Ok(self.input == Input::Open && fds.last().is_some_and(|input| !input.revents().is_empty()))
    }

    fn attend(&mut self, command: Command) -> Result<(), Leave> {
        match command {
            Command::Prompt(prompt) => {
                if self.transcript.accept(&prompt.uuid) {
                    self.queue.push_back(prompt);
                }
            }
            Command::Interrupt => match self.turn {
                TurnState::Running => self.turn = TurnState::Interrupted,
                // The interrupt comes right after a prompt whose turn has not begun: it is meant for that turn.
                TurnState::None => self.interrupts_next = !self.queue.is_empty(),
                TurnState::Interrupted => {}
            },
            Command::Answer { request_id, verdict } => {
                if let Some(asked) = self.asked.as_mut().filter(|asked| asked.request_id == request_id) {
                    asked.verdict.get_or_insert(verdict);
                }
            }
            Command::NoMoreInput => {
                self.input = Input::Ended;
                if let Some(asked) = &mut self.asked {
                    asked.verdict.get_or_insert_with(no_answer_possible);
                }
            }
            Command::Quit => return Err(Leave::Quit),
        }
        Ok(())
    }

    pub fn begin_turn(&mut self, prompt: &Prompt) -> Result<(), Leave> {
        let interrupted = std::mem::take(&mut self.interrupts_next);
        self.turn = if interrupted { TurnState::Interrupted } else { TurnState::Running };
        self.transcript.add_prompt(&prompt.uuid, &prompt.text);
        self.face.show(Scene::TurnBegins { prompt: &prompt.text })
    }

    pub fn end_turn(&mut self) {
        self.turn = TurnState::None;
    }

    /// Whether the running turn was interrupted.
    pub fn interrupted(&self) -> bool {
        self.turn == TurnState::Interrupted
    }

    pub fn show(&mut self, scene: Scene<'_>) -> Result<(), Leave> {
        self.face.show(scene)
    }

    /// Adds a message to the conversation: shown now, written to disk later.
    pub fn tell(&mut self, content: Content) -> Result<(), Leave> {
        let message = Message { uuid: Uuid::new_v4().to_string(), content };
        self.face.show(Scene::Said(&message))?;
        self.transcript.add(&message.uuid, protocol::role(&message.content), protocol::message(&message.content));
        Ok(())
    }

    /// Turns of the conversation before the running one.
    pub fn turns_before(&self) -> usize {
        self.transcript.turns().saturating_sub(1)
    }

    /// Asks, and waits for the verdict; `None` when the turn is interrupted instead.
    pub fn ask(&mut self, question: &Question) -> Result<Option<Verdict>, Leave> {
        if self.input == Input::Ended {
            return Ok(Some(no_answer_possible()));
        }
        self.asked = Some(Asked { request_id: question.request_id.clone(), verdict: None });
        self.face.show(Scene::Asks(question))?;
        let verdict = loop {
            if let Some(verdict) = self.asked.as_ref().and_then(|asked| asked.verdict.clone()) {
                break Some(verdict);
            }
            if self.interrupted() {
                break None;
            }
            self.wait(None, &[])?;
        };
        self.asked = None;
        self.face.show(Scene::AskedEnough { question, answered: verdict.is_some() })?;
        Ok(verdict)
    }
}

fn no_answer_possible() -> Verdict {
    Verdict::Denied { reason: "the input has ended, so no answer can come".to_owned() }
}
