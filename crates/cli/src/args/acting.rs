//! The flags of the commands that act on a session that is there: send, answer, attach, rename, stop.

use super::Message;
use clap::Args;

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
