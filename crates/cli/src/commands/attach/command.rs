//! A kept command: what it prints, both streams as they come, from a little before now. Ctrl-C interrupts it, the detach
//! key leaves it.

use super::seat::{Event, Seat};
use super::words;
use crate::context::Context;
use crate::exit::{Code, Result};
use ostler_core::limits::size;
use ostler_core::record::RequestKind;
use ostler_engine::Engine;
use ostler_engine::request::{self, Answered, look_and_record};
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::home::Place;
use ostler_store::printed::{self, Printed};
use ostler_view::look::read_from;

/// How much of what it printed before is shown.
const BEFORE: u64 = 16 * 1024;
const CTRL_C: u8 = 3;
/// Ends a colour that the command may have left on.
const PLAIN: &[u8] = b"\x1b[0m";

pub fn run(context: &Context, place: &Place, read_only: bool) -> Result<Code> {
    let folder = place.open()?;
    let run = folder.run(folder.newest_run()?)?;
    let mut seat = Seat::take(context, place)?;
    let mut streams = [Stream::near_the_end(&run, "out")?, Stream::near_the_end(&run, "err")?];
    if streams.iter().any(|stream| stream.position > 0) {
        let hint = format!("… earlier output: ostler logs {}", place.id);
        seat.show(format!("{}\r\n", context.style.dim(&hint)).as_bytes())?;
    }
    loop {
        // The view first: when it says "ended", everything that was printed is in the files.
        let view = look_and_record(place)?;
        for stream in &mut streams {
            stream.show(&folder, &run, &seat)?;
        }
        if view.ended {
            seat.show(PLAIN)?;
            drop(seat);
            words::say(&words::ended(&view));
            return Ok(view.outcome.as_ref().map_or(Code::Ours, Code::of));
        }
        for event in seat.wait(None)? {
            match event {
                Event::Session | Event::Window | Event::Back | Event::Due => {}
                Event::Stop => seat.stop(PLAIN)?,
                Event::Keys(keys) if keys.contains(&CTRL_C) && read_only => return leave(seat, place),
                Event::Keys(keys) if keys.contains(&CTRL_C) => interrupt(&context.engine, &seat, place)?,
                Event::Keys(_) => {}
                Event::Leave => return leave(seat, place),
            }
        }
    }
}

fn leave(seat: Seat, place: &Place) -> Result<Code> {
    seat.show(PLAIN)?;
    seat.show(b"\r\n")?;
    drop(seat);
    words::say(&words::detached(place.id));
    Ok(Code::Succeeded)
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

struct Stream {
    name: &'static str,
    position: u64,
}

impl Stream {
    /// At the beginning of a line, so that no half one is shown.
    fn near_the_end(run: &RunFolder, name: &'static str) -> Result<Stream> {
        let size = run.dir().stat(name)?.map_or(0, |stat| stat.size);
        let Some(start) = size.checked_sub(BEFORE) else {
            return Ok(Stream { name, position: 0 });
        };
        let (mut position, mut tail) = (start, Vec::new());
        read_from(run.dir(), name, &mut position, |bytes| tail.extend_from_slice(bytes))?;
        let skipped = tail.iter().position(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        Ok(Stream { name, position: start + skipped as u64 })
    }

    fn show(&mut self, folder: &Folder, run: &RunFolder, seat: &Seat) -> Result<()> {
        let mut shown = Ok(());
        printed::read_on(folder, run, self.name, &mut self.position, |part| {
            if shown.is_ok() {
                shown = match part {
                    Printed::Bytes(bytes) => seat.show(bytes),
                    Printed::Dropped(bytes) => seat.show(format!("\r\n[{} were dropped]\r\n", size(bytes)).as_bytes()),
                };
            }
        })?;
        shown
    }
}
