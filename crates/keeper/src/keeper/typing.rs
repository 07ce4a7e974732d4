//! Typing a message into an agent's terminal. Agents treat keys that come close together as one paste, and the return
//! that should send the text as a line break in it. So the return is pressed as a person would press it: when the text
//! has appeared and the screen has come to rest.

use super::{Keeper, KeeperError};
use ostler_core::event::Event;
use ostler_core::life::Message;
use ostler_sys::clock::since_boot_ms;
use ostler_sys::dir::Dir;
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// How long the screen must have been at rest. Agents treat keys that come close together as one paste; the longest
/// such interval is 120 ms.
const REST_MS: u64 = 250;
/// The longest wait for a screen that never rests.
const LONGEST_MS: u64 = 3000;
/// The longest wait for typed text to appear: a busy machine is slow, and some programs show something else.
const UNSEEN_MS: u64 = 10_000;
/// A longer text may be broken up, or shown as its number of lines.
const SHOWN: usize = 400;
/// How much of the text's beginning is looked for.
const BEGINNING: usize = 40;
/// A text that cannot be looked for gets at least this long to arrive.
const UNKNOWN_MS: u64 = 1000;
/// How much of the drawn output is searched for the text.
const SEARCHED: u64 = 256 * 1024;

/// Ctrl-U. An agent that was interrupted may have put the last message back into its prompt, and the typed text would be
/// added to it.
pub(super) const CLEAR_LINE: &[u8] = b"\x15";

/// The end of a message, when its beginning is typed already.
pub(super) struct KeysToCome {
    name: String,
    keys: Vec<u8>,
    /// What should appear on the screen, without blanks, and from which position in the output. `None`: it is not known
    /// how the text will look.
    to_appear: Option<(String, u64)>,
    /// Begins when the program has taken the keys before.
    pause: Option<Pause>,
}

struct Pause {
    began_ms: u64,
    /// When the text was seen on the screen; or when it must be there, if it is not known how it will look.
    appeared_ms: Option<u64>,
    /// How much the program had drawn at the last look.
    drawn: u64,
    /// When the program drew something since the pause began.
    drew_ms: Option<u64>,
}

impl KeysToCome {
    /// The keys that come after this text. `drawn`: how much the program had drawn when the text was typed. `None` when
    /// there are no keys.
    pub(super) fn after(name: &str, text: &str, keys: Vec<u8>, drawn: u64) -> Option<KeysToCome> {
        let short = text.chars().count() <= SHOWN && !text.contains('\n');
        let beginning: String = without_blanks(text).chars().take(BEGINNING).collect();
        let to_appear = Some((beginning, drawn)).filter(|(text, _)| short && !text.is_empty());
        (!keys.is_empty()).then(|| KeysToCome { name: format!("{name}-sent"), keys, to_appear, pause: None })
    }

    /// When to look again.
    pub(super) fn due_ms(&self) -> Option<u64> {
        self.pause.as_ref().map(Pause::ends_ms)
    }

    /// Looks at the screen. `drawn`: how much is drawn now.
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

/// What was drawn since this position, as text.
fn drawn_since(run: &Dir, from: u64) -> io::Result<String> {
    let file = File::from(run.file("out", OFlags::RDONLY)?);
    let size = file.metadata()?.len();
    let start = from.max(size.saturating_sub(SEARCHED));
    let mut bytes = vec![0; usize::try_from(size.saturating_sub(start)).unwrap_or(0)];
    let length = file.read_at(&mut bytes, start)?;
    bytes.truncate(length);
    Ok(ostler_screen::printable(&String::from_utf8_lossy(&bytes)).into_owned())
}

/// Programs differ in where they break lines, and in whether they draw blanks or skip them.
fn without_blanks(text: &str) -> String {
    text.chars().filter(|character| !character.is_whitespace()).collect()
}

impl Keeper {
    /// Once the program has taken what was put in: types the rest of the message when it is time. True when all of it
    /// is typed.
    pub(super) fn all_is_typed(&mut self) -> Result<bool, KeeperError> {
        let (now, drawn) = (since_boot_ms(), self.output.end());
        let Some(rest) = &mut self.terminal.keys_to_come else {
            return Ok(true);
        };
        rest.look(now, drawn, self.run.dir())?;
        if rest.due_ms().is_some_and(|due| now < due) {
            return Ok(false);
        }
        if let Some(message) = self.state.feeding().filter(|_| self.shows_dialog()) {
            self.take_back_from_dialog(message)?;
            return Ok(false);
        }
        if let Some(rest) = self.terminal.keys_to_come.take() {
            self.put_in(&rest.name, rest.keys)?;
            self.input.pump(&self.handles)?;
        }
        Ok(self.input.is_taken())
    }

    /// The text went to a dialog that had opened before, or is in the prompt behind it. The message waits again. Its
    /// next attempt begins with an empty line.
    fn take_back_from_dialog(&mut self, message: Message) -> Result<(), KeeperError> {
        self.terminal.keys_to_come = None;
        // In a field of the dialog, this removes the text. That it was put in tells each later keeper that this attempt
        // is over.
        self.put_in(&over_name(message, self.attempt_of(message)), CLEAR_LINE.to_vec())?;
        self.input.pump(&self.handles)?;
        self.note(Event::Returned { n: message.n, place: message.at })
    }

    /// Which attempt to type the message this is: one more than were taken back.
    pub(super) fn attempt_of(&self, message: Message) -> u32 {
        (1..).take_while(|&attempt| self.input.received(&over_name(message, attempt)) > 0).count() as u32 + 1
    }
}

/// The name under which a message is typed.
pub(super) fn attempt_name(message: Message, attempt: u32) -> String {
    match attempt {
        1 => format!("message-{}", message.n),
        _ => format!("message-{}-{attempt}", message.n),
    }
}

/// The name under which the end of an attempt is put in.
fn over_name(message: Message, attempt: u32) -> String {
    format!("{}-over", attempt_name(message, attempt))
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
        // The program may break the text up in any way.
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
