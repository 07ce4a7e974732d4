//! Typing a message into an agent's terminal. Agents take keys that come close together for one paste, and the return that
//! should send it for a line break in it. So the return is pressed as a person would: when the text has appeared and the
//! screen has come to rest.

use super::{Keeper, KeeperError};
use ostler_sys::clock::since_boot_ms;
use ostler_sys::dir::Dir;
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// How long the screen must have been at rest. The agent with the longest memory takes keys for one paste that come within
/// 120 ms of each other.
const REST_MS: u64 = 250;
/// A screen that never rests is not waited for any longer than this.
const LONGEST_MS: u64 = 3000;
/// Nor is one that does not show what is typed: a busy machine takes its time, and some programs show something else.
const UNSEEN_MS: u64 = 10_000;
/// A text that is longer may be broken up, or shown as the number of its lines.
const SHOWN: usize = 400;
/// So much of its beginning is looked for.
const BEGINNING: usize = 40;
/// What nobody can look for has at least this long to arrive.
const UNKNOWN_MS: u64 = 1000;
/// So much of what was drawn is searched for it.
const SEARCHED: u64 = 256 * 1024;

/// The end of a message, when its beginning is typed already.
pub(super) struct KeysToCome {
    name: String,
    keys: Vec<u8>,
    /// What should appear on the screen, without blanks, and from where on in the output. `None`: nobody knows how it will
    /// look.
    to_appear: Option<(String, u64)>,
    /// Begins when the program has taken what comes before.
    pause: Option<Pause>,
}

struct Pause {
    began_ms: u64,
    /// When the text was seen on the screen, or must be there where nobody knows how it will look.
    appeared_ms: Option<u64>,
    /// How much it had drawn when we last looked.
    drawn: u64,
    /// When it drew something since the pause began.
    drew_ms: Option<u64>,
}

impl KeysToCome {
    /// The keys that come after this text, typed when the program had drawn so much. Nothing, when there are none.
    pub(super) fn after(name: &str, text: &str, keys: Vec<u8>, drawn: u64) -> Option<KeysToCome> {
        let short = text.chars().count() <= SHOWN && !text.contains('\n');
        let beginning: String = without_blanks(text).chars().take(BEGINNING).collect();
        let to_appear = Some((beginning, drawn)).filter(|(text, _)| short && !text.is_empty());
        (!keys.is_empty()).then(|| KeysToCome { name: format!("{name}-sent"), keys, to_appear, pause: None })
    }

    /// When to look again whether it is time.
    pub(super) fn due_ms(&self) -> Option<u64> {
        self.pause.as_ref().map(Pause::ends_ms)
    }

    /// Looks at the screen, of which so much is drawn now.
    fn look(&mut self, now: u64, drawn: u64, run: &Dir) -> io::Result<()> {
        let unknown = self.to_appear.is_none().then_some(now + UNKNOWN_MS);
        let first = Pause { began_ms: now, appeared_ms: unknown, drawn, drew_ms: None };
        let is_first = self.pause.is_none();
        let pause = self.pause.get_or_insert(first);
        let drew = pause.drawn != drawn;
        if drew {
            pause.drawn = drawn;
            pause.drew_ms = Some(now);
        }
        if (drew || is_first)
            && pause.appeared_ms.is_none()
            && let Some((text, from)) = &self.to_appear
            && without_blanks(&drawn_since(run, *from)?).contains(text.as_str())
        {
            pause.appeared_ms = Some(now);
            pause.drew_ms = Some(now);
        }
        Ok(())
    }
}

impl Pause {
    fn ends_ms(&self) -> u64 {
        match self.appeared_ms {
            None => self.began_ms + UNSEEN_MS,
            Some(appeared) => {
                let longest = appeared + LONGEST_MS;
                self.drew_ms.map_or(longest, |ms| longest.min(ms.max(appeared) + REST_MS))
            }
        }
    }
}

/// What was drawn since, as text.
fn drawn_since(run: &Dir, from: u64) -> io::Result<String> {
    let file = File::from(run.file("out", OFlags::RDONLY)?);
    let size = file.metadata()?.len();
    let start = from.max(size.saturating_sub(SEARCHED));
    let mut bytes = vec![0; usize::try_from(size.saturating_sub(start)).unwrap_or(0)];
    let length = file.read_at(&mut bytes, start)?;
    bytes.truncate(length);
    Ok(ostler_screen::printable(&String::from_utf8_lossy(&bytes)).into_owned())
}

/// Where a program breaks its lines, and whether it draws blanks or jumps over them, is its own affair.
fn without_blanks(text: &str) -> String {
    text.chars().filter(|character| !character.is_whitespace()).collect()
}

impl Keeper {
    /// Once the program has taken what was put in: types the rest of the message when it is time. True when all of it is
    /// typed.
    pub(super) fn all_is_typed(&mut self) -> Result<bool, KeeperError> {
        let (now, drawn) = (since_boot_ms(), self.output.end());
        let Some(rest) = &mut self.terminal.keys_to_come else {
            return Ok(true);
        };
        rest.look(now, drawn, self.run.dir())?;
        if rest.due_ms().is_some_and(|due| now < due) {
            return Ok(false);
        }
        if let Some(rest) = self.terminal.keys_to_come.take() {
            self.put_in(&rest.name, rest.keys)?;
            self.input.pump(&self.handles)?;
        }
        Ok(self.input.is_taken())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// A run that has drawn this.
    fn drawn(text: &str) -> (tempfile::TempDir, Dir, u64) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("out"), text).unwrap();
        let run = Dir::open(folder.path()).unwrap();
        (folder, run, text.len() as u64)
    }

    #[test]
    fn return_is_pressed_when_the_text_has_appeared_and_the_screen_rests() {
        let (folder, run, before) = drawn("prompt> ");
        let mut keys = KeysToCome::after("message-1", "say hello", b"\r".to_vec(), before).unwrap();
        assert_eq!(keys.due_ms(), None, "the program has not taken the text");
        keys.look(1000, before, &run).unwrap();
        assert_eq!(keys.due_ms(), Some(1000 + UNSEEN_MS));
        // It is broken up as the program likes.
        std::fs::write(folder.path().join("out"), "prompt> \x1b[1msay\x1b[0m\r\n  hello").unwrap();
        keys.look(2000, before + 20, &run).unwrap();
        assert_eq!(keys.due_ms(), Some(2000 + REST_MS));
        keys.look(2100, before + 30, &run).unwrap();
        assert_eq!(keys.due_ms(), Some(2100 + REST_MS), "it has drawn more");
        keys.look(2000 + LONGEST_MS, before + 40, &run).unwrap();
        assert_eq!(keys.due_ms(), Some(2000 + LONGEST_MS), "a screen that never rests is not waited for longer");
    }

    #[test]
    fn a_text_of_several_lines_is_not_looked_for() {
        let (_folder, run, before) = drawn("prompt> ");
        let mut keys = KeysToCome::after("message-1", "one\ntwo", b"\r".to_vec(), before).unwrap();
        keys.look(1000, before, &run).unwrap();
        assert_eq!(keys.due_ms(), Some(1000 + UNKNOWN_MS + LONGEST_MS));
        keys.look(1500, before + 1, &run).unwrap();
        assert_eq!(keys.due_ms(), Some(1000 + UNKNOWN_MS + REST_MS));
        assert!(KeysToCome::after("message-1", "text", Vec::new(), before).is_none(), "nothing is to come");
    }
}
