//! `resume --takeover`: whoever has the conversation is ended properly first, and what it said is on disk before we go on.
//!
//! A session of ostler, of whatever home, is stopped as `ostler stop` does it, with the proof. A stranger is asked as its
//! agent likes to be asked, by identity, and never killed: an agent that does not leave keeps its conversation. A server
//! that works for several conversations is not even asked.

use crate::client::make_wish;
use crate::commands::stop;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::one_writer::{self, Writer, writers};
use crate::say::tell;
use crate::ui::called::called;
use ostler_core::event::StopHow;
use ostler_core::record::Want;
use ostler_core::view::View;
use ostler_store::home::Place;
use ostler_sys::process::Pidfd;
use ostler_writers::Holder;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;
use rustix::time::Timespec;
use std::path::PathBuf;
use std::time::Duration;

/// Ends everybody who has the conversation of this session.
pub fn take(context: &Context, place: &Place, view: &View) -> Result<()> {
    if !view.ended {
        stop_session(context, place)?;
    }
    let Some(native_id) = &view.native_id else {
        return Ok(());
    };
    let writers = writers(view.conversation_agent(), native_id)?;
    let shared = writers.iter().find_map(|writer| match writer {
        Writer::Session(_) => None,
        Writer::Stranger(stranger) => one_writer::shared(stranger),
    });
    if let Some(refused) = shared {
        return Err(refused);
    }
    for writer in writers {
        match writer {
            Writer::Session(occupant) => {
                let path = PathBuf::from(&occupant.folder);
                stop_session(context, &Place { id: occupant.session, path, archived: false })?;
            }
            Writer::Stranger(stranger) => {
                end_stranger(&stranger, context.config.grace)?;
                say_what_is_saved(&stranger, native_id, &view.cwd)?;
            }
        }
    }
    Ok(())
}

fn stop_session(context: &Context, place: &Place) -> Result<()> {
    let grace_ms = u64::try_from(context.config.grace.as_millis()).unwrap_or(u64::MAX);
    let want = Want::Stop { how: StopHow::Interrupt, grace_ms, why: "resume --takeover".to_owned() };
    let ended = stop::end(place, make_wish(place, want)?)?;
    if !ended.was_over && !stop::is_saved(&ended.view) {
        return Err(Failure::new(
            Code::NotSaved,
            format!("{} was ended but not resumed; run the command again to resume it", called(&ended.view)),
        ));
    }
    Ok(())
}

/// Half of the grace for each way of asking.
fn end_stranger(stranger: &Holder, grace: Duration) -> Result<()> {
    // In a terminal an interrupt only ends the turn; elsewhere it ends the process, its tools with it, and is noted.
    let ways = match stranger.terminal {
        Some(_) => [Signal::TERM, Signal::HUP],
        None => [Signal::INT, Signal::TERM],
    };
    let Some(process) = Pidfd::open(&stranger.identity)? else {
        return Ok(());
    };
    for signal in ways {
        process.signal(signal)?;
        let limit = Timespec::try_from(grace / 2).ok();
        if poll(&mut [PollFd::new(&process, PollFlags::IN)], limit.as_ref()).map_err(std::io::Error::from)? > 0 {
            return Ok(());
        }
    }
    let words = format!("{} is using the conversation and does not exit; end it yourself", stranger.words());
    Err(Failure::new(Code::Refused, words))
}

/// The stranger is gone: whatever will be in its transcript is in it.
fn say_what_is_saved(stranger: &Holder, native_id: &str, cwd: &str) -> Result<()> {
    let agent = ostler_agents::find(&stranger.agent);
    let transcript = agent.and_then(|agent| ostler_store::proof::find_transcript(agent, native_id, cwd));
    let bytes = transcript.as_deref().map(std::fs::read).transpose()?;
    let whole = bytes
        .as_deref()
        .and_then(last_line)
        .is_some_and(|line| line.ends_with(b"\n") && serde_json::from_slice::<serde_json::Value>(line).is_ok());
    if !whole {
        return Err(Failure::new(
            Code::NotSaved,
            format!(
                "{} was ended, and the end of its transcript is damaged; repair it first: ostler repair",
                stranger.words()
            ),
        ));
    }
    let answered = bytes.as_deref().and_then(ostler_agents::stream_json::ends_with_answer);
    let saved = match answered {
        Some(true) => "its last turn is in the transcript",
        Some(false) => "its last turn was cut off; the prompt is in the transcript",
        None => "its transcript is complete",
    };
    tell!("ostler: ended {}; {saved}", stranger.words());
    Ok(())
}

fn last_line(bytes: &[u8]) -> Option<&[u8]> {
    bytes.split_inclusive(|&byte| byte == b'\n').next_back()
}
