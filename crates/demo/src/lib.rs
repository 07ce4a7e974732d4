//! The demo agent: a coding agent in miniature. It shows a newcomer in ten seconds how a coding agent works, without a
//! key or a network, and our tests use it as a real agent that can be kept.
//!
//! It is a real child process with real tools: it runs shell commands, reads a file, changes it and runs the commands
//! again, in a scratch folder of its own. It has no model; `story` and `script` say what it does instead.
//!
//! # Where it copies Claude Code
//!
//! Headless, it reads and writes one JSON object per line on stdin and stdout, in Claude Code's formats (`protocol`):
//!
//! * A `user` line starts a turn: `system/init`, `assistant` and `user` lines, `result`. A message that comes during a
//!   turn waits for a turn of its own, also when the running turn is interrupted. A message whose `uuid` is already in
//!   the transcript is ignored and gets no result.
//! * `control_request` is answered with success; `interrupt` ends the turn at once and kills the running tool.
//! * With `--ask` it asks by `can_use_tool` before it changes a file. An allowing answer may have a changed input,
//!   which is ignored.
//! * A line that is not a message ends the process with 1. At the end of stdin the accepted turns are finished; the
//!   exit code is then 1 when the last turn had an API error, else 0. SIGTERM ends it with 143, SIGHUP with 129, SIGINT
//!   with 0, all after writing the transcript and killing the running tool.
//! * The transcript is written late (`transcript`): a kill right after `result` loses the reply.
//!
//! With `--screen` it draws its own screen instead (`terminal`).
//!
//! # How to start it
//!
//! `--session-id UUID` names a new conversation, `--resume UUID` continues one; with neither, a new one gets a random
//! name. With `--read-only` it runs no command and changes no file. `--ask`, `--screen` as above; `--partial` adds
//! `stream_event` lines with the text as it comes.
//!
//! | environment | meaning |
//! | --- | --- |
//! | `OSTLER_DEMO_HOME` | its own folder; default `$XDG_DATA_HOME/ostler-demo`, else `~/.local/share/ostler-demo` |
//! | `OSTLER_DEMO_PACE` | length of its pauses in percent; 100 is for people who watch, 0 means none |
//! | `OSTLER_DEMO_LIMITS` | a file with a usage limit in each line, for one turn each (`limit`) |
//! | `OSTLER_DEMO_LATE` | milliseconds until a line is written to the transcript; default 100 |
//!
//! # Prompts for tests
//!
//! A prompt whose first word is one of these, exactly, does what the table says. Any other gets the `story`.
//!
//! | prompt | what happens |
//! | --- | --- |
//! | `say TEXT` | answers TEXT |
//! | `count N` | N `assistant` lines with the texts `1` to `N` |
//! | `sleep` | runs the tool command `sleep 1000` |
//! | `ask TEXT` | asks for permission, with or without `--ask`, and answers `allowed: TEXT` or `denied: TEXT (why)` |
//! | `fail TEXT` | `result` as after an API error: `success`, `is_error`, `api_error_status` 500, TEXT |
//! | `crash` | exits with 3 in the middle of the turn; what was not yet written is lost |
//! | `echo-length …` | answers `<bytes> bytes, checksum <16 hex digits>` of the whole prompt; see [`checksum`] |
//! | `run-command COMMAND` | runs the tool command COMMAND in the working directory and answers `done` |
//! | `edit-file FILE OLD NEW` | replaces OLD by NEW in FILE, below the working directory, and answers `done` |
//! | `spend USD TEXT` | answers TEXT, and reports USD dollars of additional cost |
//! | `continue` | answers `continued` |
//! | `say-line TEXT` | answers the rest of the first line, and ignores further lines |
//! | `run-line COMMAND` | runs the rest of the first line, then answers the second line |
//! | `Review …` | the prompt of `ostler review`: finds every added line with `FIXME`, and ends with a verdict |
//! | `leave` | a tool leaves `sleep 1000` running in a session of its own; answers `left process <pid> running` |
//!
//! # What it expects of its caller
//!
//! Descriptors beyond stderr should be marked close-on-exec before [`main`], or the agent's tools inherit them.
//!
//! # How it waits
//!
//! One thread, one place that waits (`Agent::wait`): input, signals, a tool's pipe and its pidfd, a deadline.
//! When nothing is to be done it sleeps without a timer.

#![forbid(unsafe_code)]

mod agent;
mod face;
mod headless;
mod leave;
mod limit;
mod lines;
mod options;
mod output;
mod protocol;
mod review;
mod scratch;
mod script;
mod signals;
mod story;
mod terminal;
mod tools;
mod transcript;
mod turn;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::rc::Rc;

pub use script::checksum;
pub use transcript::path as transcript_path;

use agent::Agent;
use face::Face;
use headless::Headless;
use leave::{Leave, Trouble};
use options::{Conversation, Mode, Options};
use output::Output;
use signals::Signals;
use terminal::Terminal;
use transcript::Transcript;

/// Runs the agent and returns the exit code. `args` are the arguments after the program's name (and after `__demo`).
pub fn main(args: impl Iterator<Item = OsString>) -> i32 {
    match Options::read(args, |name| std::env::var_os(name)) {
        Ok(options) => live(&options).unwrap_or_else(|trouble| complain(&trouble)),
        Err(wrong) => {
            complain(&wrong);
            2
        }
    }
}

fn live(options: &Options) -> Result<i32, Trouble> {
    let signals = Rc::new(Signals::listen().map_err(Trouble::Signals)?);
    let place = transcript::Place { home: &options.home, cwd: &options.cwd, session: options.conversation.session() };
    let transcript = match options.conversation {
        Conversation::New(_) => Transcript::create(&place, options.late)?,
        Conversation::Resumed(_) => Transcript::resume(&place, options.late)?,
        Conversation::Forked { origin, .. } => Transcript::fork(&place, origin, options.late)?,
    };
    let output = Output::new(Rc::clone(&signals));
    let face: Box<dyn Face> = match options.mode {
        Mode::Headless { partial } => Box::new(Headless::new(output, options, partial)),
        Mode::Screen => Box::new(Terminal::open(output, options.conversation.session(), transcript.turns())?),
    };
    let leave = Agent::new(options, face, signals, transcript).live();
    if let Leave::Trouble(trouble) = &leave {
        complain(trouble);
    }
    Ok(leave.exit_code())
}

/// Prints one line on stderr. A failure to print is ignored.
fn complain(trouble: &dyn std::fmt::Display) -> i32 {
    let _ = writeln!(io::stderr(), "demo agent: {trouble}");
    1
}
