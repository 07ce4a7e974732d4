//! Follows a session: prints its output or its messages as they come, until it ends.

use crate::commands::to_json;
use crate::exit::Result;
use crate::say::{line, tell};
use crate::ui::conversation::Talk;
use ostler_core::fact::{Ask, Fact, Verdict};
use ostler_core::view::View;
use ostler_engine::content::{Content, Conversation, Drawn, Item, Piece, Printed, Runs, Stream};
use ostler_engine::logs::end_of_whole;
use ostler_engine::session_watch::{News, SessionWatch};
use ostler_engine::{Engine, Place, ready};
use ostler_screen::{printable_lines, printable_text};
use std::io::Write;
use std::os::fd::BorrowedFd;

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
    /// What the agent says to standard output, everything about it to standard error.
    Apart,
    /// All of it to standard output.
    Together,
    /// The final answer to standard output, everything else to standard error: for scripts. `each_turn`: the answer of
    /// every turn, when the end of a turn is not the end of the session.
    Answer { each_turn: bool },
}

/// Prints what a session has said, and, when called again, what is new.
pub struct Printer(How);

enum How {
    /// A conversation.
    Talk { conversation: Box<Conversation>, talk: Talk, talking: Talking, held: String },
    /// The same, one JSON object per line.
    Json { conversation: Box<Conversation> },
    /// What a program prints, both streams.
    Bytes { printed: Printed, streams: [Lines; 2], show: Show },
    /// What a program draws, as text.
    Drawn(Box<Drawn>),
}

/// The beginning of an unfinished line.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Printer {
    /// Starts at the beginning of that run, or after the oldest output if that was dropped.
    pub fn new(
        engine: &Engine,
        place: &Place,
        show: Show,
        talk: Talk,
        talking: Talking,
        runs: Runs,
    ) -> Result<Printer> {
        let how = match show {
            Show::Raw => bytes(engine.printed(place)?, show),
            Show::Plain => match engine.content(place, runs)? {
                Content::Conversation(conversation) => How::Talk { conversation, talk, talking, held: String::new() },
                Content::Drawn(drawn) => {
                    say_dropped(drawn.dropped());
                    How::Drawn(drawn)
                }
                Content::Printed(printed) => bytes(printed, show),
            },
        };
        Ok(Printer(how))
    }

    /// The same for programs: one JSON object per message.
    pub fn json_lines(engine: &Engine, place: &Place, runs: Runs) -> Result<Printer> {
        Ok(Printer(How::Json { conversation: Box::new(engine.conversation(place, runs)?) }))
    }

    /// Prints what is new since the last call.
    pub fn print(&mut self) -> Result<()> {
        match &mut self.0 {
            How::Talk { conversation, talk, talking, held } => {
                conversation.read(|item, _| {
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
                                // Something follows the text, so the text was not the answer.
                                _ if !about.is_empty() => err(std::mem::take(held).as_bytes())?,
                                _ => {}
                            }
                            err(about.as_bytes())
                        }
                    }
                })?;
            }
            How::Json { conversation } => conversation.read(|item, _| line(format_args!("{}", to_json(&item)?)))?,
            How::Bytes { printed, streams: [first, second], show } => printed.read(|stream, piece| match stream {
                Stream::Out => first.print(piece, *show, out),
                Stream::Err => second.print(piece, *show, err),
            })?,
            How::Drawn(drawn) => out(drawn.read()?.as_bytes())?,
        }
        Ok(())
    }

    /// Why the last turn failed, when that was the last thing printed.
    pub fn ended_with(&self) -> Option<String> {
        match &self.0 {
            How::Talk { talk, .. } => talk.ended_with().map(str::to_owned),
            How::Json { .. } | How::Bytes { .. } | How::Drawn(_) => None,
        }
    }

    /// Takes the last text, which was not printed because it may be the answer.
    pub fn take_held(&mut self) -> String {
        match &mut self.0 {
            How::Talk { held, .. } => std::mem::take(held),
            How::Json { .. } | How::Bytes { .. } | How::Drawn(_) => String::new(),
        }
    }

    /// Shows a question in full on standard error, unless it was the last one shown.
    pub fn show_again(&mut self, ask: &Ask) -> Result<()> {
        match &mut self.0 {
            How::Talk { talk, .. } => err(talk.show_again(ask).as_bytes()),
            How::Json { .. } | How::Bytes { .. } | How::Drawn(_) => Ok(()),
        }
    }

    /// Prints unfinished lines, because nothing more will come.
    pub fn finish(self) -> Result<()> {
        match self.0 {
            How::Talk { held, .. } => err(held.as_bytes())?,
            How::Json { .. } => {}
            How::Bytes { streams: [first, second], .. } => {
                out(printable_lines(&String::from_utf8_lossy(&first.0)).as_bytes())?;
                err(printable_lines(&String::from_utf8_lossy(&second.0)).as_bytes())?;
            }
            How::Drawn(drawn) => out(drawn.finish().as_bytes())?,
        }
        Ok(())
    }
}

/// Prints an answer to standard output, and what was said before it to standard error. For an agent that reports no
/// answer, its text is the answer.
pub fn give_answer(said: &str, answer: Option<&str>) -> Result<()> {
    let answer = printable_text(answer.unwrap_or(said)).trim_end().to_owned();
    err(said.trim_end().strip_suffix(answer.as_str()).unwrap_or(said).as_bytes())?;
    out(if answer.is_empty() { answer } else { answer + "\n" }.as_bytes())
}

fn bytes(printed: Printed, show: Show) -> How {
    say_dropped(printed.skipped());
    How::Bytes { printed, streams: [Lines::default(), Lines::default()], show }
}

impl Lines {
    fn print(&mut self, piece: Piece<'_>, show: Show, to: fn(&[u8]) -> Result<()>) -> Result<()> {
        let Lines(partial) = self;
        match (piece, show) {
            (Piece::Dropped(bytes), _) => {
                // The end of the unfinished line was dropped with the rest.
                let begun = std::mem::take(partial);
                to(printable_lines(&String::from_utf8_lossy(&begun)).as_bytes())?;
                say_dropped(bytes);
                Ok(())
            }
            (Piece::Bytes(bytes), Show::Raw) => to(bytes),
            (Piece::Bytes(bytes), Show::Plain) => {
                partial.extend_from_slice(bytes);
                let end = end_of_whole(partial);
                let lines: Vec<u8> = partial.drain(..end).collect();
                to(printable_lines(&String::from_utf8_lossy(&lines)).as_bytes())
            }
        }
    }
}

pub fn say_dropped(bytes: u64) {
    if bytes > 0 {
        tell!("ostler: the oldest {} of output were dropped", crate::ui::time::size(bytes));
    }
}

pub fn out(bytes: &[u8]) -> Result<()> {
    if bytes.is_empty() { Ok(()) } else { crate::say::bytes(bytes) }
}

/// Errors are ignored: when standard error is gone, there is no place to report them.
pub fn err(bytes: &[u8]) -> Result<()> {
    let _ = std::io::stderr().lock().write_all(bytes);
    Ok(())
}

/// Why following stopped.
pub enum Left {
    Ended(Box<View>),
    /// The session asks something.
    Asks(Box<View>),
    /// A signal has arrived.
    Called,
}

/// Prints until the session has ended, `called` is readable, or the session asks.
pub fn follow(engine: &Engine, place: &Place, printer: &mut Printer, called: BorrowedFd<'_>) -> Result<Left> {
    let mut watch = SessionWatch::new(place)?;
    let mut news = News::Anything;
    loop {
        if news == News::Anything {
            // The view is read first: when it says "ended", everything that was printed is in the files.
            let view = engine.view(place)?;
            printer.print()?;
            if view.ended {
                return Ok(Left::Ended(Box::new(view)));
            }
            if view.asking.is_some() {
                // `called` first: a question must not hide a Ctrl-C.
                return Ok(if ready::is_readable(called)? { Left::Called } else { Left::Asks(Box::new(view)) });
            }
        } else {
            printer.print()?;
        }
        let (what, ready) = watch.wait(&[called])?;
        news = what;
        if ready.contains(&true) {
            return Ok(Left::Called);
        }
    }
}
