//! A look at an agent's prompt, by a short-lived process of its own: the screen comes from untrusted bytes, and the
//! memory for drawing it is freed when the process ends.
//!
//! A look is taken only while a message waits to be typed or confirmed, when the agent has drawn something and the
//! screen has come to rest, or has not come to rest for a while. Nothing is looked at while nothing is drawn.

use super::database_query::answer;
use super::{Keeper, KeeperError};
use crate::SCREEN;
use crate::handles::Handles;
use ostler_agents::prompt::{self, Seen};
use ostler_sys::clock::since_boot_ms;
use ostler_sys::dir::Dir;
use ostler_view::terminal;
use rustix::fd::AsFd;
use rustix::fs::MemfdFlags;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, Write};

const RUN: &str = "run";
const ANSWER: &str = "answer";

/// How long the screen must have been at rest. Agents treat keys that come close together as one paste; the longest
/// such interval is 120 ms.
const REST_MS: u64 = 250;
/// How often a screen that does not come to rest is looked at: at first, and when it goes on for long.
const OFTEN_MS: u64 = 1000;
const SELDOM_MS: u64 = 5000;
/// How many looks are taken at the first pace.
const OFTEN: u32 = 60;

/// What was seen last.
#[derive(Debug, Default)]
pub(super) struct ScreenWatch {
    /// How much had been drawn at the last check, and when that changed.
    drawn: u64,
    drawn_ms: u64,
    /// Since when there is something drawn that was not looked at.
    unseen_ms: Option<u64>,
    seen: Option<Look>,
    looks: u32,
}

/// The result of a look, and how much had been drawn by then.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Look {
    position: u64,
    seen: Seen,
}

/// What to do to see the screen.
#[derive(Clone, Debug)]
enum Sight {
    /// Nothing: the screen has not changed since the last look.
    Known(Seen),
    /// The screen is to be looked at now.
    Due,
    /// Not before this time.
    At(u64),
}

impl ScreenWatch {
    /// What to do to see the screen. `drawn`: how much is drawn now.
    fn see(&mut self, drawn: u64, now: u64) -> Sight {
        if self.drawn != drawn || self.unseen_ms.is_none() {
            (self.drawn, self.drawn_ms) = (drawn, now);
            self.unseen_ms.get_or_insert(now);
        }
        if let Some(look) = self.seen.as_ref().filter(|look| look.position == drawn) {
            return Sight::Known(look.seen.clone());
        }
        let pace = if self.looks < OFTEN { OFTEN_MS } else { SELDOM_MS };
        let due = (self.drawn_ms + REST_MS).min(self.unseen_ms.unwrap_or(now) + pace);
        if now < due {
            return Sight::At(due);
        }
        self.looks = self.looks.saturating_add(1);
        self.unseen_ms = None;
        Sight::Due
    }

    /// The next message begins with the first pace again.
    pub fn look_often(&mut self) {
        self.looks = 0;
    }
}

impl Keeper {
    /// What the screen shows now; `None` when it is not time to look, or when the look failed. Sets a wake-up for the
    /// time of the next look.
    pub(super) fn see_prompt(&mut self) -> Result<Option<Seen>, KeeperError> {
        let now = since_boot_ms();
        match self.terminal.screen.see(self.output.end(), now) {
            Sight::Known(seen) => return Ok(Some(seen)),
            Sight::At(due) => {
                self.wake_by(due);
                return Ok(None);
            }
            Sight::Due => {}
        }
        // A look that fails is taken again when something is drawn, or after a while.
        match look(&self.handles, self.run.dir(), self.agent.name()) {
            Ok(look) => {
                let seen = look.seen.clone();
                self.terminal.screen.seen = Some(look);
                Ok(Some(seen))
            }
            Err(_) => {
                self.wake_by(now + SELDOM_MS);
                Ok(None)
            }
        }
    }
}

fn look(handles: &Handles, run: &Dir, agent: &str) -> io::Result<Look> {
    let mut file = File::from(rustix::fs::memfd_create(ANSWER, MemfdFlags::CLOEXEC)?);
    let given = [(RUN, run.as_fd()), (ANSWER, file.as_fd())];
    let process = handles.start_with_words(SCREEN, &[agent], &given).map_err(io::Error::other)?;
    if answer(&process)? != Some(0) {
        return Err(io::Error::other("the screen could not be read"));
    }
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// The process called `__screen`.
#[must_use]
pub fn main(arguments: &[String]) -> i32 {
    i32::from(look_and_tell(arguments).is_err())
}

fn look_and_tell(arguments: &[String]) -> io::Result<()> {
    let handles = Handles::from_arguments(arguments)?;
    let prompt = arguments.first().and_then(|name| ostler_agents::find(name)?.prompt());
    let prompt = prompt.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let run = Dir::adopt(rustix::io::fcntl_dupfd_cloexec(handles.need(RUN)?, 3)?);
    let now = terminal::now(&run).map_err(io::Error::other)?;
    let (rows, (row, column)) = (now.screen.text(), now.screen.cursor());
    let screen = prompt::Screen { rows: &rows, cursor: (row.into(), column.into()), title: now.screen.title() };
    let look = Look { position: now.position, seen: prompt(&screen) };
    let mut file = File::from(rustix::io::fcntl_dupfd_cloexec(handles.need(ANSWER)?, 3)?);
    file.write_all(&serde_json::to_vec(&look)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(sight: &Sight) -> Option<u64> {
        match sight {
            Sight::At(ms) => Some(*ms),
            Sight::Known(_) | Sight::Due => None,
        }
    }

    #[test]
    fn a_screen_is_looked_at_when_it_has_come_to_rest_and_not_again_before_it_changes() {
        let mut watch = ScreenWatch::default();
        assert_eq!(due(&watch.see(10, 1000)), Some(1000 + REST_MS));
        assert_eq!(due(&watch.see(20, 1100)), Some(1100 + REST_MS), "it has drawn something");
        assert!(matches!(watch.see(20, 1100 + REST_MS), Sight::Due));
        watch.seen = Some(Look { position: 20, seen: Seen::default() });
        assert!(matches!(watch.see(20, 100_000), Sight::Known(_)));
        assert_eq!(due(&watch.see(21, 100_000)), Some(100_000 + REST_MS));
    }

    #[test]
    fn a_screen_that_never_rests_is_looked_at_often_and_later_seldom() {
        let mut watch = ScreenWatch::default();
        let mut looked = Vec::new();
        for ms in (0..400_000).step_by(100) {
            if matches!(watch.see(ms, ms), Sight::Due) {
                looked.push(ms);
            }
        }
        let often = OFTEN as usize;
        let pauses: Vec<u64> = looked.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(pauses[..often - 1].iter().all(|pause| (OFTEN_MS..SELDOM_MS).contains(pause)));
        assert!(looked.len() > often && pauses[often..].iter().all(|pause| *pause >= SELDOM_MS));
        watch.look_often();
        assert_eq!(watch.looks, 0);
    }
}
