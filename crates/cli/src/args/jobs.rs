//! Arguments of jobs and of what goes on between agents.

use super::{Message, Output};
use crate::dashes;
use clap::Args;
use std::num::NonZeroUsize;
use std::path::PathBuf;

#[derive(Args)]
#[command(
    override_usage = "ostler loop [OPTIONS] [AGENT] PROMPT [-- ARGS…]",
    after_help = "The loop ends when CMD exits with 0 or the agent's final message contains TEXT, and then exits with 0; with 1 when a \
                  limit ended it. An agent that writes <wait-for-user>QUESTION</wait-for-user> makes the loop ask: ostler answer ID \
                  --text \"…\" continues it. A turn whose process was killed is taken again and not counted.\n\n\
                  Ctrl-C stops it, Ctrl-\\ leaves it running. Exit codes: those of ostler wait."
)]
pub struct Loop {
    /// [AGENT] PROMPT: an agent's name, then what to do ("-" reads it from standard input)
    #[arg(value_name = "WORDS", num_args = 0.., value_parser = dashes::unmarked)]
    pub words: Vec<String>,
    /// More arguments for the agent
    #[arg(last = true, value_name = "ARGS")]
    pub arguments: Vec<String>,
    /// The prompt; it may begin with "-"
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: Option<String>,
    /// Read the prompt from a file
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Make a new prompt for each turn with this command; if it fails or prints nothing, the loop ends
    #[arg(long, value_name = "CMD", conflicts_with_all = ["prompt", "file"])]
    pub prompt_command: Option<String>,
    /// End when this command exits with 0; it runs after each turn, and the end of its output goes into the next prompt
    #[arg(long, value_name = "CMD")]
    pub until: Option<String>,
    /// End when the agent's final message contains this
    #[arg(long, value_name = "TEXT", default_value = ostler_jobs::looping::DONE)]
    pub until_text: String,
    /// At most this many turns
    #[arg(long, value_name = "N", default_value_t = ostler_jobs::looping::MAX, value_parser = clap::value_parser!(u32).range(1..))]
    pub max: u32,
    /// No further turn starts once this much was spent; a running one is interrupted at twice as much
    #[arg(long, value_name = "USD")]
    pub budget: Option<String>,
    /// Not longer than this, such as 90s, 10m or 2h; a running turn is stopped properly
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<String>,
    /// A new conversation for each turn (default)
    #[arg(long, conflicts_with = "same")]
    pub fresh: bool,
    /// One conversation for all turns
    #[arg(long)]
    pub same: bool,
    /// Work in a git worktree of its own, .worktrees/NAME on the new branch ostler/NAME (default: the name or id of the loop)
    #[arg(short = 'w', long, value_name = "NAME", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "not asked for, asked for, and asked for with a name")]
    pub worktree: Option<Option<String>>,
    /// The commit or branch that the worktree begins with (default: what is checked out)
    #[arg(long, value_name = "REF", requires = "worktree")]
    pub base: Option<String>,
    /// Run in the background: print the id and return once it has started
    #[arg(short, long)]
    pub detach: bool,
    /// Name of the loop
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Working folder (default: the current one)
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
    /// The model for the agent
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Each turn starts when this queue has a free slot; with --same, the conversation does (default: the queue "default")
    #[arg(long, value_name = "NAME", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "not asked for, asked for, and asked for with a name")]
    pub queue: Option<Option<String>>,
    /// Before those of a lower priority in the queue (default: 0)
    #[arg(long, value_name = "N", requires = "queue", allow_hyphen_values = true)]
    pub priority: Option<i32>,
    /// Label of the loop, for ls --label (may be repeated)
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub labels: Vec<String>,
}

#[derive(Args)]
#[command(
    after_help = "Continued are jobs (such as loops), sessions that were started with --restart, and those that wait: for a limit, a \
                  time, or a place in a queue. What a person has stopped and what has come to its own end stays ended. \
                  To have this done at each login or boot: ostler install-service."
)]
pub struct Recover {
    /// Only say which sessions would be continued
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Args)]
#[command(after_help = "At boot, before any login, systemd starts it for users that linger: loginctl enable-linger.")]
pub struct InstallService {
    /// Remove it again
    #[arg(long)]
    pub uninstall: bool,
}

#[derive(Args)]
#[command(
    after_help = "The copies know what the session knows, and work in its folder. The results come to the session as one message; one \
                  that has ended is continued with it.\n\n\
                  Exit codes: 0 all copies succeeded and the session has replied, 1 something failed, 2 wrong usage, 6 stopped."
)]
pub struct Fan {
    /// The session to copy
    pub id: String,
    /// What each copy is told
    #[arg(required = true, value_name = "PROMPT", value_parser = dashes::unmarked)]
    pub prompts: Vec<String>,
    /// Name of the job
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Run in the background: print the id and return
    #[arg(short, long)]
    pub detach: bool,
}

#[derive(Args)]
#[command(
    after_help = "Each FILE.md is one agent: its prompt, above it optional settings (agent, model) between lines ---. The first one \
                  begins; an answer with <next agent=\"NAME\"/> hands over to NAME.md. Each round has a git worktree of its own. Work that \
                  could not land stays there. Workers that were started together are not woken by each other's landings."
)]
pub struct Worker {
    /// The agents, one Markdown file each; the first one begins (default: .ostler/agents/*.md)
    #[arg(long, value_name = "FILE.md", num_args = 1..)]
    pub agents: Vec<PathBuf>,
    /// The branch that is worked on (default: main)
    #[arg(long, value_name = "BRANCH")]
    pub branch: Option<String>,
    /// Number of workers; with more than one, they run in the background
    #[arg(short = 'n', value_name = "N", default_value = "1")]
    pub number: NonZeroUsize,
    /// A command that must succeed in a worktree with the result before work lands
    #[arg(long, value_name = "CMD")]
    pub check: Option<String>,
    /// Run in the background: print the id and return
    #[arg(short, long)]
    pub detach: bool,
}

#[derive(Args)]
#[command(
    after_help = "The file says which jobs there are, and what each of them needs; ostler help jobs has an example. A job that fails \
                  stops what needs it and nothing else. The same command continues what was killed, and does not run again what has \
                  succeeded; a job that was changed in the file, and what needs it, is run again. --fresh runs everything again.\n\n\
                  Exit codes: 0 all jobs succeeded, 1 a job failed, 2 something in the file is wrong (nothing was started), 6 stopped, \
                  7 the file is already run with other jobs."
)]
pub struct Up {
    /// The file (default: ostler.toml)
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Only these jobs and what they need (may be repeated, or separated by commas)
    #[arg(long, value_name = "JOB", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Only print the plan
    #[arg(long)]
    pub dry_run: bool,
    /// Follow it as a table with a line for each job
    #[arg(long, conflicts_with = "detach")]
    pub watch: bool,
    /// Run all of it again, also what has succeeded before
    #[arg(long)]
    pub fresh: bool,
    /// Run in the background: print the id and return
    #[arg(short, long)]
    pub detach: bool,
}

#[derive(Args)]
#[command(
    after_help = "The agent gets the task and the changes, and must end with a verdict: pass, fail or unsure, with findings by file \
                  and line. Without a valid verdict, or when the tree was changed meanwhile, the verdict is unsure. ostler show has the \
                  verdicts of a session.\n\n\
                  Exit codes: 0 pass, 1 fail or unsure, 2 wrong usage, 4 the agent asks something."
)]
pub struct Review {
    /// The session whose changes are judged; it needs a worktree
    pub id: String,
    /// The agent that judges them (default: the agent of the session, in a new conversation)
    #[arg(long, value_name = "AGENT")]
    pub by: Option<String>,
    /// What the agent is told to look for, from a file; the task, the changes and the form of the verdict are always added
    #[arg(long, value_name = "FILE")]
    pub prompt: Option<PathBuf>,
    /// Print the verdict as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(
    after_help = "The other agent gets the conversation, shortened if it is long (the newest part and the first message \
                  are kept, tool calls are one line each), and the state of the tree. It works in the same folder. The \
                  original is not changed; ostler show lists both as a family. Exit codes: as for run."
)]
pub struct Handover {
    /// The session whose work continues
    pub id: String,
    /// The agent that continues it
    #[arg(long, value_name = "AGENT")]
    pub to: String,
    #[command(flatten)]
    pub message: Message,
    /// Run in the background: print the new id and return once the agent has started
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
    /// The model for the agent
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Format of standard output (default: the conversation on a terminal, the final answer in a pipe)
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "detach")]
    pub output: Option<Output>,
}

#[derive(Args)]
#[command(
    after_help = "A check runs in a temporary worktree with what each session has in its own; one that is at work is not checked. \
                        Exit codes: 0 compared, 3 no such group."
)]
pub struct Compare {
    /// The group, by its name or its job
    #[arg(value_name = "GROUP")]
    pub group: String,
    /// A shell command that has to succeed in each
    #[arg(long, value_name = "CMD")]
    pub check: Option<String>,
    /// Print a JSON array
    #[arg(long)]
    pub json: bool,
}
