//! `ostler logs`: the conversation, or what a command printed.
//!
//! * [`sink`]: which lines are shown, and how.

mod sink;

use super::attach::pick;
use crate::args::Logs;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::follow::say_dropped;
use crate::say::tell;
use crate::ui::conversation::Talk;
use crate::ui::style::Style;
use crate::ui::table::window;
use crate::ui::time::parse_since;
use ostler_core::limits::counted;
use ostler_engine::logs::{Lines, Log, NoTranscript, Piece, Request, Side, to_json};
use ostler_engine::process::now;
use sink::{Sink, Wanted};

/// How much of a log's end is read first, to find its last lines.
const FIRST_LOOK: u64 = 64 * 1024;

pub fn run(context: &Context, args: &Logs) -> Result<Code> {
    let since = args.since.as_deref().map(|text| parse_since(text, now())).transpose();
    let wanted = Wanted {
        pattern: args.grep.as_deref().map(|text| sink::pattern(text, args.ignore_case)).transpose()?,
        timestamps: args.timestamps && !args.json,
        since: since.map_err(Failure::usage)?,
    };
    let id = match &args.id {
        Some(id) if args.foreign => return foreign(context, args, id, wanted),
        Some(id) => id.clone(),
        None => pick(context, "logs", "no session ran in the last day; list older ones with: ostler ls -a", |_| true)?,
    };
    let records = context.engine.records(&context.engine.select(&id)?)?;
    let request = Request {
        raw: args.raw,
        screen: args.screen,
        conversation: args.json,
        timed: wanted.timestamps,
        since: wanted.since,
    };
    let mut log = records.log(&request)?;
    if let Some(missing) = log.no_transcript() {
        tell!("ostler: {}", no_transcript(missing));
    }
    let mut shown = Shown::new(context.style, args.json, Sink::new(wanted));
    begin(&mut log, args, &mut shown)?;
    if args.follow && !records.are_archived() {
        while log.follow(shown.lines(), &mut |piece| shown.take(piece))? {
            shown.check()?;
        }
    } else {
        log.finish(&mut |piece| shown.take(piece));
    }
    shown.check()?;
    shown.sink.end_lines()?;
    Ok(Code::Succeeded)
}

/// The log of a conversation that belongs to no session.
fn foreign(context: &Context, args: &Logs, word: &str, wanted: Wanted) -> Result<Code> {
    let mut shown = Shown::new(context.style, args.json, Sink::new(wanted));
    if let Some(most) = args.lines {
        shown.begin_again(most);
    }
    let damaged = context.engine.foreign_log(word, &mut |piece| shown.take(piece))?;
    shown.check()?;
    shown.sink.end_lines()?;
    shown.sink.print_tail()?;
    if damaged > 0 {
        let lines = counted(damaged, "line", "lines");
        tell!("ostler: {lines} of the transcript could not be understood, and may have more");
    }
    Ok(Code::Succeeded)
}

/// Shows the log so far, or its end.
fn begin(log: &mut Log<'_>, args: &Logs, shown: &mut Shown) -> Result<()> {
    let (since, ended) = (shown.sink.wanted.since, !args.follow);
    let Some(most) = args.lines else {
        log.rewind(None, since, &mut |piece| shown.take(piece))?;
        log.read_on(shown.lines(), ended, &mut |piece| shown.take(piece))?;
        return shown.check();
    };
    let mut size = FIRST_LOOK;
    loop {
        shown.begin_again(most);
        let all = log.rewind(Some(size), since, &mut |piece| shown.take(piece))?;
        log.read_on(shown.lines(), ended, &mut |piece| shown.take(piece))?;
        if ended {
            log.finish(&mut |piece| shown.take(piece));
            shown.sink.end_lines()?;
        }
        shown.check()?;
        if shown.sink.has_the_end(all) {
            return shown.sink.print_tail();
        }
        size = size.saturating_mul(4);
    }
}

fn no_transcript(missing: &NoTranscript) -> String {
    let NoTranscript { agent, ended, gives_screen } = missing;
    let why = if *ended { "no transcript of it is found" } else { "it has not written its transcript yet" };
    match gives_screen {
        true => format!("{agent}: {why}; this is the text of its screen"),
        false => format!("{agent}: {why}; print the text of its screen with: ostler logs --screen"),
    }
}

/// Turns the pieces of a log into lines.
struct Shown {
    style: Style,
    json: bool,
    talk: Talk,
    sink: Sink,
    /// The first error while printing.
    failed: Option<Failure>,
}

impl Shown {
    fn new(style: Style, json: bool, sink: Sink) -> Shown {
        Shown { style, json, talk: Talk::new(style, window()), sink, failed: None }
    }

    /// Forgets what was collected so far; of what comes next, only the last `most` lines are kept.
    fn begin_again(&mut self, most: usize) {
        self.sink.keep_last(most);
        self.talk = Talk::new(self.style, window());
    }

    fn lines(&self) -> Lines {
        if self.sink.is_plain() { Lines::AsTheyCome } else { Lines::Whole }
    }

    fn take(&mut self, piece: Piece<'_>) {
        if self.failed.is_none() {
            self.failed = self.show(piece).err();
        }
    }

    fn show(&mut self, piece: Piece<'_>) -> Result<()> {
        match piece {
            Piece::Item { at, .. } if !self.sink.accepts(at) => Ok(()),
            Piece::Item { item, at } if self.json => self.sink.object(to_json(&item)?, at),
            Piece::Item { item, at } => {
                let (mut said, mut about) = (String::new(), String::new());
                self.talk.show(&item, &mut said, &mut about);
                self.sink.text(Side::Out, at, said.as_bytes())?;
                self.sink.text(Side::Out, at, about.as_bytes())
            }
            Piece::Text { side, at, bytes } => self.sink.text(side, at, bytes),
            Piece::Dropped(bytes) => {
                say_dropped(bytes);
                Ok(())
            }
            Piece::TranscriptBegins { after_screen } => {
                self.sink.end_lines()?;
                if after_screen {
                    tell!("ostler: it has written its transcript; this is the conversation:");
                }
                Ok(())
            }
        }
    }

    fn check(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }
}
