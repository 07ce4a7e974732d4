//! The headless face: JSON lines in from stdin, JSON lines out to stdout.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use serde_json::Value;
use uuid::Uuid;

use crate::face::{Command, Ending, Face, Prompt, Scene};
use crate::leave::{Leave, Trouble};
use crate::lines::Lines;
use crate::options::Options;
use crate::output::Output;
use crate::protocol::{self, Control, Incoming, Speaker};

/// More than a pipe holds, so that one read empties it.
const READ_SIZE: usize = 256 * 1024;

pub struct Headless {
    stdin: io::Stdin,
    output: Output,
    lines: Lines,
    buffer: Vec<u8>,
    speaker: Speaker,
    /// Whether text is also sent piece by piece.
    partial: bool,
}

impl Headless {
    pub fn new(output: Output, options: &Options, partial: bool) -> Headless {
        Headless {
            stdin: io::stdin(),
            output,
            lines: Lines::default(),
            buffer: vec![0; READ_SIZE],
            speaker: Speaker {
                session: options.conversation.session(),
                cwd: options.cwd.display().to_string(),
                asks: options.ask,
            },
            partial,
        }
    }

    fn say(&self, line: &Value) -> Result<(), Leave> {
        let mut bytes = line.to_string().into_bytes();
        bytes.push(b'\n');
        self.output.write(&bytes)
    }
}

impl Face for Headless {
    fn input(&self) -> BorrowedFd<'_> {
        self.stdin.as_fd()
    }

    fn has_keyboard(&self) -> bool {
        false
    }

    fn hear(&mut self) -> Result<Vec<Command>, Leave> {
        let length = match rustix::io::read(&self.stdin, &mut self.buffer) {
            Ok(length) => length,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(Vec::new()),
            Err(error) => return Err(Leave::Trouble(Trouble::Input(error.into()))),
        };
        let mut incoming = Vec::new();
        let mut read = |line: &[u8]| -> Result<(), Leave> {
            if !line.trim_ascii().is_empty() {
                incoming.push(protocol::read(line).map_err(|why| Leave::Trouble(Trouble::Malformed(why)))?);
            }
            Ok(())
        };
        if length == 0 {
            read(&self.lines.rest())?;
        } else {
            self.lines.feed(&self.buffer[..length], read)?;
        }
        let mut commands = Vec::new();
        for message in incoming {
            match message {
                Incoming::User { uuid, text } => {
                    let uuid = uuid.unwrap_or_else(|| Uuid::new_v4().to_string());
                    commands.push(Command::Prompt(Prompt { uuid, text }));
                }
                Incoming::Control { request_id, request } => {
                    self.say(&protocol::agrees(&request_id))?;
                    match request {
                        Control::Interrupt => commands.push(Command::Interrupt),
                        Control::Other => {}
                    }
                }
                Incoming::Answer { request_id, verdict } => commands.push(Command::Answer { request_id, verdict }),
                Incoming::Unknown => {}
            }
        }
        if length == 0 {
            commands.push(Command::NoMoreInput);
        }
        Ok(commands)
    }

    fn show(&mut self, scene: Scene<'_>) -> Result<(), Leave> {
        match scene {
            Scene::TurnBegins { .. } => self.say(&self.speaker.init()),
            Scene::Words(text) if self.partial => self.say(&self.speaker.words(text)),
            Scene::Words(_) => Ok(()),
            Scene::Said(message) => self.say(&self.speaker.message(message)),
            Scene::Asks(question) => self.say(&protocol::asks(question)),
            Scene::AskedEnough { question, answered: false } => self.say(&protocol::withdraws(question)),
            Scene::AskedEnough { answered: true, .. } => Ok(()),
            Scene::TurnEnds(report) => {
                if let Ending::Limited { resets_at: Some(resets_at) } = &report.ending {
                    self.say(&self.speaker.limit(*resets_at))?;
                }
                self.say(&self.speaker.result(report))
            }
        }
    }

    fn resized(&mut self) -> Result<(), Leave> {
        Ok(())
    }
}
