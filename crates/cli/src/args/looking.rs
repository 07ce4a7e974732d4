//! The flags of the commands that only look: ls, show, logs, search, wait, events and the like.

use crate::dashes;
use clap::Args;
use std::num::NonZeroUsize;
use std::path::PathBuf;

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
    /// Print only lines that match this regular expression; with --json, objects in which any text matches
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
    after_help = "All words must be in one message. \"several words\" in quotes must be next to each other, beg* is \
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
