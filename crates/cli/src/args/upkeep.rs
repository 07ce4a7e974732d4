//! Arguments of what keeps a machine in order, and of what sessions have used.

use clap::{Args, Subcommand};

#[derive(Args)]
pub struct Archive {
    /// Session ids or names, unique beginnings of them, or @last
    #[arg(value_name = "ID", required_unless_present = "idle")]
    pub ids: Vec<String>,
    /// All sessions that have ended or been idle for this long, such as 7d
    #[arg(long, value_name = "T", conflicts_with = "ids")]
    pub idle: Option<String>,
}

#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 nothing to repair, or repaired; 1 cannot be repaired, or with --dry-run something to repair; \
                        3 no such transcript; 7 a process is using the conversation."
)]
pub struct Repair {
    /// A session, an agent's transcript file, or the agent's own id of a conversation
    #[arg(value_name = "ID|FILE")]
    pub id: String,
    /// Only say what would be repaired
    #[arg(long)]
    pub dry_run: bool,
    /// Split what two processes wrote at once into two conversations
    #[arg(long)]
    pub split: bool,
}

#[derive(Args)]
pub struct Purge {
    /// Ended or archived sessions
    #[arg(value_name = "ID", required_unless_present = "archived")]
    pub ids: Vec<String>,
    /// All archived sessions
    #[arg(long, conflicts_with = "ids")]
    pub archived: bool,
    /// Only those that ended longer ago than this
    #[arg(long, value_name = "T")]
    pub older_than: Option<String>,
    /// Only say what would be deleted
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Args)]
pub struct Du {
    /// Only these sessions
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// List all of them, not only the largest
    #[arg(long)]
    pub all: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(
    after_help = "Archived sessions count as well, deleted ones do not. TIME is how long turns took, without the time in which a \
                  person was asked; of a command, how long it ran. An agent that does not say what it used counts with its \
                  turns and its time."
)]
pub struct Stats {
    /// Count only what came after this time: an age such as 7d, or a time such as 2026-11-16 (default: 30d)
    #[arg(long, value_name = "T")]
    pub since: Option<String>,
    /// Count everything since the first session
    #[arg(short, long, conflicts_with = "since")]
    pub all: bool,
    /// Print only this table, with all its rows
    #[arg(long, value_enum)]
    pub by: Option<By>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What sums are made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// The day on which a turn ended, in local time
    Day,
    /// The agent
    Agent,
    /// The folder in which a session works
    Folder,
}

impl By {
    pub const ALL: [By; 3] = [By::Day, By::Agent, By::Folder];

    pub fn word(self) -> &'static str {
        match self {
            By::Day => "day",
            By::Agent => "agent",
            By::Folder => "folder",
        }
    }
}

#[derive(Args)]
pub struct Doctor {
    /// Fix what is safe to fix, and say what was done
    #[arg(long)]
    pub fix: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct Upgrade {
    /// Only these sessions
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "LAST MESSAGE is the last one in that copy; › marks a person's. A time from the list, its beginning, an age \
                        such as 10m, or last says which one to restore."
)]
pub struct Checkpoints {
    #[command(subcommand)]
    pub action: Option<CheckpointsAction>,
    /// Session id or name, the unique beginning of one, or @last
    pub id: Option<String>,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Notify {
    #[command(subcommand)]
    pub action: NotifyAction,
}

#[derive(Debug, Subcommand)]
pub enum NotifyAction {
    /// Send one notification each way that is configured, and say what arrived
    Test,
    /// Drop notifications that wait or could not be sent
    Clear,
}

#[derive(Debug, Subcommand)]
pub enum CheckpointsAction {
    /// Replace the transcript with one of the copies; the replaced file is kept as a backup
    Restore {
        /// Session id or name, the unique beginning of one, or @last
        id: String,
        /// A time from the list (or its beginning), an age such as 10m, or last
        time: String,
    },
}
