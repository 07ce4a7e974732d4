//! The flags of the commands that begin a run: run, resume, adopt, fork.

use super::WorktreeArgs;
use crate::dashes;
use crate::rules::RuleArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Default)]
#[command(
    override_usage = "ostler run [OPTIONS] [AGENT] [PROMPT] [-- ARGS…]\n       ostler run [OPTIONS] -- COMMAND…",
    after_help = "A quoted prompt that contains a space may begin with \"-\"; any other such prompt needs -p. What is \
                  piped in is added to the prompt: git diff | ostler run AGENT \"review this\".\n\n\
                  Exit codes: 0 succeeded, 1 failed, 2 wrong usage, 4 asks, 5 lost, 6 stopped or interrupted, \
                  7 refused, 8 ended but not proven saved, 125 ostler itself failed."
)]
pub struct Run {
    /// [AGENT] [PROMPT]: an agent's name or replay:FILE, then what to do ("-" reads it from standard input)
    #[arg(value_name = "WORDS", num_args = 0.., value_parser = dashes::unmarked)]
    pub words: Vec<String>,
    /// A command to keep; after an agent: more arguments for it
    #[arg(last = true, value_name = "ARGS")]
    pub arguments: Vec<String>,
    /// The prompt; it may begin with "-"
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: Option<String>,
    /// Run in the background: print the id and return once the program has started
    #[arg(short, long)]
    pub detach: bool,
    /// Run it in its own terminal, to attach to
    #[arg(short, long)]
    pub terminal: bool,
    /// Keep the agent running for more messages after its turn
    #[arg(long)]
    pub keep: bool,
    /// Name of the session
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Working folder (default: the current one)
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
    /// Work in a git worktree of its own, .worktrees/NAME on the new branch ostler/NAME (default: the session's name or id)
    #[arg(short = 'w', long, value_name = "NAME", num_args = 0..=1, group = "own-tree")]
    #[expect(clippy::option_option, reason = "not asked for, asked for, and asked for with a name")]
    pub worktree: Option<Option<String>>,
    /// The commit or branch that the worktree begins with (default: what is checked out)
    #[arg(long, value_name = "REF", requires = "own-tree")]
    pub base: Option<String>,
    /// Start a group: one session per agent, each in its own worktree, AGENT:2 for two of them (see ostler compare)
    #[arg(long, value_name = "AGENT[:N],…", group = "own-tree", conflicts_with_all = ["terminal", "output", "exclusive"])]
    pub on: Option<String>,
    /// Start a group: all combinations of the axes in a TOML file (agent, model, prompt, and any key for {{key}} in the prompt)
    #[arg(long, value_name = "FILE", group = "own-tree", conflicts_with_all = ["on", "terminal", "output", "exclusive"])]
    pub matrix: Option<PathBuf>,
    /// Refuse to start when another agent is open in the same git tree
    #[arg(long, conflicts_with = "worktree")]
    pub exclusive: bool,
    /// Start when this queue has a free slot; until then the session is queued (default: the queue "default"; see ostler help config)
    #[arg(long, value_name = "NAME", num_args = 0..=1, help_heading = "Start later")]
    #[expect(clippy::option_option, reason = "not asked for, asked for, and asked for with a name")]
    pub queue: Option<Option<String>>,
    /// Before those of a lower priority in the queue (default: 0)
    #[arg(long, value_name = "N", requires = "queue", allow_hyphen_values = true, help_heading = "Start later")]
    pub priority: Option<i32>,
    /// Start at this time: 15:00, "tomorrow 9:00", 2026-11-18T09:00, or +2h
    #[arg(long, value_name = "TIME", help_heading = "Start later")]
    pub at: Option<String>,
    /// Start when this session has succeeded, or has ended as OUTCOME (may be repeated)
    #[arg(long, value_name = "ID[=OUTCOME]", help_heading = "Start later")]
    pub after: Vec<String>,
    /// The model for the agent
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Read the prompt from a file
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Label of the session, for ls --label (may be repeated)
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub labels: Vec<String>,
    /// Format of standard output (default: the conversation on a terminal, the final answer in a pipe)
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "detach")]
    pub output: Option<Output>,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub rules: RuleArgs,
}

/// What a followed session writes to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// The final answer and nothing else
    Text,
    /// One JSON object at the end: that of `show --json`, with the answer
    Json,
    /// Print one JSON object per line as things happen (as in `logs --json`), then the result
    StreamJson,
}

/// What an agent is told, as a word or as an option.
#[derive(Args)]
pub struct Message {
    /// The message ("-" reads it from standard input)
    #[arg(id = "message_word", value_name = "MESSAGE", value_parser = dashes::unmarked)]
    pub word: Option<String>,
    /// The message; it may begin with "-"
    #[arg(
        id = "message_option",
        short = 'm',
        long = "message",
        short_alias = 'p',
        alias = "prompt",
        value_name = "TEXT",
        allow_hyphen_values = true,
        conflicts_with = "message_word"
    )]
    pub option: Option<String>,
}

/// What a session may use at most, all of its processes together.
#[derive(Args, Default)]
pub struct LimitArgs {
    /// At most this much memory, such as 2G; a process that would exceed it is killed
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// At most this many processors, such as 1.5
    #[arg(long, value_name = "N")]
    pub cpus: Option<String>,
    /// At most this many processes and threads at a time
    #[arg(long, value_name = "N")]
    pub processes: Option<String>,
}

impl LimitArgs {
    pub fn asked(&self) -> ostler_engine::limits::Asked {
        let LimitArgs { memory, cpus, processes } = self;
        ostler_engine::limits::Asked { memory: memory.clone(), cpus: cpus.clone(), processes: processes.clone() }
    }
}

#[derive(Args)]
#[command(
    after_help = "A resumed session keeps its limits, unless others are given; none lifts one (--timeout none). What is spent and how many \
                  turns it had count on; when they are used up, resume is refused until a new --budget or --max-turns is given, which \
                  counts from then.\n\n\
                  Exit codes: as for run; 7 when another process is using the conversation."
)]
pub struct Resume {
    /// The session (default: a choice of the newest)
    pub id: Option<String>,
    #[command(flatten)]
    pub message: Message,
    /// Run in the background: print the id and return once the agent has started
    #[arg(short, long)]
    pub detach: bool,
    /// Keep the agent running for more messages after its turn
    #[arg(long)]
    pub keep: bool,
    /// First end the process that is using the conversation, properly
    #[arg(long)]
    pub takeover: bool,
    /// Have a session that waits for a usage limit or a restart continue at once
    #[arg(long, conflicts_with_all = ["message_word", "message_option", "keep", "takeover", "detach", "output", "queue"])]
    pub now: bool,
    /// Start when this queue has a free slot; until then the session is queued (see ostler help config)
    #[arg(long, value_name = "NAME")]
    pub queue: Option<String>,
    /// Before those of a lower priority in the queue (default: 0)
    #[arg(long, value_name = "N", requires = "queue", allow_hyphen_values = true)]
    pub priority: Option<i32>,
    #[command(flatten)]
    pub worktree: WorktreeArgs,
    /// Format of standard output (default: the conversation on a terminal, the final answer in a pipe)
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "detach")]
    pub output: Option<Output>,
    #[command(flatten)]
    pub rules: RuleArgs,
}

#[derive(Args)]
#[command(
    override_usage = "ostler adopt [OPTIONS] [CONVERSATION] [MESSAGE] [-- ARGS…]",
    after_help = "Adopting starts nothing by itself and costs nothing: the conversation becomes a session that ls, show, logs and \
                  resume know. With a MESSAGE the agent continues it; without one it opens at a terminal; \
                  with -d, or in a script, nothing is started unless --keep or -t is given.\n\n\
                  Exit codes: as for run; 2 ambiguous id, 3 no such conversation, 7 a process or a session has it already."
)]
pub struct Adopt {
    /// The agent's own id of the conversation, the beginning of one, or the path of its transcript (default: a choice of
    /// the newest)
    #[arg(value_name = "CONVERSATION")]
    pub conversation: Option<String>,
    #[command(flatten)]
    pub message: Message,
    /// Further arguments for the agent
    #[arg(last = true, value_name = "ARGS")]
    pub arguments: Vec<String>,
    /// Print the id and return
    #[arg(short, long)]
    pub detach: bool,
    /// Run it in its own terminal, to attach to
    #[arg(short, long)]
    pub terminal: bool,
    /// Keep the agent running for more messages after its turn
    #[arg(long)]
    pub keep: bool,
    /// First end the process that has the conversation open, with its last turn saved
    #[arg(long)]
    pub takeover: bool,
    /// Name of the session
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The model for the agent
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Format of standard output (default: the conversation on a terminal, the final answer in a pipe)
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "detach")]
    pub output: Option<Output>,
    #[command(flatten)]
    pub limits: LimitArgs,
}

#[derive(Args)]
#[command(
    after_help = "The original is not changed, and may be running. With --worktree the copy begins with the files of the original's own \
                        worktree as they are, committed or not. Exit codes: as for run."
)]
pub struct Fork {
    /// The session to copy
    pub id: Option<String>,
    #[command(flatten)]
    pub message: Message,
    /// Run in the background: print the new id and return once the agent has started
    #[arg(short, long)]
    pub detach: bool,
    /// Keep the agent running for more messages after its turn
    #[arg(long)]
    pub keep: bool,
    /// Name of the session
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub worktree: WorktreeArgs,
    /// Format of standard output (default: the conversation on a terminal, the final answer in a pipe)
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "detach")]
    pub output: Option<Output>,
}
