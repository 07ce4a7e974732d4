//! The process that plays a recording: it prints the same text at the same pace, waits wherever the agent waited for
//! input, and ends in the same way.
//!
//! It cannot invent anything. If its input differs from the recorded input, it reports that on standard error and exits
//! with 1.

use crate::input::{Given, Input};
use crate::options::Options;
use crate::recording::{Action, End, Recording, Run, Text, Unreadable};
use crate::substitution::Substitution;
use ostler_sys::signals::Signals;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::Signal;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Why a recording cannot continue.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("{0}")]
    Usage(String),
    #[error("{}: {error}", file.display())]
    Unreadable { file: PathBuf, error: Unreadable },
    #[error("{}: {error}", file.display())]
    File { file: PathBuf, error: io::Error },
    #[error("the recording has {there} runs, and all of them are played; it cannot continue")]
    NoFurtherRun { there: usize },
    #[error("recorded was {recorded}, but this is {given}; a recording cannot answer that")]
    OtherInput { recorded: String, given: String },
    #[error("input or output: {0}")]
    Stream(#[from] io::Error),
}

/// Plays the next run of a recording and returns the exit code.
pub fn main(words: impl Iterator<Item = String>) -> i32 {
    match Options::read(words).map_err(Trouble::Usage).and_then(|options| play(&options)) {
        Ok(code) => code,
        Err(trouble) => {
            // If standard error is closed, the exit code is still the same.
            let _ = writeln!(io::stderr(), "replay: {trouble}");
            1
        }
    }
}

fn play(options: &Options) -> Result<i32, Trouble> {
    let text = fs::read_to_string(&options.file).map_err(in_file(&options.file))?;
    let recording =
        Recording::read(&text).map_err(|error| Trouble::Unreadable { file: options.file.clone(), error })?;
    let count = Count::of(options)?;
    let there = recording.runs.len();
    let run = recording.runs.get(count.played).ok_or(Trouble::NoFurtherRun { there })?;
    let mut names = Substitution::default();
    names.learn(&recording.conversation, &options.conversation);
    let transcript = options
        .transcript
        .clone()
        .or_else(|| run.transcript.as_ref().map(|recorded| options.home.join(names.apply_to_path(recorded))));
    names.learn(crate::WORK, &json_text(&std::env::current_dir()?));
    Player { options, input: Input::new(), signals: listen(run)?, names, transcript, count }.play(run)
}

/// How many runs of this recording the conversation has had: the next process plays the next one.
struct Count {
    file: PathBuf,
    played: usize,
}

impl Count {
    fn of(options: &Options) -> Result<Count, Trouble> {
        let file = options.home.join("played").join(&options.conversation);
        let played = match fs::read_to_string(&file) {
            Ok(text) => text.trim().parse().unwrap_or(0),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(in_file(&file)(error)),
        };
        Ok(Count { file, played })
    }

    fn one_more(&self) -> Result<(), Trouble> {
        make_folder_of(&self.file)?;
        fs::write(&self.file, format!("{}\n", self.played + 1)).map_err(in_file(&self.file))
    }
}

/// SIGINT ends the player like any program, unless the recorded agent handled it as a request.
fn listen(run: &Run) -> io::Result<Option<Signals>> {
    let took = run.steps.iter().any(|step| step.action == Action::Interrupted);
    let died = run.end() == Some(End::Signal(Signal::INT.as_raw()));
    (took && !died).then(|| Signals::take(&[Signal::INT])).transpose()
}

struct Player<'a> {
    options: &'a Options,
    input: Input,
    signals: Option<Signals>,
    names: Substitution,
    transcript: Option<PathBuf>,
    count: Count,
}

impl Player<'_> {
    fn play(mut self, run: &Run) -> Result<i32, Trouble> {
        let mut begun = false;
        for step in &run.steps {
            let ours = !matches!(step.action, Action::Reads(_) | Action::InputEnds | Action::Interrupted);
            if ours {
                // The sleep does not wait for an event: the pause itself is part of what is played. Before input and
                // signals there is no pause: the player waits for them.
                // The recorded pause of the agent itself, which is part of what is played.
                std::thread::sleep(self.options.speed.pause(step.pause_ms));
            }
            // A process that got no input has not played its run.
            if ours && !begun {
                self.count.one_more()?;
                begun = true;
            }
            match &step.action {
                Action::Reads(text) => match self.input.expect(text, &mut self.names)? {
                    Given::Expected => {}
                    Given::End => return Ok(0),
                    Given::Else(given) => return Err(other_input(&text.text, &given)),
                },
                Action::InputEnds => match self.input.expect_end()? {
                    Given::Expected | Given::End => {}
                    Given::Else(given) => return Err(other_input("the end of input", &given)),
                },
                Action::Interrupted => self.await_interrupt()?,
                Action::Prints(text) => self.write(&mut io::stdout().lock(), text)?,
                Action::PrintsError(text) => self.write(&mut io::stderr().lock(), text)?,
                Action::Saves(text) => self.save(text)?,
                Action::Ends(End::Exit(code)) => return Ok(*code),
                Action::Ends(End::Signal(number)) => return Ok(die_of(*number)),
            }
        }
        Ok(0)
    }

    fn write(&self, to: &mut dyn Write, text: &Text) -> io::Result<()> {
        to.write_all(&Text { text: self.names.apply(&text.text), whole: text.whole }.bytes())?;
        to.flush()
    }

    fn save(&self, text: &Text) -> Result<(), Trouble> {
        let Some(transcript) = &self.transcript else { return Ok(()) };
        make_folder_of(transcript)?;
        let mut file =
            fs::OpenOptions::new().create(true).append(true).open(transcript).map_err(in_file(transcript))?;
        self.write(&mut file, text).map_err(in_file(transcript))
    }

    /// If SIGINT is not handled, it ends the player.
    fn await_interrupt(&self) -> io::Result<()> {
        let heard = || self.signals.as_ref().map_or(Ok(None), Signals::next);
        while heard()?.is_none() {
            let mut awaited: Vec<PollFd<'_>> =
                self.signals.iter().map(|signals| PollFd::new(signals, PollFlags::IN)).collect();
            match poll(&mut awaited, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Ends by the same signal as the agent; if the signal does not end the player, with the exit code that a shell would
/// show.
fn die_of(number: i32) -> i32 {
    if let Some(signal) = Signal::from_named_raw(number) {
        // This fails only for a signal that does not exist.
        let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
    }
    128 + number
}

fn other_input(recorded: &str, given: &str) -> Trouble {
    let short = |text: &str| text.chars().take(200).collect::<String>();
    Trouble::OtherInput { recorded: short(recorded), given: short(given) }
}

fn make_folder_of(file: &Path) -> Result<(), Trouble> {
    file.parent().map_or(Ok(()), |folder| fs::create_dir_all(folder).map_err(in_file(folder)))
}

fn in_file(file: &Path) -> impl FnOnce(io::Error) -> Trouble {
    let file = file.to_owned();
    move |error| Trouble::File { file, error }
}

/// A path as it is written inside a string of JSON.
fn json_text(path: &Path) -> String {
    let quoted = serde_json::Value::from(path.to_string_lossy()).to_string();
    quoted.trim_matches('"').to_owned()
}
