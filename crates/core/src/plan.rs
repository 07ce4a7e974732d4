//! How one run is driven. It is a part of `run.json` and of the journal's `started`, so that readers need to know
//! nothing else about the agent.
//!
//! In files a plan keeps the form of its first version: `mode`, `speaks` and `opens` are separate fields, although few
//! of their combinations exist. In memory they are one [`Channel`], which has exactly the combinations that exist.

use crate::record::Mode;
use crate::rules::Rules;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "PlanOnDisk", into = "PlanOnDisk")]
pub struct Plan {
    /// How messages and facts pass between the agent and us.
    pub channel: Channel,
    /// Stay for further messages when the turn is over.
    pub keep: bool,
    pub ending: Ending,
    /// How long processes that a program has left running may take to exit by themselves.
    pub linger_ms: u64,
    /// What a person has decided beforehand.
    pub rules: Rules,
}

/// How messages and facts pass between the agent and us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// They do not: the program prints anything. The process is the turn, and its exit is the end of the turn.
    Command,
    /// Lines on its standard input and output.
    Lines(Lines),
    /// Keys are typed into its terminal, and it draws there.
    Tty(Tty),
}

/// How many turns a process that reads and writes lines takes, and what comes before the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// Several.
    Turns,
    /// Several, after its conversation has been opened: messages wait until the agent reports that it is open.
    OpenedTurns,
    /// The process is given one message and the end of input, and exits at the end of the turn. A further message is a
    /// further run of the same session.
    OneTurn,
}

/// What a program that draws reports besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tty {
    Nothing,
    /// The hooks that we gave it report turns, questions and conversations, in a separate file (`hooks`).
    Hooks,
}

impl Channel {
    #[must_use]
    pub fn mode(self) -> Mode {
        match self {
            Channel::Command | Channel::Lines(_) => Mode::Headless,
            Channel::Tty(_) => Mode::Terminal,
        }
    }

    #[must_use]
    pub fn speaks(self) -> Speaks {
        match self {
            Channel::Command | Channel::Tty(Tty::Nothing) => Speaks::Bytes,
            Channel::Lines(Lines::Turns | Lines::OpenedTurns) => Speaks::Turns,
            Channel::Lines(Lines::OneTurn) => Speaks::OneTurn,
            Channel::Tty(Tty::Hooks) => Speaks::Hooks,
        }
    }

    /// Its conversation has to be opened first.
    #[must_use]
    pub fn opens(self) -> bool {
        self == Channel::Lines(Lines::OpenedTurns)
    }

    /// The channel of a program whose output is not decoded, with a terminal or without.
    #[must_use]
    pub fn of_program(mode: Mode) -> Channel {
        match mode {
            Mode::Headless => Channel::Command,
            Mode::Terminal => Channel::Tty(Tty::Nothing),
        }
    }
}

impl Plan {
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.channel.mode()
    }

    #[must_use]
    pub fn speaks(&self) -> Speaks {
        self.channel.speaks()
    }

    #[must_use]
    pub fn opens(&self) -> bool {
        self.channel.opens()
    }

    /// Whether ostler writes to its standard input, even if only to close it.
    #[must_use]
    pub fn has_input(&self) -> bool {
        match &self.ending {
            Ending::EndOfInput | Ending::Typed { .. } => true,
            Ending::Hangup | Ending::Terminate | Ending::Interrupt => self.speaks().converses(),
        }
    }
}

/// What the agent reports, by whatever means. It follows from its [`Channel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaks {
    /// Nothing.
    Bytes,
    /// Messages in, facts out, several turns in one process.
    Turns,
    /// The same with one turn in each process.
    OneTurn,
    /// Facts come from hooks, and messages are typed.
    Hooks,
}

impl Speaks {
    /// Whether it takes messages and reports when it has finished one.
    #[must_use]
    pub fn converses(self) -> bool {
        match self {
            Speaks::Bytes => false,
            Speaks::Turns | Speaks::OneTurn | Speaks::Hooks => true,
        }
    }
}

/// How the agent is asked to exit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    EndOfInput,
    Hangup,
    Terminate,
    Interrupt,
    /// Exactly these keys, as a person would type them at its terminal or into its input.
    Typed {
        keys: String,
    },
}

/// A plan as it is written. No version of ostler writes a combination that is not a [`Channel`].
#[derive(Serialize, Deserialize)]
struct PlanOnDisk {
    mode: Mode,
    keep: bool,
    speaks: Speaks,
    ending: Ending,
    linger_ms: u64,
    #[serde(default)]
    opens: bool,
    #[serde(default, skip_serializing_if = "Rules::is_none")]
    rules: Rules,
}

/// A plan that no agent has.
#[derive(Debug, thiserror::Error)]
#[error("a plan with mode {mode:?}, speaks {speaks:?} and opens {opens} does not exist")]
struct NoSuchChannel {
    mode: Mode,
    speaks: Speaks,
    opens: bool,
}

impl TryFrom<PlanOnDisk> for Plan {
    type Error = NoSuchChannel;

    fn try_from(plan: PlanOnDisk) -> Result<Plan, NoSuchChannel> {
        let PlanOnDisk { mode, keep, speaks, ending, linger_ms, opens, rules } = plan;
        let channel = match (mode, speaks, opens) {
            (Mode::Headless, Speaks::Bytes, false) => Channel::Command,
            (Mode::Headless, Speaks::Turns, false) => Channel::Lines(Lines::Turns),
            (Mode::Headless, Speaks::Turns, true) => Channel::Lines(Lines::OpenedTurns),
            (Mode::Headless, Speaks::OneTurn, false) => Channel::Lines(Lines::OneTurn),
            (Mode::Terminal, Speaks::Bytes, false) => Channel::Tty(Tty::Nothing),
            (Mode::Terminal, Speaks::Hooks, false) => Channel::Tty(Tty::Hooks),
            (Mode::Headless, Speaks::Hooks, _)
            | (Mode::Terminal, Speaks::Turns | Speaks::OneTurn, _)
            | (Mode::Headless, Speaks::Bytes | Speaks::OneTurn, true)
            | (Mode::Terminal, Speaks::Bytes | Speaks::Hooks, true) => {
                return Err(NoSuchChannel { mode, speaks, opens });
            }
        };
        Ok(Plan { channel, keep, ending, linger_ms, rules })
    }
}

impl From<Plan> for PlanOnDisk {
    fn from(plan: Plan) -> PlanOnDisk {
        let (mode, speaks, opens) = (plan.mode(), plan.speaks(), plan.opens());
        PlanOnDisk {
            mode,
            keep: plan.keep,
            speaks,
            ending: plan.ending,
            linger_ms: plan.linger_ms,
            opens,
            rules: plan.rules,
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const CHANNELS: [Channel; 6] = [
        Channel::Command,
        Channel::Lines(Lines::Turns),
        Channel::Lines(Lines::OpenedTurns),
        Channel::Lines(Lines::OneTurn),
        Channel::Tty(Tty::Nothing),
        Channel::Tty(Tty::Hooks),
    ];

    #[test]
    fn a_plan_has_the_form_on_disk_that_every_version_reads() {
        let plan = Plan {
            channel: Channel::Tty(Tty::Hooks),
            keep: false,
            ending: Ending::Hangup,
            linger_ms: 2000,
            rules: crate::rules::Rules::default(),
        };
        let written =
            r#"{"mode":"terminal","keep":false,"speaks":"hooks","ending":"hangup","linger_ms":2000,"opens":false}"#;
        assert_eq!(serde_json::to_string(&plan).unwrap(), written);
        for channel in CHANNELS {
            let plan = Plan { channel, ..plan.clone() };
            let again: Plan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
            assert_eq!(again, plan);
        }
    }

    #[test]
    fn a_plan_of_the_first_version_is_read() {
        let written =
            r#"{"mode":"headless","keep":true,"speaks":"turns","ending":"end_of_input","linger_ms":1,"more":7}"#;
        let plan: Plan = serde_json::from_str(written).unwrap();
        assert_eq!(plan.channel, Channel::Lines(Lines::Turns));
    }

    #[test]
    fn combinations_that_no_agent_has_are_not_read() {
        let read = |mode: &str, speaks: &str, opens: bool| {
            let written = format!(
                r#"{{"mode":"{mode}","keep":false,"speaks":"{speaks}","ending":"hangup","linger_ms":1,"opens":{opens}}}"#
            );
            serde_json::from_str::<Plan>(&written).is_ok()
        };
        let mut readable = 0;
        for mode in ["headless", "terminal"] {
            for speaks in ["bytes", "turns", "one_turn", "hooks"] {
                readable += usize::from(read(mode, speaks, false)) + usize::from(read(mode, speaks, true));
            }
        }
        assert_eq!(readable, CHANNELS.len());
        assert!(!read("terminal", "turns", false) && !read("headless", "hooks", false));
    }
}
