//! The command line, as it is typed.

use crate::dashes;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
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
    /// List sessions
    #[command(alias = "list", alias = "ps")]
    Ls(Ls),
    /// List the agents that ostler knows, where they are and what works with them
    Agents(Agents),
    /// Show one session in full
    Show(Show),
    /// Name every process that holds a conversation, also those that ostler did not start
    Who(Who),
    /// Show the conversation, or what a command printed
    #[command(alias = "log")]
    Logs(Logs),
    /// Wait until sessions have ended
    Wait(Wait),
    /// Send a message; it is delivered at the end of the running turn
    Send(Send),
    /// Answer what a session asks
    Answer(Answer),
    /// Show a session's screen and type into it; Ctrl-\ leaves it running
    Attach(Attach),
    /// End the running turn, keep the session
    Interrupt(One),
    /// End a session properly: turn over, saved, nothing left running
    Stop(Stop),
    /// Give a session another name
    Rename(Rename),
    /// Go on with the conversation of a session that has ended
    Resume(Resume),
    /// Start a session that begins as a copy of a conversation and goes its own way
    Fork(Fork),
    /// Mend an agent's transcript: torn lines, calls without results, branches of two writers
    Repair(Repair),
    /// The copies of a session's transcript taken while it worked; put one back
    #[command(args_conflicts_with_subcommands = true)]
    Checkpoints(Checkpoints),
    /// Put ended sessions away (ends those that run)
    Archive(Archive),
    /// Bring archived sessions back
    Restore(Many),
    /// Delete sessions for good
    Purge(Purge),
    /// What sessions use on the disk, the largest first
    Du(Du),
    /// Look for orphans, damage and missing pieces, and say what to do about each
    Doctor(Doctor),
    /// Everything that happens to every session, as JSON lines
    Events(Events),
    /// Replace the keepers of running sessions by those of this binary
    Upgrade(Upgrade),
    /// Explain a command, or a topic: exit-codes, ids, files, agents, config
    Help(Help),
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write all of them into a folder
    Man {
        /// Where to write them; without, the first page is printed
        #[arg(value_name = "FOLDER")]
        folder: Option<PathBuf>,
    },
}

impl Command {
    /// What was typed, if it is one of the commands that are used most and all is well with it. To clap the definitions
    /// of all commands together are a tree that takes longer to build than most commands take to run; these few are looked
    /// at by themselves. Whatever else was typed, help and mistakes included, is for the whole tree.
    pub fn named_alone(arguments: &[OsString]) -> Option<Command> {
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
            _ => None,
        }
    }
}

#[derive(Args)]
#[command(
    override_usage = "ostler run [OPTIONS] [AGENT] [PROMPT] [-- ARGS…]\n       ostler run [OPTIONS] -- COMMAND…",
    after_help = "A quoted prompt may begin with \"-\" when there is white space in it; any other goes behind -p. What is \
                  piped in is added to the prompt: git diff | ostler run claude \"review this\".\n\n\
                  Exit codes: 0 succeeded, 1 failed, 2 wrong usage, 4 asks, 5 lost, 6 stopped or interrupted, \
                  7 refused, 8 not proven saved, 125 ostler itself failed."
)]
pub struct Run {
    /// [AGENT] [PROMPT]: an agent's name or replay:FILE, then what to do ("-" reads it from standard input)
    #[arg(value_name = "WORDS", num_args = 0.., value_parser = dashes::unmarked)]
    pub words: Vec<String>,
    /// A command to keep; or, behind an agent, further arguments for it
    #[arg(last = true, value_name = "ARGS")]
    pub arguments: Vec<String>,
    /// The prompt, also one that begins with "-"
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: Option<String>,
    /// Print the id and return once the program runs
    #[arg(short, long)]
    pub detach: bool,
    /// In a terminal of its own, to attach to
    #[arg(short, long)]
    pub terminal: bool,
    /// Keep the agent for further messages when its turn is over
    #[arg(long)]
    pub keep: bool,
    /// A name to call it by
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Where it works
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
    /// Which model the agent should use
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Read the prompt from a file
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// key=value, for finding it again (may be repeated)
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub labels: Vec<String>,
    /// What goes to standard output; without, the conversation to a terminal and the final answer to a pipe
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "detach")]
    pub output: Option<Output>,
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// What a followed session writes to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// The final answer and nothing else
    Text,
    /// One JSON object at the end: that of `show --json`, with the answer
    Json,
    /// One JSON object per line as things happen (as in `logs --json`), then the result
    StreamJson,
}

/// What an agent is told, as a word or as an option.
#[derive(Args)]
pub struct Message {
    /// What to tell it ("-" reads from standard input)
    #[arg(id = "message_word", value_name = "MESSAGE", value_parser = dashes::unmarked)]
    pub word: Option<String>,
    /// The message, also one that begins with "-"
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
#[derive(Args)]
pub struct LimitArgs {
    /// At most this much memory, such as 2G; a process that would exceed it is killed
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// At most so many processors, such as 1.5
    #[arg(long, value_name = "N")]
    pub cpus: Option<String>,
    /// At most so many processes and threads at a time
    #[arg(long, value_name = "N")]
    pub processes: Option<String>,
}

#[derive(Args)]
pub struct Ls {
    /// Also those that ended more than a day ago, and archived ones
    #[arg(short, long)]
    pub all: bool,
    /// Only those that work in this folder or below it
    #[arg(long)]
    pub here: bool,
    /// Only those in this state, such as asking, working, idle or failed (may be repeated, or separated by commas)
    #[arg(long = "state", value_name = "STATE", value_delimiter = ',')]
    pub states: Vec<String>,
    /// Only those of this agent (may be repeated, or separated by commas)
    #[arg(long = "agent", value_name = "AGENT", value_delimiter = ',')]
    pub agents: Vec<String>,
    /// Only those with this label (may be repeated: all of them)
    #[arg(long = "label", value_name = "KEY[=VALUE]")]
    pub labels: Vec<String>,
    /// At most so many
    #[arg(short = 'n', value_name = "N")]
    pub most: Option<usize>,
    /// Which come first
    #[arg(long, value_enum, default_value_t = Sort::Need)]
    pub sort: Sort,
    /// Show the list again whenever something changes, until Ctrl-C
    #[arg(short, long)]
    pub watch: bool,
    /// Instead, conversations that run outside ostler
    #[arg(long, conflicts_with_all = ["all", "here", "states", "agents", "labels", "most", "watch"])]
    pub foreign: bool,
    /// Print JSON, one array
    #[arg(long)]
    pub json: bool,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Sort {
    /// What needs you, then what runs, then what has ended; the newest first
    #[default]
    Need,
    /// The newest first
    Created,
    /// Where something happened last
    Updated,
    /// By name or title
    Name,
    /// The most expensive first
    Cost,
}

#[derive(Args)]
pub struct Agents {
    /// As JSON, for programs
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(after_help = "Exit codes: 0 looked, 3 neither a session nor a conversation.")]
pub struct Who {
    /// A session, or the agent's own name for a conversation
    #[arg(value_name = "ID|NATIVE-ID")]
    pub id: String,
    /// As JSON, for programs
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct Show {
    /// Id, unique beginning of one, name, or @last
    pub id: String,
    /// As JSON, for programs
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct Logs {
    /// Id, unique beginning of one, name, or @last; without, the only session there is, or one picked from a list
    pub id: Option<String>,
    /// Go on as it grows
    #[arg(short, long)]
    pub follow: bool,
    /// The agent's own bytes, unchanged
    #[arg(long)]
    pub raw: bool,
    /// One JSON object per thing said
    #[arg(long, conflicts_with = "raw")]
    pub json: bool,
}

#[derive(Args)]
#[command(after_help = "Exit codes: 0 succeeded, 1 failed, 2 wrong usage, 3 no such session, 4 asks, 5 lost, \
                        6 stopped or interrupted, 8 not proven saved, 124 time is up.")]
pub struct Wait {
    /// Ids, unique beginnings of them, names, or @last
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
    /// Return when the first of them is there
    #[arg(long)]
    pub any: bool,
    /// Give up after this long, with 124
    #[arg(long, value_name = "T", conflicts_with = "poll")]
    pub timeout: Option<String>,
    /// Look for this long: 0 also when it is alive and well then
    #[arg(long, value_name = "T")]
    pub poll: Option<String>,
    /// What to wait for
    #[arg(long, value_enum, default_value_t = Until::Ended)]
    pub until: Until,
    /// Wait on while a session asks; without, a question ends the wait with 4
    #[arg(long)]
    pub through_questions: bool,
    /// As JSON, for programs
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Until {
    /// The end of the turn that runs or waits
    Turn,
    /// A question
    Asking,
    /// The end of the session
    Ended,
}

#[derive(Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["message_word", "message_option", "list", "withdraw", "again"]))]
pub struct Send {
    /// Id, unique beginning of one, name, or @last
    pub id: String,
    #[command(flatten)]
    pub message: Message,
    /// Interrupt the running turn first
    #[arg(long)]
    pub now: bool,
    /// Show the messages that still wait
    #[arg(long, conflicts_with_all = ["message_word", "message_option", "now", "withdraw"])]
    pub list: bool,
    /// Take message N back
    #[arg(long, value_name = "N", conflicts_with_all = ["message_word", "message_option", "now"])]
    pub withdraw: Option<u64>,
    /// Give message N, which may have been delivered, once more
    #[arg(long, value_name = "N", conflicts_with_all = ["message_word", "message_option", "now", "withdraw", "list"])]
    pub again: Option<u64>,
    /// Wait for the end of its turn and print the reply
    #[arg(long, conflicts_with_all = ["list", "withdraw"])]
    pub wait: bool,
    /// As JSON, for programs
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(after_help = "Without --allow, --deny or --text the question is shown and asked on the terminal.")]
pub struct Answer {
    /// Id, unique beginning of one, name, or @last; without, the only session there is, or one picked from a list
    pub id: Option<String>,
    /// Yes
    #[arg(long, conflicts_with = "deny")]
    pub allow: bool,
    /// With --allow: and this kind for the rest of the run, as the agent proposes it (ostler show says what that is)
    #[arg(long, requires = "allow", conflicts_with = "deny")]
    pub always: bool,
    /// No
    #[arg(long)]
    pub deny: bool,
    /// In words; with --deny the reason that the agent is given
    #[arg(long)]
    pub text: Option<String>,
    /// Which question, when there are several
    #[arg(long, value_name = "REQUEST")]
    pub request: Option<String>,
}

#[derive(Args)]
pub struct Attach {
    /// Id, unique beginning of one, name, or @last; without, the only session there is, or one picked from a list
    pub id: Option<String>,
    /// Only look
    #[arg(long)]
    pub read_only: bool,
}

#[derive(Args)]
pub struct Rename {
    /// Id, unique beginning of one, name, or @last
    pub id: String,
    /// What to call it from now on
    pub name: String,
}

#[derive(Args)]
pub struct One {
    /// Id, unique beginning of one, name, or @last
    pub id: String,
}

#[derive(Args)]
pub struct Many {
    /// Ids, unique beginnings of them, names, or @last
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
}

#[derive(Args)]
pub struct Archive {
    /// Ids, unique beginnings of them, names, or @last
    #[arg(value_name = "ID", required_unless_present = "idle")]
    pub ids: Vec<String>,
    /// Instead, every session that has ended or been idle for this long, such as 7d
    #[arg(long, value_name = "T", conflicts_with = "ids")]
    pub idle: Option<String>,
}

#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 ended and saved (or nothing to save), 3 no such session, 8 ended but not proven saved."
)]
pub struct Stop {
    /// Ids, unique beginnings of them, names, or @last
    #[arg(value_name = "ID", required_unless_present_any = ["all", "here"])]
    pub ids: Vec<String>,
    /// Every session that runs
    #[arg(long, conflicts_with = "ids")]
    pub all: bool,
    /// Every session that runs in this folder or below it
    #[arg(long, conflicts_with_all = ["ids", "all"])]
    pub here: bool,
    /// Let the running turn finish first
    #[arg(long, conflicts_with = "kill")]
    pub after_turn: bool,
    /// At once; what was not saved is lost
    #[arg(long)]
    pub kill: bool,
    /// How long it may take before it is killed
    #[arg(long, value_name = "T")]
    pub grace: Option<String>,
}

#[derive(Args)]
#[command(after_help = "Exit codes: as for run; 7 when a process still holds the conversation.")]
pub struct Resume {
    /// Which session; without, the newest ones are offered
    pub id: Option<String>,
    #[command(flatten)]
    pub message: Message,
    /// Print the id and return once the agent runs
    #[arg(short, long)]
    pub detach: bool,
    /// Keep the agent for further messages when its turn is over
    #[arg(long)]
    pub keep: bool,
    /// End whoever holds the conversation properly first
    #[arg(long)]
    pub takeover: bool,
    /// What goes to standard output; without, the conversation to a terminal and the final answer to a pipe
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "detach")]
    pub output: Option<Output>,
}

#[derive(Args)]
#[command(after_help = "The original is not touched, and may be at work. Exit codes: as for run.")]
pub struct Fork {
    /// Whose conversation
    pub id: String,
    #[command(flatten)]
    pub message: Message,
    /// Print the new id and return once the agent runs
    #[arg(short, long)]
    pub detach: bool,
    /// Keep the agent for further messages when its turn is over
    #[arg(long)]
    pub keep: bool,
    /// A name to call it by
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// What goes to standard output; without, the conversation to a terminal and the final answer to a pipe
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "detach")]
    pub output: Option<Output>,
}

#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 nothing to mend, or mended; 1 beyond mending, or with --dry-run something to mend; \
                        3 no such transcript; 7 a process holds the conversation."
)]
pub struct Repair {
    /// A session, a transcript of claude, codex or gemini, or the agent's own name for a conversation
    #[arg(value_name = "ID|FILE")]
    pub id: String,
    /// Only say what is wrong
    #[arg(long)]
    pub dry_run: bool,
    /// What two processes wrote at once becomes two conversations instead of one
    #[arg(long)]
    pub split: bool,
}

#[derive(Args)]
pub struct Purge {
    /// Ended or archived sessions
    #[arg(value_name = "ID", required_unless_present = "archived")]
    pub ids: Vec<String>,
    /// Everything that is archived
    #[arg(long, conflicts_with = "ids")]
    pub archived: bool,
    /// Of these, only what ended longer ago than this
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
    /// Each of them, not only the largest
    #[arg(long)]
    pub all: bool,
    /// As JSON, for programs
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct Doctor {
    /// Mend what is safe to mend, and say each thing that was done
    #[arg(long)]
    pub fix: bool,
    /// As JSON, for programs
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(after_help = "Each line has at least: session, at (UTC), what. T is a time as in logs --since.")]
pub struct Events {
    /// Only of these sessions: ids, unique beginnings of them, names, or @last
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Only from this time on: an age such as 10m, a time such as 2026-11-16T08:30, or now
    #[arg(long, value_name = "T")]
    pub since: Option<String>,
    /// Go on as things happen
    #[arg(short, long)]
    pub follow: bool,
}

#[derive(Args)]
pub struct Help {
    /// A command or a topic; "topics" lists these
    #[arg(value_name = "COMMAND|TOPIC")]
    pub topic: Option<String>,
}

#[derive(Args)]
pub struct Upgrade {
    /// Only these sessions
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Checkpoints {
    #[command(subcommand)]
    pub action: Option<CheckpointsAction>,
    /// Id, unique prefix, name, or @last
    pub id: Option<String>,
    /// One JSON object per line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum CheckpointsAction {
    /// Put a copy in the place of the transcript; what was there is kept beside it
    Restore {
        /// Id, unique prefix, name, or @last
        id: String,
        /// A time from the list (or its beginning), an age such as 10m, or last
        time: String,
    },
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
        let [Some(Command::Run(alone)), Some(Command::Run(whole))] = [Command::named_alone(&run), whole] else {
            unreachable!("both are a run");
        };
        let told = |run: Run| (run.words, run.arguments, run.detach, run.name, run.labels);
        assert_eq!(told(alone), told(whole));
    }

    #[test]
    fn help_mistakes_and_other_commands_are_for_the_whole_tree() {
        for line in ["ostler", "ostler --help", "ostler run --help", "ostler ls --no-such-flag", "ostler doctor"] {
            assert!(Command::named_alone(&words(line)).is_none(), "{line}");
        }
    }
}
