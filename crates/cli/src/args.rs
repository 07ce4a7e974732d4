//! The command line: the list of commands, and in one file for each kind the flags that they take. These files hold nothing but
//! definitions, so that a person who adds a flag sees how the other commands name and describe theirs.

mod acting;
mod git;
mod jobs;
mod looking;
mod starting;
mod upkeep;

pub use acting::*;
pub use git::*;
pub use jobs::*;
pub use looking::*;
pub use starting::*;
pub use upkeep::*;

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
    /// Give an agent turn after turn, until a check passes
    Loop(Loop),
    /// List sessions
    #[command(alias = "list", alias = "ps")]
    Ls(Ls),
    /// Open the dashboard: all sessions by what they need, live, with a key for each command
    #[command(
        after_help = "Keys: j k select, Enter attaches (Ctrl-\\ comes back), Space shows more, / filters, Tab goes to the next that needs you, a allows and x \
                            denies what it asks, r replies, n starts a session, ? lists all keys, q quits. Sessions keep \
                            running."
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
    /// Test the configured ways of notification, or clear notifications that could not be sent
    Notify(Notify),
    /// Print everything that happens to every session, as JSON lines
    Events(Events),
    /// Replace the keepers of running sessions with this version of ostler
    Upgrade(Upgrade),
    /// Continue sessions that were meant to go on: after a reboot, or when all their processes were killed
    Recover(Recover),
    /// Continue sessions at each login or boot, by a systemd user unit
    InstallService(InstallService),
    /// Explain a command, or a topic: exit-codes, ids, files, agents, config, jobs, notify
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
    /// The parsed command line, if it is one of the commands that are used most and has no mistake. Building clap's tree of all
    /// commands takes longer than most commands run, so these are parsed alone. For everything else, help and mistakes
    /// included, the caller parses with the whole tree.
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
            "logs" => of(words).map(Command::Logs),
            "wait" => of(words).map(Command::Wait),
            "send" => of(words).map(Command::Send),
            "answer" => of(words).map(Command::Answer),
            "attach" => of(words).map(Command::Attach),
            "interrupt" => of(words).map(Command::Interrupt),
            "stop" => of(words).map(Command::Stop),
            "resume" => of(words).map(Command::Resume),
            "search" => of(words).map(Command::Search),
            "events" => of(words).map(Command::Events),
            _ => None,
        }
    }
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
