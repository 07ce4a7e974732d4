//! Following a session: what it prints or says, as it comes, until it ends. The files are read here; the keeper only says
//! that they have grown, so a keeper that is killed in between makes no difference.

use crate::commands::to_json;
use crate::exit::Result;
use crate::say::{line, tell};
use crate::ui::conversation::Talk;
use ostler_core::fact::{Ask, Fact, Verdict};
use ostler_core::record::{Mode, Speaks};
use ostler_core::view::View;
use ostler_engine::request::look_and_record;
use ostler_engine::watch::{News, Watch};
use ostler_screen::{PlainText, printable_lines, printable_text};
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::home::Place;
use ostler_store::printed::{self, Printed};
use ostler_view::conversation::{Item, Reader};
use ostler_view::terminal::{self, Drawn, Replay};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::BorrowedFd;
use std::io::Write;

/// How output is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// The program's own bytes.
    Raw,
    /// Made safe for a terminal.
    Plain,
}

/// Where a conversation goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Talking {
    /// What the agent says to standard output, everything about it to standard error: for whoever wants the answer.
    Apart,
    /// All of it to standard output: for whoever reads.
    Together,
    /// The final answer to standard output, everything else to standard error: for scripts. `each_turn`: the answer of every
    /// turn, when a turn's end is not the end of the session.
    Answer { each_turn: bool },
}

/// Prints what a session has said, and on request what it says from now on.
pub struct Printer<'a>(How<'a>);

enum How<'a> {
    /// A conversation.
    Talk { reader: Box<Reader<'a>>, talk: Talk, talking: Talking, held: String },
    /// The same, one JSON object per line.
    Json { reader: Box<Reader<'a>> },
    /// What a program prints, both streams.
    Bytes { folder: &'a Folder, run: RunFolder, streams: [Stream; 2], show: Show },
    /// What a program draws, as text.
    Drawn { run: RunFolder, replay: Replay, text: Box<PlainText> },
}

struct Stream {
    position: u64,
    /// The beginning of a line whose end has not come yet.
    partial: Vec<u8>,
}

impl<'a> Printer<'a> {
    /// Starts at the beginning of that run, or where the oldest output was dropped.
    pub fn new(folder: &'a Folder, show: Show, talk: Talk, talking: Talking, first_run: u32) -> Result<Printer<'a>> {
        let run = folder.run(folder.newest_run()?)?;
        let plan = run.record()?.plan;
        let how = match (plan.speaks, plan.mode, show) {
            (Speaks::Turns | Speaks::OneTurn, _, Show::Plain) => {
                How::Talk { reader: Box::new(Reader::new(folder, first_run)), talk, talking, held: String::new() }
            }
            (Speaks::Bytes | Speaks::Hooks, Mode::Terminal, Show::Plain) => {
                let begins = printed::begins(folder, &run, "out")?;
                say_dropped(begins);
                let replay = Replay::from(begins);
                let text = Box::new(PlainText::new(terminal::first_window(run.dir())?));
                How::Drawn { run, replay, text }
            }
            (_, _, show) => {
                let (out, err) = (printed::begins(folder, &run, "out")?, printed::begins(folder, &run, "err")?);
                say_dropped(out + err);
                How::Bytes { folder, run, streams: [Stream::from(out), Stream::from(err)], show }
            }
        };
        Ok(Printer(how))
    }

    /// The same for programs: one JSON object per thing said.
    pub fn json_lines(folder: &'a Folder, first_run: u32) -> Printer<'a> {
        Printer(How::Json { reader: Box::new(Reader::new(folder, first_run)) })
    }

    /// Prints what has come since the last call.
    pub fn print(&mut self) -> Result<()> {
        match &mut self.0 {
            How::Talk { reader, talk, talking, held } => {
                reader.read_on(|item| {
                    let (mut said, mut about) = (String::new(), String::new());
                    talk.show(&item, &mut said, &mut about);
                    match talking {
                        Talking::Apart => {
                            out(said.as_bytes())?;
                            err(about.as_bytes())
                        }
                        Talking::Together => {
                            out(said.as_bytes())?;
                            out(about.as_bytes())
                        }
                        Talking::Answer { each_turn } => {
                            held.push_str(&said);
                            match &item {
                                Item::Agent(Fact::TurnEnded(end))
                                    if *each_turn && end.verdict == Verdict::Succeeded =>
                                {
                                    give_answer(&std::mem::take(held), end.text.as_deref())?;
                                }
                                // Something follows what was said, so it was not the answer.
                                _ if !about.is_empty() => err(std::mem::take(held).as_bytes())?,
                                _ => {}
                            }
                            err(about.as_bytes())
                        }
                    }
                })?;
            }
            How::Json { reader } => reader.read_on(|item| line(format_args!("{}", to_json(&item))))?,
            How::Bytes { folder, run, streams: [first, second], show } => {
                first.print(folder, run, "out", *show, out)?;
                second.print(folder, run, "err", *show, err)?;
            }
            How::Drawn { run, replay, text } => {
                let mut plain = String::new();
                replay.read_on(run.dir(), |drawn| match drawn {
                    Drawn::Bytes(bytes) => text.feed(bytes, &mut |piece| plain.push_str(piece)),
                    Drawn::Resized(size) => text.resize(size, &mut |piece| plain.push_str(piece)),
                })?;
                out(plain.as_bytes())?;
            }
        }
        Ok(())
    }

    /// Why the last turn failed, when that is the last that was printed.
    pub fn ended_with(&self) -> Option<String> {
        match &self.0 {
            How::Talk { talk, .. } => talk.ended_with().map(str::to_owned),
            How::Json { .. } | How::Bytes { .. } | How::Drawn { .. } => None,
        }
    }

    /// Takes away what was said last and not printed, because it may be the answer.
    pub fn take_held(&mut self) -> String {
        match &mut self.0 {
            How::Talk { held, .. } => std::mem::take(held),
            How::Json { .. } | How::Bytes { .. } | How::Drawn { .. } => String::new(),
        }
    }

    /// Shows a question in full on standard error, unless it is the last that was shown.
    pub fn show_again(&mut self, ask: &Ask) -> Result<()> {
        match &mut self.0 {
            How::Talk { talk, .. } => err(talk.show_again(ask).as_bytes()),
            How::Json { .. } | How::Bytes { .. } | How::Drawn { .. } => Ok(()),
        }
    }

    /// Prints the ends of lines that will not come any more.
    pub fn finish(self) -> Result<()> {
        match self.0 {
            How::Talk { held, .. } => err(held.as_bytes())?,
            How::Json { .. } => {}
            How::Bytes { streams: [first, second], .. } => {
                out(printable_lines(&String::from_utf8_lossy(&first.partial)).as_bytes())?;
                err(printable_lines(&String::from_utf8_lossy(&second.partial)).as_bytes())?;
            }
            How::Drawn { text, .. } => {
                let mut plain = String::new();
                text.finish(&mut |piece| plain.push_str(piece));
                out(plain.as_bytes())?;
            }
        }
        Ok(())
    }
}

/// Prints an answer to standard output, and what was said before it to standard error. An agent that gives no answer of its
/// own has said it.
pub fn give_answer(said: &str, answer: Option<&str>) -> Result<()> {
    let answer = printable_text(answer.unwrap_or(said)).trim_end().to_owned();
    err(said.trim_end().strip_suffix(answer.as_str()).unwrap_or(said).as_bytes())?;
    out(if answer.is_empty() { answer } else { answer + "\n" }.as_bytes())
}

impl Stream {
    fn from(position: u64) -> Stream {
        Stream { position, partial: Vec::new() }
    }

    fn print(
        &mut self,
        folder: &Folder,
        run: &RunFolder,
        name: &str,
        show: Show,
        to: fn(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut result = Ok(());
        let partial = &mut self.partial;
        printed::read_on(folder, run, name, &mut self.position, |part| {
            if result.is_err() {
                return;
            }
            result = match (part, show) {
                (Printed::Dropped(bytes), _) => {
                    // The end of the line that was begun is gone with the rest.
                    let begun = std::mem::take(partial);
                    let shown = to(printable_lines(&String::from_utf8_lossy(&begun)).as_bytes());
                    say_dropped(bytes);
                    shown
                }
                (Printed::Bytes(bytes), Show::Raw) => to(bytes),
                (Printed::Bytes(bytes), Show::Plain) => {
                    partial.extend_from_slice(bytes);
                    let end = end_of_whole(partial);
                    let lines: Vec<u8> = partial.drain(..end).collect();
                    to(printable_lines(&String::from_utf8_lossy(&lines)).as_bytes())
                }
            };
        })?;
        result
    }
}

/// A line is shown in parts once this much of it has come.
const LONG_LINE: usize = 1 << 20;
/// No escape sequence is so long that its beginning would not be found in this much.
const LONG_SEQUENCE: usize = 4096;

/// How much may be shown. Whole lines only: half an escape sequence looks harmless. A line that is longer than memory
/// should hold is cut, but not inside a sequence nor inside a character.
pub fn end_of_whole(text: &[u8]) -> usize {
    if let Some(place) = text.iter().rposition(|&byte| byte == b'\n') {
        return place + 1;
    }
    if text.len() < LONG_LINE {
        return 0;
    }
    let tail = text.len() - LONG_SEQUENCE;
    let escape = text[tail..].iter().rposition(|&byte| byte == b'\x1b').map(|place| tail + place);
    let character = (tail..text.len()).rev().find(|&place| text[place] & 0xc0 != 0x80);
    escape.or(character).unwrap_or(text.len())
}

pub fn say_dropped(bytes: u64) {
    if bytes > 0 {
        tell!("ostler: the oldest {} of output were dropped", crate::ui::time::size(bytes));
    }
}

pub fn out(bytes: &[u8]) -> Result<()> {
    if bytes.is_empty() { Ok(()) } else { crate::say::bytes(bytes) }
}

/// Nobody is left to be told when standard error is gone.
pub fn err(bytes: &[u8]) -> Result<()> {
    let _ = std::io::stderr().lock().write_all(bytes);
    Ok(())
}

/// Why following stopped.
pub enum Left {
    Ended(Box<View>),
    /// It asks, and whoever follows said that this is reason enough.
    Asks(Box<View>),
    /// Whoever follows wants to do something else.
    Called,
}

/// Prints until the session has ended, or `called` is readable, or it asks and `answers` is false.
pub fn follow(place: &Place, printer: &mut Printer<'_>, called: Option<BorrowedFd<'_>>, answers: bool) -> Result<Left> {
    let mut watch = Watch::new(place)?;
    let mut news = News::Anything;
    loop {
        if news == News::Anything {
            // The view first: when it says "ended", everything that was printed is in the files.
            let view = look_and_record(place)?;
            printer.print()?;
            if view.ended {
                return Ok(Left::Ended(Box::new(view)));
            }
            if view.asking.is_some() && !answers {
                // Called first: a question must not keep a Ctrl-C from being heard.
                return Ok(if is_called(called)? { Left::Called } else { Left::Asks(Box::new(view)) });
            }
        } else {
            printer.print()?;
        }
        let Some(descriptor) = watch.descriptor() else {
            news = watch.heed()?;
            continue;
        };
        let mut fds = vec![PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
        fds.extend(called.map(|called| PollFd::from_borrowed_fd(called, PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(std::io::Error::from(error).into()),
        }
        let (changed, was_called) =
            (!fds[0].revents().is_empty(), fds.get(1).is_some_and(|fd| !fd.revents().is_empty()));
        news = if changed { watch.heed()? } else { News::Output };
        if was_called {
            return Ok(Left::Called);
        }
    }
}

/// Whether there is something to read, without waiting for it.
fn is_called(called: Option<BorrowedFd<'_>>) -> Result<bool> {
    let Some(called) = called else {
        return Ok(false);
    };
    let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut [PollFd::from_borrowed_fd(called, PollFlags::IN)], Some(&now)) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(std::io::Error::from(error).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_end_is_shown_in_parts_that_break_neither_sequence_nor_character() {
        assert_eq!(end_of_whole(b"one\ntwo"), 4);
        assert_eq!(end_of_whole(b"still coming"), 0);
        let mut text = vec![b'x'; LONG_LINE];
        text.extend("é".as_bytes());
        assert_eq!(end_of_whole(&text[..=LONG_LINE]), LONG_LINE, "before half a character");
        text.extend(b"\x1b[3");
        assert_eq!(end_of_whole(&text), LONG_LINE + 2, "before half a sequence");
    }
}
