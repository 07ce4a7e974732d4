//! The process of a run, and what is done to end it.

use super::turn::{Turn, TurnAtExit};
use crate::outcome::Exit;
use serde::{Deserialize, Serialize};

/// The phase of a process. Each phase has the data that exists only in that phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Process {
    Starting,
    Running {
        /// Milliseconds since boot.
        started_ms: u64,
        /// The turn that it works on, as far as it reports turns.
        turn: Option<Turn>,
        input: Input,
    },
    Exited(Exited),
}

/// What is known of the input of a process that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    #[default]
    Open,
    /// The agent has reported that its terminal accepts messages.
    Ready,
    /// It has been told that no further message comes.
    Ended,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exited {
    pub(super) started_ms: Option<u64>,
    pub(super) how: HowExited,
    pub(super) at_ms: u64,
    pub(super) turn: TurnAtExit,
    /// The processes that were found still running.
    pub(super) left: Vec<String>,
    pub(super) tree: Tree,
    /// It exited by itself without having taken its message: the next process would do the same.
    pub(super) unheard: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum HowExited {
    Exit(Exit),
    /// There was no process: why it could not be started.
    NeverStarted {
        reason: String,
    },
}

/// What is known of the processes that the process left running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::life) enum Tree {
    /// Processes may be left, and were not asked to exit.
    Untold,
    /// They were asked to exit, first at this time; with `forced` they were killed since.
    Told { at_ms: u64, forced: bool },
    /// Nothing is left, and all output is collected.
    Empty,
}

/// What has been done to end the process. Each step may come without the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndSteps {
    /// When it was asked to exit, in the way that its plan says.
    pub asked_ms: Option<u64>,
    /// SIGTERM was sent.
    pub terminated: bool,
    /// SIGKILL was sent.
    pub killed: bool,
}

impl EndSteps {
    /// Whether any step was taken.
    #[must_use]
    pub fn any(self) -> bool {
        self.asked_ms.is_some() || self.terminated || self.killed
    }
}

impl Process {
    pub(super) fn started_ms(&self) -> Option<u64> {
        match self {
            Process::Starting => None,
            Process::Running { started_ms, .. } => Some(*started_ms),
            Process::Exited(exited) => exited.started_ms,
        }
        .filter(|ms| *ms > 0)
    }

    /// The process has waited until now, and starts its program.
    pub(super) fn begins(&mut self, now_ms: u64) {
        match self {
            Process::Running { started_ms, .. } => *started_ms = now_ms,
            Process::Starting | Process::Exited(_) => {}
        }
    }

    pub(super) fn exited(&self) -> Option<&Exited> {
        match self {
            Process::Starting | Process::Running { .. } => None,
            Process::Exited(exited) => Some(exited),
        }
    }

    pub(super) fn exited_mut(&mut self) -> Option<&mut Exited> {
        match self {
            Process::Starting | Process::Running { .. } => None,
            Process::Exited(exited) => Some(exited),
        }
    }

    /// The turn that a running process works on.
    pub(super) fn turn_mut(&mut self) -> Option<&mut Turn> {
        match self {
            Process::Running { turn, .. } => turn.as_mut(),
            Process::Starting | Process::Exited(_) => None,
        }
    }

    /// Notes what is known of its input. An input that has ended stays ended, and a process that does not run has no
    /// input.
    pub(super) fn input_becomes(&mut self, now: Input) {
        match self {
            Process::Running { input: input @ (Input::Open | Input::Ready), .. } => *input = now,
            Process::Running { input: Input::Ended, .. } | Process::Starting | Process::Exited(_) => {}
        }
    }

    /// What is known of the input of a process that runs.
    pub(super) fn input(&self) -> Option<Input> {
        match self {
            Process::Running { input, .. } => Some(*input),
            Process::Starting | Process::Exited(_) => None,
        }
    }

    /// The process is gone. The questions and retries of its turn are dropped.
    pub(super) fn exit(&mut self, how: HowExited, at_ms: u64) {
        let turn = match self {
            Process::Running { turn: Some(turn), .. } => TurnAtExit::Unfinished { confirmed: turn.confirmed },
            Process::Running { turn: None, .. } | Process::Starting => TurnAtExit::Over,
            Process::Exited(_) => return,
        };
        let tree = match &how {
            HowExited::Exit(_) => Tree::Untold,
            HowExited::NeverStarted { .. } => Tree::Empty,
        };
        let started_ms = self.started_ms();
        *self = Process::Exited(Exited { started_ms, how, at_ms, turn, left: Vec::new(), tree, unheard: false });
    }
}

impl Exited {
    pub(in crate::life) fn tree(&self) -> Tree {
        self.tree
    }

    /// How it ended. `None`: there never was a process.
    pub(super) fn exit(&self) -> Option<Exit> {
        match &self.how {
            HowExited::Exit(exit) => Some(*exit),
            HowExited::NeverStarted { .. } => None,
        }
    }
}

impl Tree {
    /// The processes that are left were asked to exit, or killed. The first time is kept.
    pub(super) fn tell(&mut self, now_ms: u64, forced: bool) {
        match self {
            Tree::Untold => *self = Tree::Told { at_ms: now_ms, forced },
            Tree::Told { forced: before, .. } => *before |= forced,
            Tree::Empty => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_that_runs_has_an_input_and_one_that_has_ended_stays_so() {
        let mut process = Process::Starting;
        process.input_becomes(Input::Ready);
        assert_eq!(process.input(), None);
        process = Process::Running { started_ms: 1, turn: None, input: Input::default() };
        process.input_becomes(Input::Ready);
        assert_eq!(process.input(), Some(Input::Ready));
        process.input_becomes(Input::Ended);
        process.input_becomes(Input::Ready);
        assert_eq!(process.input(), Some(Input::Ended));
        process.exit(HowExited::NeverStarted { reason: String::new() }, 2);
        assert_eq!(process.input(), None);
    }
}
