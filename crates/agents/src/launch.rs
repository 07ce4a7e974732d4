//! How an agent is started.

use ostler_core::record::{Channel, Ending, Fork, Lines, Mode, Plan, Session, Tty};

/// How an agent is started, and which of a person's own arguments matter for that.
pub trait Launcher {
    /// How to start it.
    fn launch(&self, request: &Launching<'_>) -> Launch;

    /// The conversation that a person's own arguments tell it to resume, and the arguments without that.
    fn named_conversation(&self, arguments: &[String]) -> Option<(String, Vec<String>)> {
        let _ = arguments;
        None
    }

    /// Which of a person's own arguments would conflict with ostler, and what to do instead.
    fn conflicts(&self, arguments: &[String]) -> Option<&'static str> {
        let _ = arguments;
        None
    }

    /// Whether it has a mode in which it cannot write ([`Session::read_only`]): tools that run in it change nothing in
    /// the folder.
    fn can_only_read(&self) -> bool {
        false
    }

    /// What ostler has decided with these arguments against the agent's own defaults, as text for a person.
    fn in_force(&self, argv: &[String]) -> Option<&'static str> {
        let _ = argv;
        None
    }

    /// Whether it reports in this mode, at the end of each turn, what the turn has cost.
    fn reports_cost(&self, mode: Mode) -> bool {
        let _ = mode;
        false
    }

    /// Whether it reports in this mode when a turn begins and ends.
    fn reports_turns(&self, mode: Mode) -> bool {
        mode == Mode::Headless
    }

    /// Files that it is started with, by name: they are put into the folder of the run.
    fn files(&self, request: &Launching<'_>) -> Vec<(&'static str, Vec<u8>)> {
        let _ = request;
        Vec::new()
    }
}

/// The input for [`Launcher::launch`].
pub struct Launching<'a> {
    pub session: &'a Session,
    /// Our own program, which contains the demo agent.
    pub own_binary: &'a str,
    /// The conversation to resume, or the id for a new one where the agent accepts one.
    pub native_id: &'a str,
    pub resume: bool,
    /// How long the remaining processes of a program may take to exit by themselves.
    pub linger_ms: u64,
    /// Looks up a variable of the environment that the agent will have.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The folder of the run.
    pub folder: &'a str,
    /// Reads a file that an argument names.
    pub file: &'a dyn Fn(&str) -> Option<String>,
    /// Whether the program that will be started knows this option, since newer versions have more options. Asks the
    /// program.
    pub knows: &'a dyn Fn(&str) -> bool,
}

impl Launching<'_> {
    /// What this start makes a copy of: only the first start of a forked session makes one.
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
    /// The id of the conversation, where it is known before the start.
    pub native_id: Option<String>,
    /// Variables that its environment needs in addition.
    pub variables: Vec<(String, String)>,
}

/// One process per turn: the message comes over standard input, where its length is not limited, followed by the end of
/// input.
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

/// In a terminal an agent is started like any other program.
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
