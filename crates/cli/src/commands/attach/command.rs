//! A kept command: what it prints, both streams as they arrive, beginning a little before now. Ctrl-C interrupts it,
//! the detach key detaches.

use super::chat_terminal::{Event, Seat};
use super::words;
use super::{Leaves, Left};
use crate::context::Context;
use crate::exit::{Code, Result};
use ostler_core::limits::size;
use ostler_core::record::RequestKind;
use ostler_engine::content::Piece;
use ostler_engine::request::{self, Answered};
use ostler_engine::{Engine, Place};

/// How much of its earlier output is shown.
const BEFORE: u64 = 16 * 1024;
const CTRL_C: u8 = 3;
/// Ends a colour that the command may have left on.
const PLAIN: &[u8] = b"\x1b[0m";

pub fn run(context: &Context, place: &Place, read_only: bool, leaves: Leaves) -> Result<Left> {
    let engine = &context.engine;
    let mut seat = Seat::take(context, place)?;
    let mut printed = engine.printed_lately(place, BEFORE)?;
    if printed.skipped() > 0 {
        let hint = format!("… earlier output: ostler logs {}", place.id);
        seat.show(format!("{}\r\n", context.style.dim(&hint)).as_bytes())?;
    }
    loop {
        // The view is read first: when it says "ended", everything that was printed is in the files.
        let view = engine.view(place)?;
        printed.read(|_, piece| match piece {
            Piece::Bytes(bytes) => seat.show(bytes),
            Piece::Dropped(bytes) => seat.show(format!("\r\n[{} were dropped]\r\n", size(bytes)).as_bytes()),
        })?;
        if view.ended {
            seat.show(PLAIN)?;
            drop(seat);
            words::tell_of_end(engine, &view);
            leaves.say(&words::ended(&view));
            return Ok(Left::with(view.outcome.as_ref().map_or(Code::Ours, Code::of)));
        }
        for event in seat.wait(None)? {
            match event {
                Event::Session | Event::Output | Event::Window | Event::Back | Event::Due => {}
                Event::Stop => seat.stop(PLAIN)?,
                Event::Keys(keys) if keys.contains(&CTRL_C) && read_only => {
                    return leave(seat, place, leaves, Left::with(Code::Succeeded));
                }
                Event::Keys(keys) if keys.contains(&CTRL_C) => interrupt(engine, &seat, place)?,
                Event::Keys(_) => {}
                Event::Leave => return leave(seat, place, leaves, Left::with(Code::Succeeded)),
                Event::Exit => return leave(seat, place, leaves, Left::exiting()),
            }
        }
    }
}

fn leave(seat: Seat, place: &Place, leaves: Leaves, left: Left) -> Result<Left> {
    seat.show(PLAIN)?;
    seat.show(b"\r\n")?;
    drop(seat);
    leaves.say(&words::detached(place.id));
    Ok(left)
}

fn interrupt(engine: &Engine, seat: &Seat, place: &Place) -> Result<()> {
    match request::make(engine, place, RequestKind::Interrupt)? {
        Answered::Accepted => {
            seat.show(format!("\r\n[interrupted; to stop it: ostler stop {}]\r\n", place.id).as_bytes())
        }
        Answered::Refused(why) => seat.show(format!("\r\n[{}]\r\n", ostler_screen::printable(&why)).as_bytes()),
        Answered::Ended(_) => Ok(()),
    }
}
