//! The command line, as it is typed: what every session has to do with is here, and what belongs to git, to jobs and to upkeep in a file
//! each. They hold nothing but these definitions, so that a person who adds a flag sees how the other commands name and describe theirs.

mod git;
mod jobs;
mod upkeep;

pub use git::*;
pub use jobs::*;
pub use upkeep::*;

use crate::dashes;
use crate::rules::RuleArgs;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Keeps coding-agent sessions: start agents, close the laptop, come back tomorrow.
#[derive(Parser)]
#[command(name = "ostler", version, max_term_width = 100, disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Subcommand)]
pub enum Command {
    /// Start a session and follow it to its end
    Run(Run),
    /// Give an agent turn after turn, until a check passes
    Loop(Loop),
    /// List sessions
    #[command(alias = "list", alias = "ps")]
    Ls(Ls),
    /// Open the dashboard: all sessions by what they need, live, with a key for each command
    #[command(
        after_help = "Keys: j k select, Enter attaches (Ctrl-\\ comes back), Space shows more, / filters, Tab goes to the next that needs you, a allows and x \
                            denies what it asks, r replies, n starts a session, ? lists all keys, q leaves. Sessions go on \
                            without it."
    )]
    Ui,
    /// List the known agents, where they are installed and what works with each
    Agents(Agents),
    /// Show one session in full
    Show(Show),
    /// List the processes that use a conversation, also those that ostler did not start
    Who(Who),
    /// Show the conversation, or what a command printed
    #[command(alias = "log")]
    Logs(Logs),
    /// Search all conversations, also those that were never started by ostler
    Search(Search),
    /// Wait until sessions have ended
    Wait(Wait),
    /// Send a message; it is delivered at the end of the running turn
    Send(Send),
    /// Answer what a session asks
    Answer(Answer),
    /// Show a session's screen and type into it; Ctrl-\ leaves it running
    Attach(Attach),
    /// End the running turn, keep the session
    Interrupt(Many),
    /// End a session properly: turn over, saved, nothing left running
    Stop(Stop),
    /// Give a session another name
    Rename(Rename),
    /// Continue the conversation of a session that has ended
    Resume(Resume),
    /// Take over a conversation that was started outside ostler
    Adopt(Adopt),
    /// Start a new session from a copy of a conversation
    Fork(Fork),
    /// Continue the work of a session with another agent
    Handover(Handover),
    /// Repair an agent's transcript: torn lines, tool calls without results, branches of two writers
    Repair(Repair),
    /// List the saved copies of a session's transcript, or restore one
    #[command(args_conflicts_with_subcommands = true)]
    Checkpoints(Checkpoints),
    /// Show what a session, or one of its turns, has changed, new files included
    Diff(Diff),
    /// Copy a session once per prompt, wait for all copies, and send their results back to it
    Fan(Fan),
    /// Work on the newest state of a branch, land what passes a check, and sleep until the branch moves
    Worker(Worker),
    /// Run the jobs of a file, each as soon as what it needs has succeeded
    Up(Up),
    /// Let another agent, which can only read, judge what a session has changed
    Review(Review),
    /// Bring the work of a session to its base branch, if a check passes
    Land(Land),
    /// Compare the sessions of a group: outcome, time, cost, changes, and what a check says
    Compare(Compare),
    /// Land the work of one session of a group and archive the others
    Pick(Land),
    /// Put files, and a copy of the conversation, back to the end of a turn
    Rewind(Rewind),
    /// Find the turn that broke something
    Bisect(Bisect),
    /// List the git worktrees of sessions, or remove them without losing work
    Worktree(Worktree),
    /// Archive sessions (stops those that still run)
    Archive(Archive),
    /// Restore archived sessions
    Restore(Many),
    /// Delete sessions permanently
    Purge(Purge),
    /// Show the disk space that sessions use, the largest first
    Du(Du),
    /// Show turns, time, tokens and cost by day, agent and folder, over all sessions
    Stats(Stats),
    /// Look for problems (damage, leftover processes, missing programs) and say what to do about each
    Doctor(Doctor),
    /// Try the ways of telling a person that are configured, or clear what could not be told
    Notify(Notify),
    /// Print everything that happens to every session, as JSON lines
    Events(Events),
    /// Replace the keepers of running sessions with this version of ostler
    Upgrade(Upgrade),
    /// Continue sessions that were meant to go on: after a reboot, or when all their processes were killed
    Recover(Recover),
    /// Have sessions continued at each login or boot, by a systemd user unit
    InstallService(InstallService),
    /// Explain a command, or a topic: exit-codes, ids, files, agents, config, jobs
    Help(Help),
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write all of them into a folder
    Man {
        /// Where to write them (default: print the first page)
        #[arg(value_name = "FOLDER")]
        folder: Option<PathBuf>,
    },
}

impl Command {
    /// What was typed, if it is one of the commands that are used most and all is well with it. To clap the definitions
    /// of all commands together are a tree that takes longer to build than most commands take to run; these few are looked
    /// at by themselves. Whatever else was typed, help and mistakes included, is for the whole tree.
    pub fn parse_fast(arguments: &[OsString]) -> Option<Command> {
        fn of<A: Args>(words: &[OsString]) -> Option<A> {
            let alone = A::augment_args(clap::Command::new("ostler"));
            A::from_arg_matches(&alone.try_get_matches_from(words).ok()?).ok()
        }
        let [_, words @ ..] = arguments else {
            return None;
        };
        match words.first()?.to_str()? {
            "run" => of(words).map(Command::Run),
            "ls" => of(words).map(Command::Ls),
            "show" => of(words).map(Command::Show),
            "wait" => of(words).map(Command::Wait),
            "send" => of(words).map(Command::Send),
            "search" => of(words).map(Command::Search),
            _ => None,
        }
    }
}

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
    /// Refuse to start when another session works in the same git tree
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
    /// Which model the agent should use
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
pub struct Ls {
    /// Also sessions that ended more than a day ago, and archived ones
    #[arg(short, long)]
    pub all: bool,
    /// Only sessions in the current folder or below it
    #[arg(long)]
    pub here: bool,
    /// Only sessions in this state, such as asking, working, idle or failed (may be repeated, or separated by commas)
    #[arg(long = "state", value_name = "STATE", value_delimiter = ',')]
    pub states: Vec<String>,
    /// Only sessions of this agent (may be repeated, or separated by commas)
    #[arg(long = "agent", value_name = "AGENT", value_delimiter = ',')]
    pub agents: Vec<String>,
    /// Only sessions with this label (if repeated: with all of them)
    #[arg(long = "label", value_name = "KEY[=VALUE]")]
    pub labels: Vec<String>,
    /// At most this many sessions
    #[arg(short = 'n', value_name = "N")]
    pub most: Option<usize>,
    /// The order
    #[arg(long, value_enum, default_value_t = Sort::Need)]
    pub sort: Sort,
    /// Redraw the list whenever something changes, until Ctrl-C
    #[arg(short, long)]
    pub watch: bool,
    /// List conversations that run outside ostler instead
    #[arg(long, conflicts_with_all = ["all", "here", "states", "agents", "labels", "most", "watch"])]
    pub foreign: bool,
    /// Print a JSON array
    #[arg(long)]
    pub json: bool,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Sort {
    /// First what needs an answer, then what runs, then what has ended; newest first
    #[default]
    Need,
    /// Newest first
    Created,
    /// Most recently active first
    Updated,
    /// By name or title
    Name,
    /// Most expensive first
    Cost,
}

#[derive(Args)]
pub struct Agents {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(after_help = "Exit codes: 0 done (also when no process uses it), 3 no such session or conversation.")]
pub struct Who {
    /// A session, or the agent's own id of a conversation
    #[arg(value_name = "ID|NATIVE-ID")]
    pub id: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct Show {
    /// Session id or name, the unique beginning of one, or @last
    pub id: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(
    after_help = "--since and --grep choose first, then -n takes the last lines of what is left. -f continues with what matches. \
                  Of an agent in a terminal the conversation is that of its transcript, over all runs of the session. \
                  What a program draws on a terminal has no times."
)]
pub struct Logs {
    /// Session id or name, the unique beginning of one, or @last (default: the only one, or a choice)
    pub id: Option<String>,
    /// Read a conversation that is not a session: ID is the agent's own id of it, or its transcript
    #[arg(long, requires = "id", conflicts_with_all = ["follow", "screen", "raw"])]
    pub foreign: bool,
    /// Continue with new output as it comes
    #[arg(short, long)]
    pub follow: bool,
    /// Print only the last N lines (of a command: of each of its two streams)
    #[arg(short = 'n', long = "lines", visible_alias = "tail", value_name = "N")]
    pub lines: Option<usize>,
    /// Print only what came after this time: an age such as 10m, a time such as 2026-11-16T08:30, or now
    #[arg(long, value_name = "T")]
    pub since: Option<String>,
    /// Print the time before each line, in UTC
    #[arg(short, long, conflicts_with = "raw")]
    pub timestamps: bool,
    /// Print only lines that match this regular expression; with --json, objects that have it in one of their texts
    #[arg(short, long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub grep: Option<String>,
    /// With --grep, ignore upper and lower case
    #[arg(short, long, requires = "grep")]
    pub ignore_case: bool,
    /// Of an agent in a terminal, print the text of its screen instead of the conversation
    #[arg(long, conflicts_with_all = ["raw", "json"])]
    pub screen: bool,
    /// The agent's own output, byte for byte
    #[arg(long)]
    pub raw: bool,
    /// Print one JSON object per message or tool call, with its time
    #[arg(long, conflicts_with = "raw")]
    pub json: bool,
}

#[derive(Args)]
#[command(
    after_help = "All words must be in one message. \"several words\" in quotes must stand next to each other, beg* is \
                        the beginning of a word, -word must not be there. Upper and lower case and accents do not \
                        matter. The newest messages come first.\n\n\
                        Exit codes: 0 found something, 1 found nothing, 2 wrong usage, 125 ostler itself failed."
)]
pub struct Search {
    /// What to search for
    #[arg(required = true, value_name = "WORDS", value_parser = dashes::unmarked)]
    pub words: Vec<String>,
    /// Only conversations of this agent (may be repeated, or separated by commas)
    #[arg(long = "agent", value_name = "AGENT", value_delimiter = ',')]
    pub agents: Vec<String>,
    /// Only messages after this time: an age such as 7d, or a time such as 2026-11-16
    #[arg(long, value_name = "T")]
    pub since: Option<String>,
    /// Only conversations in this folder or below it
    #[arg(long = "in", value_name = "FOLDER")]
    pub below: Option<PathBuf>,
    /// Only messages by a person, by the agent, or by its tools (may be repeated, or separated by commas)
    #[arg(long = "role", value_enum, value_name = "ROLE", value_delimiter = ',')]
    pub roles: Vec<Role>,
    /// Only sessions of ostler
    #[arg(long)]
    pub ours: bool,
    /// At most this many messages (default: 20, of each conversation 3)
    #[arg(long, value_name = "N")]
    pub most: Option<NonZeroUsize>,
    /// Print a JSON array
    #[arg(long)]
    pub json: bool,
}

/// By whom a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Role {
    /// A person
    User,
    /// The agent
    Agent,
    /// A tool call, and what came back
    Tool,
}

#[derive(Args)]
#[command(after_help = "Exit codes: 0 succeeded, 1 failed, 2 wrong usage, 3 no such session, 4 asks, 5 lost, \
                        6 stopped or interrupted, 8 ended but not proven saved, 124 --timeout passed.")]
pub struct Wait {
    /// Session ids or names, unique beginnings of them, or @last
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
    /// Return as soon as one of them is done
    #[arg(long)]
    pub any: bool,
    /// Give up after this long, with exit code 124
    #[arg(long, value_name = "T", conflicts_with = "poll")]
    pub timeout: Option<String>,
    /// Wait for this long; exit code 0 also when the session is still alive then
    #[arg(long, value_name = "T")]
    pub poll: Option<String>,
    /// What to wait for
    #[arg(long, value_enum, default_value_t = Until::Ended)]
    pub until: Until,
    /// Keep waiting while a session asks (default: a question ends the wait with exit code 4)
    #[arg(long)]
    pub through_questions: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Until {
    /// The end of the current or next turn
    Turn,
    /// A question
    Asking,
    /// The end of the session
    Ended,
}

#[derive(Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["message_word", "message_option", "list", "withdraw", "again"]))]
pub struct Send {
    /// Session id or name, the unique beginning of one, or @last
    pub id: String,
    #[command(flatten)]
    pub message: Message,
    /// Interrupt the running turn first
    #[arg(long)]
    pub now: bool,
    /// List the messages that are not delivered yet
    #[arg(long, conflicts_with_all = ["message_word", "message_option", "now", "withdraw"])]
    pub list: bool,
    /// Withdraw message N
    #[arg(long, value_name = "N", conflicts_with_all = ["message_word", "message_option", "now"])]
    pub withdraw: Option<u64>,
    /// Send message N again, which may have been delivered already
    #[arg(long, value_name = "N", conflicts_with_all = ["message_word", "message_option", "now", "withdraw", "list"])]
    pub again: Option<u64>,
    /// Wait for the end of the turn and print the reply
    #[arg(long, conflicts_with_all = ["list", "withdraw"])]
    pub wait: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(after_help = "Without --allow, --deny or --text, the question is shown and asked on the terminal.")]
pub struct Answer {
    /// Session id or name, the unique beginning of one, or @last (default: the only one, or a choice)
    pub id: Option<String>,
    /// Allow it
    #[arg(long, conflicts_with = "deny")]
    pub allow: bool,
    /// With --allow: also allow this kind for the rest of the run, as the agent proposes it (see ostler show)
    #[arg(long, requires = "allow", conflicts_with = "deny")]
    pub always: bool,
    /// Deny it
    #[arg(long)]
    pub deny: bool,
    /// The answer in words; with --deny, the reason for the agent
    #[arg(long)]
    pub text: Option<String>,
    /// The id of the question, if there are several
    #[arg(long, value_name = "REQUEST")]
    pub request: Option<String>,
}

#[derive(Args)]
#[command(after_help = "\
Ctrl-\\ detaches and leaves the session running (detach_key in config.toml). Pressed twice it goes to the \
program inside: that leaves an attach inside an attach.

A terminal session: what has scrolled off its screen is put into the scrollback of your terminal.

Keys in the chat:
  Enter                       send, or queue while the agent works
  Alt-Enter, Ctrl-J           new line
  Up, Down                    what was sent before
  Ctrl-A/E/W/U/K/Y, Alt-B/F/D edit as in a shell
  Ctrl-C                      clear the line, then end the turn
  PgUp, PgDn, wheel           scroll; Ctrl-Home, Ctrl-End: first and last
  Ctrl-O, Alt-O               unfold one tool call, all; Alt-Up, Alt-Down: choose one
  Ctrl-L, Ctrl-Z              draw again; suspend
  Shift and mouse             select text")]
pub struct Attach {
    /// Session id or name, the unique beginning of one, or @last (default: the only one, or a choice)
    pub id: Option<String>,
    /// Only show it; keys go nowhere
    #[arg(long)]
    pub read_only: bool,
}

#[derive(Args)]
pub struct Rename {
    /// Session id or name, the unique beginning of one, or @last
    pub id: String,
    /// The new name
    pub name: String,
}

#[derive(Args)]
pub struct Many {
    /// Session ids or names, unique beginnings of them, or @last
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
}

#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 ended and saved (or nothing to save), 3 no such session, 8 ended but not proven saved."
)]
pub struct Stop {
    /// Session ids or names, unique beginnings of them, or @last
    #[arg(value_name = "ID", required_unless_present_any = ["all", "here"])]
    pub ids: Vec<String>,
    /// Every running session
    #[arg(long, conflicts_with = "ids")]
    pub all: bool,
    /// Every running session in the current folder or below it
    #[arg(long, conflicts_with_all = ["ids", "all"])]
    pub here: bool,
    /// Let the running turn finish first
    #[arg(long, conflicts_with = "kill")]
    pub after_turn: bool,
    /// Kill it at once; unsaved work is lost
    #[arg(long)]
    pub kill: bool,
    /// How long it may take to end before it is killed
    #[arg(long, value_name = "T")]
    pub grace: Option<String>,
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
    /// The agent's own id of the conversation, the beginning of one, or the path of its transcript; without, pick one
    /// from a list
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
    /// In a terminal of its own, to attach to
    #[arg(short, long)]
    pub terminal: bool,
    /// Keep the agent for further messages when its turn is over
    #[arg(long)]
    pub keep: bool,
    /// First end the process that has the conversation open, with its last turn saved
    #[arg(long)]
    pub takeover: bool,
    /// A name to call it by
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Which model the agent should use
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// What goes to standard output; without, the conversation to a terminal and the final answer to a pipe
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
    pub id: String,
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

#[derive(Args)]
#[command(after_help = "Each line has at least: session, at (UTC), what. T is a time as in logs --since.")]
pub struct Events {
    /// Only these sessions: ids or names, unique beginnings of them, or @last
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Print only what happened after this time: an age such as 10m, a time such as 2026-11-16T08:30, or now
    #[arg(long, value_name = "T")]
    pub since: Option<String>,
    /// Continue with new events as they happen
    #[arg(short, long)]
    pub follow: bool,
}

#[derive(Args)]
pub struct Help {
    /// A command or a topic; "topics" lists these
    #[arg(value_name = "COMMAND|TOPIC")]
    pub topic: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_command_looked_at_by_itself_is_the_one_that_the_whole_tree_finds() {
        let run = words("ostler run -d --name x --label a=b claude fix -- --verbose -d");
        let whole = Cli::try_parse_from(&run).ok().and_then(|cli| cli.command);
        let [Some(Command::Run(alone)), Some(Command::Run(whole))] = [Command::parse_fast(&run), whole] else {
            unreachable!("both are a run");
        };
        let told = |run: Run| (run.words, run.arguments, run.detach, run.name, run.labels);
        assert_eq!(told(alone), told(whole));
    }

    #[test]
    fn help_mistakes_and_other_commands_are_for_the_whole_tree() {
        for line in ["ostler", "ostler --help", "ostler run --help", "ostler ls --no-such-flag", "ostler doctor"] {
            assert!(Command::parse_fast(&words(line)).is_none(), "{line}");
        }
    }
}
