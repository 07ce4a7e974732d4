//! `ostler logs`: the conversation, or what a command printed.
//!
//! * [`said`]: a conversation, from what the agent told or from its transcript.
//! * [`printed`]: what a program printed. [`drawn`]: what one drew on a terminal, as text.
//! * [`sink`]: which lines of it are shown, and how.
//!
//! The last lines of a long log are found from its end: a part of the end is read, and a larger one when that was too little.

mod drawn;
mod json;
mod printed;
mod said;
mod sink;

pub use json::to_json;

use super::attach::pick;
use crate::args::Logs;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::follow::Show;
use crate::say::tell;
use crate::ui::table::window;
use crate::ui::time::parse_since;
use drawn::Drawn;
use jiff::Timestamp;
use ostler_core::record::{Mode, Speaks};
use ostler_engine::Place;
use ostler_engine::process::now;
use ostler_engine::request::look_and_record_to;
use ostler_engine::session_watch::{News, SessionWatch};
use ostler_store::folder::Folder;
use ostler_sys::notify::Watcher;
use ostler_view::closing;
use ostler_view::look::Depth;
use ostler_view::recorded;
use printed::Streams;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use said::{Manner, Said};
use sink::{All, Sink, Wanted};

/// How much of a log's end is read first, to find its last lines.
const FIRST_LOOK: u64 = 64 * 1024;

/// A transcript that is yet to come is looked for this often while a log is followed: nobody tells when an agent makes it. The
/// same where the kernel gives no file watch.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

pub fn run(context: &Context, args: &Logs) -> Result<Code> {
    let since = args.since.as_deref().map(|text| parse_since(text, now())).transpose();
    let wanted = Wanted {
        pattern: args.grep.as_deref().map(|text| sink::pattern(text, args.ignore_case)).transpose()?,
        timestamps: args.timestamps && !args.json,
        since: since.map_err(Failure::usage)?,
    };
    let id = match &args.id {
        Some(id) => id.clone(),
        None => pick(context, "logs", "no session ran in the last day; list older ones with: ostler ls -a", |_| true)?,
    };
    let place = context.engine.select(&id)?;
    let folder = place.open()?;
    if folder.newest_run()? == 0 {
        return Err(Failure::new(Code::Failed, format!("{} never ran, so there is nothing to show", place.id)));
    }
    // The end of a session that ended with nobody there is part of its log.
    if !place.archived && folder.newest_outcome()?.1.is_none() && folder.dir().is_ours()? {
        closing::record_if_lost(&folder)?;
    }
    let mut log = Log::open(context, args, &folder, &wanted)?;
    let mut sink = Sink::new(wanted);
    log.begin(args, &mut sink)?;
    if args.follow && !place.archived {
        log.follow(&place, &mut sink)?;
    } else {
        log.source.finish(&mut sink)?;
    }
    sink.end_lines()?;
    Ok(Code::Succeeded)
}

/// What is shown.
enum Source<'a> {
    Said(Box<Said<'a>>),
    Printed(Streams<'a>),
    Drawn(Box<Drawn<'a>>),
    /// Nothing yet: the transcript of an agent is yet to come.
    Nothing,
}

struct Log<'a> {
    context: &'a Context,
    folder: &'a Folder,
    source: Source<'a>,
    json: bool,
    /// The agent keeps a transcript, which is shown as soon as there is one.
    awaits_transcript: bool,
}

impl<'a> Log<'a> {
    fn open(context: &'a Context, args: &Logs, folder: &'a Folder, wanted: &Wanted) -> Result<Log<'a>> {
        let plan = folder.run(folder.newest_run()?)?.record()?.plan;
        let mut log = Log { context, folder, source: Source::Nothing, json: args.json, awaits_transcript: false };
        let draws = match (plan.speaks, plan.mode) {
            (Speaks::Turns | Speaks::OneTurn, _) | (Speaks::Bytes, Mode::Headless) => false,
            (Speaks::Hooks, _) | (Speaks::Bytes, Mode::Terminal) => true,
        };
        if args.screen && !draws {
            return Err(Failure::usage("this session does not run in a terminal and has no screen; omit --screen"));
        }
        if args.raw || plan.speaks == Speaks::Bytes && !draws {
            log.source = log.printed(args, wanted, draws)?;
        } else if !draws {
            log.source = Source::Said(Box::new(Said::told(folder, log.manner())));
        } else if args.screen {
            log.source = log.drawn(args, wanted)?;
        } else if let Some(source) = log.transcript()? {
            log.source = source;
        } else if recorded::is_kept(folder)? {
            log.source = log.without_transcript(args, wanted)?;
        } else {
            log.source = log.drawn(args, wanted)?;
        }
        Ok(log)
    }

    fn manner(&self) -> Manner {
        Manner { json: self.json, style: self.context.style, columns: window() }
    }

    fn printed(&self, args: &Logs, wanted: &Wanted, draws: bool) -> Result<Source<'a>> {
        if args.json {
            return Err(Failure::usage("a command has no conversation; print its output with: ostler logs --raw"));
        }
        let streams = Streams::new(self.folder, if args.raw { Show::Raw } else { Show::Plain })?;
        if wanted.since.is_some() || wanted.timestamps {
            if draws {
                return Err(no_times("what a program draws on its terminal"));
            }
            if !streams.has_times()? {
                return Err(no_times("the output of this session, which an older ostler started,"));
            }
        }
        Ok(Source::Printed(streams))
    }

    fn drawn(&self, args: &Logs, wanted: &Wanted) -> Result<Source<'a>> {
        if args.json {
            return Err(Failure::usage("a screen is not a conversation; print its text with: ostler logs --screen"));
        }
        if wanted.since.is_some() || wanted.timestamps {
            return Err(no_times("what a program draws on its terminal"));
        }
        Ok(Source::Drawn(Box::new(Drawn::new(self.folder)?)))
    }

    fn transcript(&self) -> Result<Option<Source<'a>>> {
        let reader = recorded::Source::find(self.folder, None)?.and_then(recorded::Reader::new);
        Ok(reader.map(|reader| Source::Said(Box::new(Said::recorded(reader, self.manner())))))
    }

    /// An agent that has not written its transcript, or whose transcript is gone: its screen is what there is.
    fn without_transcript(&mut self, args: &Logs, wanted: &Wanted) -> Result<Source<'a>> {
        self.awaits_transcript = true;
        let agent = self.folder.session()?.agent;
        let ended = self.folder.newest_outcome()?.1.is_some();
        let missing = if ended { "no transcript of it is found" } else { "it has not written its transcript yet" };
        if args.json || wanted.since.is_some() || wanted.timestamps {
            tell!("ostler: {agent}: {missing}; print the text of its screen with: ostler logs --screen");
            return Ok(Source::Nothing);
        }
        tell!("ostler: {agent}: {missing}; this is the text of its screen");
        self.drawn(args, wanted)
    }

    /// Shows what is there, or the end of it.
    fn begin(&mut self, args: &Logs, sink: &mut Sink) -> Result<()> {
        let since = sink.wanted.since;
        let Some(most) = args.lines else {
            self.source.rewind(None, since)?;
            return self.source.read_on(sink, !args.follow);
        };
        let mut size = FIRST_LOOK;
        loop {
            sink.keep_last(most);
            let all = self.source.rewind(Some(size), since)?;
            self.source.read_on(sink, !args.follow)?;
            if !args.follow {
                self.source.finish(sink)?;
                sink.end_lines()?;
            }
            if sink.has_the_end(all) {
                return sink.print_tail();
            }
            size = size.saturating_mul(4);
        }
    }

    /// Goes on until the session has ended.
    fn follow(&mut self, place: &Place, sink: &mut Sink) -> Result<()> {
        let mut watch = SessionWatch::new(place)?;
        let mut files = Watcher::new().ok();
        self.watch_transcript(&mut files)?;
        let mut news = News::Anything;
        loop {
            // The view first: when it says "ended", everything that was printed is in the files.
            let ended = news == News::Anything && look_and_record_to(Depth::Awaited, place)?.ended;
            self.look_for_transcript(sink, &mut files)?;
            self.source.read_on(sink, ended)?;
            if ended {
                return self.source.finish(sink);
            }
            let Some(descriptor) = watch.fd() else {
                news = watch.take_news()?;
                continue;
            };
            let reads_transcript = self.source.transcript().is_some();
            let mut fds = vec![PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
            fds.extend(files.as_ref().filter(|_| reads_transcript).map(|files| PollFd::new(files, PollFlags::IN)));
            let must_look = self.awaits_transcript || reads_transcript && files.is_none();
            match poll(&mut fds, must_look.then_some(&LOOK_AGAIN)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(std::io::Error::from(error).into()),
            }
            news = if fds[0].revents().is_empty() { News::Output } else { watch.take_news()? };
            if let Some(files) = &files {
                files.changed()?;
            }
        }
    }

    /// A transcript that has come takes the place of the screen, from its beginning. One that is read may go on in another
    /// file: the agent has begun another conversation.
    fn look_for_transcript(&mut self, sink: &mut Sink, files: &mut Option<Watcher>) -> Result<()> {
        if self.awaits_transcript {
            let Some(source) = self.transcript()? else {
                return Ok(());
            };
            self.awaits_transcript = false;
            self.source.finish(sink)?;
            sink.end_lines()?;
            if let Source::Drawn(_) = self.source {
                tell!("ostler: it has written its transcript; this is the conversation:");
            }
            self.source = source;
            return self.watch_transcript(files);
        }
        if let Some(reader) = self.source.transcript()
            && let Some(found) = recorded::Source::find(self.folder, Some(reader.source()))?
            && !found.is_same(reader.source())
        {
            reader.replace_source(found);
            return self.watch_transcript(files);
        }
        Ok(())
    }

    fn watch_transcript(&mut self, files: &mut Option<Watcher>) -> Result<()> {
        let (Some(watcher), Some(reader)) = (files.as_ref(), self.source.transcript()) else {
            return Ok(());
        };
        for file in reader.source().written_files() {
            match watcher.watch(&file) {
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                // No watch is to be had: looking again has to do.
                Err(_) => {
                    *files = None;
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl Source<'_> {
    fn rewind(&mut self, size: Option<u64>, since: Option<Timestamp>) -> Result<All> {
        match self {
            Source::Said(said) => said.rewind(size, since),
            Source::Printed(streams) => streams.rewind(size, since),
            Source::Drawn(drawn) => drawn.rewind(),
            Source::Nothing => Ok(All::of_out(true)),
        }
    }

    fn read_on(&mut self, sink: &mut Sink, ended: bool) -> Result<()> {
        match self {
            Source::Said(said) => said.read_on(sink, ended),
            Source::Printed(streams) => streams.read_on(sink),
            Source::Drawn(drawn) => drawn.read_on(sink),
            Source::Nothing => Ok(()),
        }
    }

    /// The ends of lines that will not come any more.
    fn finish(&mut self, sink: &mut Sink) -> Result<()> {
        match self {
            Source::Printed(streams) => streams.finish(sink),
            Source::Drawn(drawn) => drawn.finish(sink),
            Source::Said(_) | Source::Nothing => Ok(()),
        }
    }

    fn transcript(&mut self) -> Option<&mut recorded::Reader> {
        match self {
            Source::Said(said) => said.transcript(),
            Source::Printed(_) | Source::Drawn(_) | Source::Nothing => None,
        }
    }
}

fn no_times(what: &str) -> Failure {
    Failure::usage(format!("{what} has no times; omit --since and --timestamps"))
}
