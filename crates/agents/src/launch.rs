//! How an agent is started.

use ostler_core::record::{Channel, Ending, Fork, Lines, Mode, Plan, Session, Tty};

/// How an agent is started, and what of a person's own arguments that concerns.
pub trait Launcher {
    /// How to start it.
    fn launch(&self, request: &Launching<'_>) -> Launch;

    /// The conversation that a person's own arguments tell it to go on with, and the arguments without that.
    fn named_conversation(&self, arguments: &[String]) -> Option<(String, Vec<String>)> {
        let _ = arguments;
        None
    }

    /// What of a person's own arguments would work against us, and what to do instead.
    fn conflicts(&self, arguments: &[String]) -> Option<&'static str> {
        let _ = arguments;
        None
    }

    /// Whether it has a mode in which it cannot write ([`Session::read_only`]): what it runs then changes nothing in its folder.
    fn can_only_read(&self) -> bool {
        false
    }

    /// What ostler has decided with these arguments against the agent's own defaults, in words for a person.
    fn in_force(&self, argv: &[String]) -> Option<&'static str> {
        let _ = argv;
        None
    }

    /// Whether it says in this mode, at the end of each turn, what that has cost.
    fn tells_cost(&self, mode: Mode) -> bool {
        let _ = mode;
        false
    }

    /// Whether it says in this mode when a turn begins and ends.
    fn tells_turns(&self, mode: Mode) -> bool {
        mode == Mode::Headless
    }

    /// Files that it is started with, by name: they are put into the folder of the run.
    fn files(&self, request: &Launching<'_>) -> Vec<(&'static str, Vec<u8>)> {
        let _ = request;
        Vec::new()
    }
}

/// What a start is made from.
pub struct Launching<'a> {
    pub session: &'a Session,
    /// Our own program, which contains the demo agent.
    pub own_binary: &'a str,
    /// The conversation to go on with, or the name for a new one where the agent lets us choose.
    pub native_id: &'a str,
    pub resume: bool,
    /// How long what is left of a program may take to leave by itself.
    pub linger_ms: u64,
    /// Looks up a variable of the environment that the agent will have.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Where the run will be.
    pub folder: &'a str,
    /// Reads a file that an argument names.
    pub file: &'a dyn Fn(&str) -> Option<String>,
    /// Whether the program that will be started knows this option: options come with newer versions. Asks the program.
    pub knows: &'a dyn Fn(&str) -> bool,
}

impl Launching<'_> {
    /// What this start makes a copy of: the first of a forked session does.
    #[must_use]
    pub fn forks(&self) -> Option<&Fork> {
        self.session.fork.as_ref().filter(|_| !self.resume)
    }
}

/// How to start an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    pub argv: Vec<String>,
    pub plan: Plan,
    /// The conversation's name, where it is known beforehand.
    pub native_id: Option<String>,
    /// What its environment needs beside what is there.
    pub variables: Vec<(String, String)>,
}

/// One process per turn: the message comes over standard input, where it may be as long as it likes, and its end follows.
#[must_use]
pub fn one_turn(argv: Vec<String>, request: &Launching<'_>) -> Launch {
    Launch {
        argv,
        plan: Plan {
            channel: Channel::Lines(Lines::OneTurn),
            keep: request.session.keep,
            ending: Ending::EndOfInput,
            linger_ms: request.linger_ms,
            rules: ostler_core::rules::Rules::default(),
        },
        native_id: request.resume.then(|| request.native_id.to_owned()),
        variables: Vec::new(),
    }
}

/// In a terminal an agent is a program like any other.
#[must_use]
pub fn silent_terminal(argv: Vec<String>, request: &Launching<'_>) -> Launch {
    Launch {
        argv,
        plan: Plan {
            channel: Channel::Tty(Tty::Nothing),
            keep: false,
            ending: Ending::Hangup,
            linger_ms: request.linger_ms,
            rules: ostler_core::rules::Rules::default(),
        },
        native_id: request.resume.then(|| request.native_id.to_owned()),
        variables: Vec::new(),
    }
}
