//! The last thing that a program printed, drew or said, in one line, for lists: reads only the end of its files.

use crate::complaint::complaint;
use crate::terminal;
use ostler_agents::Agent;
use ostler_core::asking::Shown;
use ostler_core::fact::{Fact, TurnEnd, Verdict};
use ostler_core::outcome::Kind;
use ostler_core::record::{Channel, Plan, Tty};
use ostler_store::folder::{Folder, RunFolder, read_dispensable};
use ostler_store::growing_file::read_from;
use ostler_store::{StoreError, backwards};
use ostler_sys::dir::{Dir, FileStat, Sync};
use std::fs::File;
use std::ops::ControlFlow;

/// How much of a long last line is kept.
const LAST_CHARACTERS: usize = 300;

/// The files that it has printed to. A list reads their sizes once: for most commands one of the two is empty.
pub struct Streams {
    pub out: Option<FileStat>,
    pub err: Option<FileStat>,
}

impl Streams {
    pub fn of(run: &Dir) -> Result<Streams, StoreError> {
        let stat = |name| run.stat(name).map_err(StoreError::io(name));
        Ok(Streams { out: stat("out")?, err: stat("err")? })
    }
}

/// The last thing it printed or said, as plain text.
pub fn line(folder: &Folder, run: &RunFolder, agent: &str, plan: &Plan) -> Result<Option<String>, StoreError> {
    line_of(folder, run, agent, plan, &Streams::of(run.dir())?, Drawn::Whole)
}

/// How a screen is drawn for its last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drawn {
    Whole,
    /// In the way of [`terminal::nearly_now`].
    Nearly,
}

pub fn line_of(
    folder: &Folder,
    run: &RunFolder,
    agent: &str,
    plan: &Plan,
    streams: &Streams,
    drawn: Drawn,
) -> Result<Option<String>, StoreError> {
    let line = whole_line(folder, run, agent, plan, streams, drawn)?;
    // A list is for people: all of a long line is in the logs.
    Ok(line.map(|line| line.chars().take(LAST_CHARACTERS).collect()))
}

fn whole_line(
    folder: &Folder,
    run: &RunFolder,
    agent: &str,
    plan: &Plan,
    streams: &Streams,
    drawn: Drawn,
) -> Result<Option<String>, StoreError> {
    // For an agent that was started again and has not said anything yet: the lowest line on its screen is only its
    // help.
    let keeps_record = ostler_agents::find_for(agent, plan).is_some_and(|agent| agent.recording().is_some());
    let before = || if keeps_record { said_before(folder, run.number) } else { None };
    let before_or_drawn = || before().map_or_else(|| last_drawn(run.dir(), drawn), |said| Ok(Some(said)));
    let run = run.dir();
    match plan.channel {
        // What was drawn last is not always the lowest line; the screen knows.
        Channel::Tty(Tty::Nothing) => noted(run)?.map_or_else(before_or_drawn, |said| Ok(Some(said))),
        Channel::Command => match last_printed(&tail(run, "out", streams.out, 4096)?) {
            Some(line) => Ok(Some(line)),
            None => Ok(last_printed(&tail(run, "err", streams.err, 4096)?)),
        },
        Channel::Tty(Tty::Hooks) => last_said(run, agent, plan)?.map_or_else(before_or_drawn, |said| Ok(Some(said))),
        // What an agent prints on standard error is not part of the conversation.
        Channel::Lines(_) => Ok(last_said(run, agent, plan)?.or_else(before)),
    }
}

/// In a terminal most agents only draw, and the lowest line is always the same help. What such an agent said last is in
/// its transcript; its keeper notes it here, so that a list need not look for it.
const NOTED: &str = "last";

/// How many lines of a transcript are searched: what was said before them is not the last.
const LINES_LIMIT: usize = 2000;

fn noted(run: &Dir) -> Result<Option<String>, StoreError> {
    let text = read_dispensable(run, NOTED)?;
    Ok(text.map(|text| String::from_utf8_lossy(&text).into_owned()).filter(|text| !text.is_empty()))
}

/// Notes what the agent said last, according to its transcript.
pub fn note(run: &Dir, agent: &dyn Agent, transcript: &File) -> Result<(), StoreError> {
    let (mut found, mut looked) = (None, 0);
    let read = backwards::lines(transcript, 0, |line| {
        looked += 1;
        found = agent.said_in(line);
        if found.is_some() || looked == LINES_LIMIT { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    read.map_err(StoreError::io("the transcript"))?;
    match found.and_then(|text| last_printed(text.as_bytes())) {
        Some(line) => {
            let line: String = line.chars().take(LAST_CHARACTERS).collect();
            run.replace(NOTED, line.as_bytes(), Sync::No).map_err(StoreError::io(NOTED))
        }
        None => Ok(()),
    }
}

/// The last line of the conversation in the run before. The reason why that run failed is not part of the conversation.
/// If that run cannot be read, the present one is still shown.
fn said_before(folder: &Folder, run: u32) -> Option<String> {
    let before = folder.run(run.checked_sub(1).filter(|before| *before > 0)?).ok()?;
    let outcome = before.outcome().ok()??;
    match outcome.kind {
        Kind::Succeeded | Kind::Interrupted | Kind::Stopped => outcome.closing?.last,
        Kind::Failed | Kind::Lost => None,
    }
}

fn last_drawn(run: &Dir, drawn: Drawn) -> Result<Option<String>, StoreError> {
    let screen = match drawn {
        Drawn::Whole => terminal::now(run)?.screen,
        Drawn::Nearly => terminal::nearly_now(run)?,
    };
    let text = screen.text();
    Ok(text.into_iter().rev().map(|line| line.trim().to_owned()).find(|line| !line.is_empty()))
}

fn last_said(run: &Dir, agent: &str, plan: &Plan) -> Result<Option<String>, StoreError> {
    for length in LOOKED_AT {
        let agent_feed = ostler_agents::find_for(agent, plan)
            .and_then(|agent| ostler_agents::decoder::agent_feed(agent, plan.speaks()));
        let Some((name, mut decoder)) = agent_feed else {
            return Ok(None);
        };
        let mut facts = Vec::new();
        let stat = run.stat(name).map_err(StoreError::io(name))?;
        for line in tail(run, name, stat, length)?.split(|&byte| byte == b'\n') {
            decoder.line(line, &mut facts);
        }
        let found = facts.into_iter().rev().find_map(said);
        if found.is_some() || stat.is_none_or(|stat| stat.size <= length) {
            return Ok(found);
        }
    }
    Ok(None)
}

/// How much of the end of an agent's file is read, and how much more if nothing was said in it: the result of a tool
/// may be long, and the prompt that the agent's words belong to may be before it. Little at first, because a list
/// decodes it for every session that prints.
const LOOKED_AT: [u64; 3] = [16 * 1024, 256 * 1024, 4 << 20];

fn said(fact: Fact) -> Option<String> {
    match fact {
        Fact::Said { text } => text.lines().rev().find(|line| !line.trim().is_empty()).map(str::to_owned),
        Fact::ToolCalled { name, detail, .. } => Some(format!("{name} {detail}").trim_end().to_owned()),
        Fact::Asked(ask) => Some(Shown::of(&ask).line(LAST_CHARACTERS).asked),
        Fact::TurnEnded(TurnEnd { verdict: Verdict::Failed, reason, .. }) => reason,
        Fact::Native { .. }
        | Fact::Transcript { .. }
        | Fact::Ready
        | Fact::Behind { .. }
        | Fact::Recalled { .. }
        | Fact::Opened { .. }
        | Fact::NotOpened { .. }
        | Fact::ReplyDue { .. }
        | Fact::TurnStarted
        | Fact::Saying { .. }
        | Fact::Thought { .. }
        | Fact::Model { .. }
        | Fact::ToolReturned { .. }
        | Fact::Subagent(_)
        | Fact::AskClosed { .. }
        | Fact::Background { .. }
        | Fact::Retrying(_)
        | Fact::Limited(_)
        | Fact::TurnEnded(_)
        | Fact::Unknown { .. }
        | Fact::LineTooLong { .. } => None,
    }
}

/// The last error that it printed on its standard error.
pub fn complaint_of(run: &Dir) -> Result<Option<String>, StoreError> {
    let text = tail(run, "err", Streams::of(run)?.err, 64 * 1024)?;
    let text = String::from_utf8_lossy(&text);
    let line = complaint(&ostler_screen::printable_lines(&text));
    Ok(line.map(|line| line.chars().take(LAST_CHARACTERS).collect()))
}

fn last_printed(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let plain = ostler_screen::printable_lines(&text);
    plain.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned)
}

fn tail(run: &Dir, name: &str, stat: Option<FileStat>, length: u64) -> Result<Vec<u8>, StoreError> {
    let size = stat.map_or(0, |stat| stat.size);
    let mut bytes = Vec::new();
    if size > 0 {
        read_from(run, name, &mut size.saturating_sub(length), |piece| bytes.extend_from_slice(piece))?;
    }
    Ok(bytes)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use ostler_core::record::Ending;

    #[test]
    fn what_opencode_said_behind_a_long_result_of_a_tool_is_found() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::new(Dir::open(place.path()).unwrap());
        let run = folder.make_run(1).unwrap();
        let output = "x".repeat(200 * 1024);
        let lines = [
            r#"{"type":"prompt","sessionID":"ses_1"}"#.to_owned(),
            format!(
                r#"{{"type":"tool_use","sessionID":"ses_1","part":{{"id":"prt_1","tool":"bash","state":{{"status":"completed","output":"{output}"}}}}}}"#
            ),
            r#"{"type":"text","sessionID":"ses_1","part":{"id":"prt_2","text":"all done"}}"#.to_owned(),
            r#"{"type":"idle","sessionID":"ses_1"}"#.to_owned(),
        ];
        std::fs::write(place.path().join("runs/1/hooks"), lines.join("\n") + "\n").unwrap();
        let plan = Plan {
            channel: Channel::Tty(Tty::Hooks),
            keep: false,
            ending: Ending::Hangup,
            linger_ms: 0,
            rules: ostler_core::rules::Rules::default(),
        };
        assert_eq!(line(&folder, &run, "opencode", &plan).unwrap().as_deref(), Some("all done"));
    }
}
