//! Typing a message into a prompt that has to be seen on the screen: the agent does not report when it accepts
//! messages.
//!
//! The race this solves: keys that are typed before the prompt is there are lost, and a return that goes to a dialog
//! answers the dialog. So a message is typed when the prompt is seen to be empty and no turn runs; the return is
//! pressed when the text is seen in the prompt; and the message counts as delivered when it is found in the agent's
//! transcript. Until then it waits, and [`Event::MessageWaits`] has the reason.
//!
//! Only the return sends a message. Everything before it can be repeated by any keeper that looks at the screen. The
//! return itself can be repeated while the text is still in the prompt long after it: a second return in an empty
//! prompt does nothing. What was put in, and under which name, is in the run's own files. So a keeper that is killed at
//! any point here is replaced by one that sees how far the message has come.

use super::typing::{CLEAR_LINE, attempt_name};
use super::{Keeper, KeeperError};
use ostler_agents::prompt::Seen;
use ostler_core::event::Event;
use ostler_core::life::Message;
use ostler_core::record::{Mode, RequestKind, Speaks};
use ostler_store::inbox;
use ostler_sys::clock::since_boot_ms;
use ostler_sys::pause_points::{self, Point};
use ostler_view::proof;
use ostler_view::proof::Kept;

/// How long a text must have been visible before return is pressed. Agents treat keys that come close together as one
/// paste; the longest such interval is 120 ms.
const PAUSE_MS: u64 = 400;
/// A text that does not appear in the prompt within this time is typed again: it is neither in the prompt nor was it
/// sent. Return is pressed again when the text is still in the prompt after this time.
const AGAIN_MS: u64 = 10_000;
/// How often each of the two is done.
const ATTEMPTS: u32 = 3;
/// The first and the longest pause between two looks into the transcript, and for how long the keeper looks without
/// anything being drawn.
const FIRST_MS: u64 = 250;
const LAST_MS: u64 = 5000;
const UNPROMPTED_MS: u64 = 60_000;
/// A message that was sent but not found is reported after this time.
const TOLD_MS: u64 = 30_000;
/// A missing prompt is reported after this time.
const UNSEEN_MS: u64 = 30_000;
/// A conversation that has no id after this time is treated as one without an id.
const NAMED_MS: u64 = 10_000;

/// The progress of the message that is being typed, as far as it is not in the files.
#[derive(Debug, Default)]
pub(super) struct Prompting {
    /// Since when no prompt is seen.
    unseen_ms: Option<u64>,
    /// Since when the text is completely typed, and (`sent_ms`) since when the return is pressed.
    typed_ms: Option<u64>,
    /// Since when the text is seen in the prompt.
    shown_ms: Option<u64>,
    sent_ms: Option<u64>,
    /// When the transcript was looked into last, how much had been drawn by then, and after which pause it is looked
    /// into again if nothing is drawn.
    looked_ms: u64,
    drawn: u64,
    pause_ms: u64,
}

impl Keeper {
    /// Whether messages are typed into a prompt that has to be seen.
    pub(super) fn types_by_sight(&self) -> bool {
        self.record.plan.mode() == Mode::Terminal && self.agent.prompt().is_some()
    }

    /// Whether the prompt takes the next message now. When it does not, the reason is noted.
    pub(super) fn prompt_takes(&mut self) -> Result<bool, KeeperError> {
        let Some(seen) = self.see_prompt()? else {
            return Ok(false);
        };
        if self.is_ready(&seen) {
            return Ok(true);
        }
        if let Some(last) = self.state.last_fed().filter(|_| !seen.working)
            && let Some(interrupted_ms) = self.state.interrupt.last_sent_ms()
            && self.text_of(last)?.is_some_and(|text| seen.shows(&text))
        {
            // Once for each interrupt: text that is still there after that was typed by a person.
            self.put_in(&format!("clear-{interrupted_ms}"), CLEAR_LINE.to_vec())?;
            self.input.pump(&self.handles)?;
        }
        let why = self.why_not(&seen);
        let no_prompt = seen.typed.is_none() || seen.begins && self.awaits_copy();
        if no_prompt && !seen.dialog && !seen.working {
            // A starting agent has no prompt for a while.
            let (now, unseen_ms) =
                (since_boot_ms(), *self.terminal.prompting.unseen_ms.get_or_insert_with(since_boot_ms));
            if now < unseen_ms + UNSEEN_MS {
                self.wake_by(unseen_ms + UNSEEN_MS);
                return Ok(false);
            }
        } else {
            self.terminal.prompting.unseen_ms = None;
        }
        self.say_why_it_waits(why)?;
        Ok(false)
    }

    fn is_ready(&self, seen: &Seen) -> bool {
        seen.is_ready() && !(seen.begins && self.awaits_copy())
    }

    /// Whether the conversation that this session is a copy of has not been copied yet. Text that is typed before that
    /// would begin another conversation, without the copied one.
    fn awaits_copy(&self) -> bool {
        self.session.fork.is_some() && self.record.run == 1 && self.state.native_id.is_none()
    }

    /// How long the transcript is before a message is typed.
    pub(super) fn written_before_typing(&mut self) -> Result<Option<u64>, KeeperError> {
        if !self.types_by_sight() {
            return Ok(None);
        }
        self.name_conversation()?;
        let transcript = self.record.transcript.as_ref();
        let length = transcript.and_then(|path| std::fs::metadata(path).ok()).map_or(0, |file| file.len());
        Ok(Some(length))
    }

    /// Continues with the message that is being typed. True when something was noted or put in.
    pub(super) fn type_by_sight(&mut self) -> Result<bool, KeeperError> {
        if !self.types_by_sight() {
            return Ok(false);
        }
        let Some(message) = self.state.feeding() else {
            if self.terminal.prompting.typed_ms.take().is_some() {
                self.terminal.prompting = Prompting::default();
                self.terminal.screen.look_often();
            }
            return self.see_it_ready();
        };
        if !self.state.is_running() {
            return Ok(false);
        }
        let Some(text) = self.text_of(message)? else {
            self.note(Event::Alarm { text: format!("message {} in the inbox cannot be read", message.n) })?;
            self.note(Event::Delivered { n: message.n })?;
            return Ok(true);
        };
        if self.is_sent(message) {
            return self.confirm(message, &text);
        }
        if self.state.stop.is_some() {
            // Nothing more is typed into a session that is to end.
            return self.take_back_typed(message);
        }
        let name = self.attempt(message);
        if self.input.received(&name) == 0 {
            return Ok(self.prompt_takes()? && self.put_text(&name, &text)?);
        }
        // A predecessor may have been killed in the middle of the text.
        self.put_in(&name, self.agent.keys(&text).at_once)?;
        self.input.pump(&self.handles)?;
        if !self.input.is_taken() {
            return Ok(false);
        }
        self.send_typed(message, &text)
    }

    /// An agent that reports its turns does not report that its prompt is there.
    fn see_it_ready(&mut self) -> Result<bool, KeeperError> {
        let waits = self.state.is_running() && self.state.stop.is_none() && !self.state.mail.queue.is_empty();
        if !waits || self.state.is_ready() || self.record.plan.speaks() != Speaks::Hooks || !self.prompt_takes()? {
            return Ok(false);
        }
        self.note(Event::Ready)?;
        Ok(true)
    }

    /// The text is typed: presses return when it is seen.
    fn send_typed(&mut self, message: Message, text: &str) -> Result<bool, KeeperError> {
        let now = since_boot_ms();
        let typed_ms = *self.terminal.prompting.typed_ms.get_or_insert(now);
        let Some(seen) = self.see_prompt()? else {
            return Ok(false);
        };
        if seen.shows(text) && !seen.working && !seen.dialog {
            // An agent takes a return that follows a paste closely as a part of the paste.
            let pressed_ms = *self.terminal.prompting.shown_ms.get_or_insert(now) + PAUSE_MS;
            if now < pressed_ms {
                self.wake_by(pressed_ms);
                return Ok(false);
            }
            return self.press_return(message, text, 1);
        }
        self.terminal.prompting.shown_ms = None;
        if seen.is_ready() {
            // A person has sent or removed the text, or it never arrived.
            if self.has_arrived(message)? {
                return self.delivered(message);
            }
            if now < typed_ms + AGAIN_MS {
                self.wake_by(typed_ms + AGAIN_MS);
                return Ok(false);
            }
            let next = self.attempts(message) + 1;
            if next <= ATTEMPTS {
                self.terminal.prompting.typed_ms = None;
                return self.put_text(&attempt_name(message, next), text);
            }
            let (agent, id) = (self.agent.name(), self.session.id);
            self.say_why_it_waits(Some(format!("{agent} does not show what was typed; check it: ostler attach {id}")))?;
            return Ok(false);
        }
        let why = if seen.shows(text) && !seen.dialog { None } else { self.why_not(&seen) };
        self.say_why_it_waits(why)?;
        Ok(false)
    }

    /// The return is pressed: looks whether the message has arrived.
    fn confirm(&mut self, message: Message, text: &str) -> Result<bool, KeeperError> {
        self.input.pump(&self.handles)?;
        if !self.input.is_taken() {
            return Ok(false);
        }
        let (now, drawn) = (since_boot_ms(), self.output.end());
        let sent_ms = *self.terminal.prompting.sent_ms.get_or_insert(now);
        self.terminal.prompting.typed_ms.get_or_insert(now);
        let seen = self.see_prompt()?;
        let left = seen.as_ref().is_some_and(|seen| !seen.shows(text));
        let stays = seen.as_ref().is_some_and(|seen| seen.shows(text) && !seen.working && !seen.dialog);
        let again_ms = sent_ms + AGAIN_MS;
        if stays && self.state.stop.is_none() && self.presses(message) < ATTEMPTS {
            if now >= again_ms {
                self.terminal.prompting.sent_ms = None;
                return self.press_return(message, text, self.presses(message) + 1);
            }
            self.wake_by(again_ms);
        }
        let again_ms = if drawn == self.terminal.prompting.drawn { self.terminal.prompting.pause_ms } else { FIRST_MS };
        if now >= self.terminal.prompting.looked_ms + again_ms {
            if self.has_arrived(message)? {
                return self.delivered(message);
            }
            // Text for the program itself is in no transcript, and a conversation without an id cannot be looked into:
            // in both cases there is only the screen.
            let nameless = self.conversation_name().is_none() && now >= sent_ms + NAMED_MS;
            if left && (text.starts_with(['/', '!']) || nameless) {
                return self.delivered(message);
            }
            self.terminal.prompting.pause_ms = (self.terminal.prompting.pause_ms * 2).clamp(FIRST_MS, LAST_MS);
            (self.terminal.prompting.looked_ms, self.terminal.prompting.drawn) = (now, drawn);
        }
        if drawn != self.terminal.prompting.drawn {
            self.wake_by(self.terminal.prompting.looked_ms + FIRST_MS);
        } else if now < sent_ms + UNPROMPTED_MS {
            self.wake_by(self.terminal.prompting.looked_ms + self.terminal.prompting.pause_ms);
        }
        if now >= sent_ms + TOLD_MS
            && let Some(seen) = seen
        {
            let (agent, id) = (self.agent.name(), self.session.id);
            let why = if seen.shows(text) {
                format!("it was typed, but {agent} did not accept it; press Enter there: ostler attach {id}")
            } else if seen.dialog {
                dialog(agent, id.as_str())
            } else {
                format!("it was sent, but {agent} has not recorded it; check it: ostler attach {id}")
            };
            self.say_why_it_waits(Some(why))?;
        }
        Ok(false)
    }

    /// The agent is gone: a message that was sent and is in the transcript was delivered; any other message waits
    /// again.
    pub(super) fn settle_typed(&mut self) -> Result<(), KeeperError> {
        let Some(message) = self.state.feeding().filter(|_| self.types_by_sight()) else {
            return Ok(());
        };
        if !self.is_sent(message) {
            self.take_back_typed(message)?;
        } else if self.has_arrived(message)? {
            self.delivered(message)?;
        } else if self.conversation_name().is_some() {
            self.take_back_typed(message)?;
        } else {
            let text = format!(
                "message {} may have been delivered, but this conversation cannot be read; send it again if it is missing",
                message.n
            );
            self.note(Event::Alarm { text })?;
            self.delivered(message)?;
        }
        Ok(())
    }

    fn take_back_typed(&mut self, message: Message) -> Result<bool, KeeperError> {
        self.note(Event::Returned { n: message.n, place: message.at })?;
        Ok(true)
    }

    fn delivered(&mut self, message: Message) -> Result<bool, KeeperError> {
        pause_points::at(Point::MessageTaken);
        self.note(Event::Delivered { n: message.n })?;
        Ok(true)
    }

    fn put_text(&mut self, name: &str, text: &str) -> Result<bool, KeeperError> {
        self.put_in(name, self.agent.keys(text).at_once)?;
        self.input.pump(&self.handles)?;
        Ok(true)
    }

    /// Whether the message is in the agent's own transcript.
    fn has_arrived(&mut self, message: Message) -> Result<bool, KeeperError> {
        self.name_conversation()?;
        let mark = proof::mark_of(self.agent, &self.folder, Mode::Terminal, message)?;
        match (Kept::of(&self.record, &self.state), mark) {
            (Some(kept), Some(mark)) => self.is_held(&kept, &[mark]),
            (Some(_), None) | (None, _) => Ok(false),
        }
    }

    fn conversation_name(&self) -> Option<&String> {
        self.state.native_id.as_ref().or(self.record.native_id.as_ref())
    }

    fn text_of(&self, message: Message) -> Result<Option<String>, KeeperError> {
        Ok(match inbox::read_one(self.folder.dir(), message.at)?.map(|request| request.kind) {
            Some(RequestKind::Message { text, .. }) => Some(text),
            Some(_) | None => None,
        })
    }

    fn press_return(&mut self, message: Message, text: &str, time: u32) -> Result<bool, KeeperError> {
        self.put_in(&sent_name(message, time), self.agent.keys(text).after_a_pause)?;
        pause_points::at(Point::MessageFed);
        self.input.pump(&self.handles)?;
        Ok(true)
    }

    fn is_sent(&self, message: Message) -> bool {
        self.presses(message) > 0
    }

    /// How often return was pressed for the message.
    fn presses(&self, message: Message) -> u32 {
        (1..=ATTEMPTS).take_while(|&time| self.input.received(&sent_name(message, time)) > 0).count() as u32
    }

    /// How often the message was typed.
    fn attempts(&self, message: Message) -> u32 {
        (1..=ATTEMPTS).take_while(|&attempt| self.input.received(&attempt_name(message, attempt)) > 0).count() as u32
    }

    /// The name under which the message is being typed.
    fn attempt(&self, message: Message) -> String {
        attempt_name(message, self.attempts(message).max(1))
    }

    /// Why a message cannot be typed into what is seen on the screen; `None` when it soon can be.
    fn why_not(&self, seen: &Seen) -> Option<String> {
        let (agent, id) = (self.agent.name(), self.session.id);
        match &seen.typed {
            _ if seen.dialog => Some(dialog(agent, id.as_str())),
            // The message only waits for the end of the turn.
            _ if seen.working => None,
            Some(typed) if !typed.is_empty() => {
                Some(format!("{agent}'s prompt contains other text; send or clear it: ostler attach {id}"))
            }
            Some(_) if seen.begins && self.awaits_copy() => {
                Some(format!("{agent} has not opened the copy of the conversation; check it: ostler attach {id}"))
            }
            Some(_) => None,
            None => Some(format!("{agent} does not show its prompt; check it: ostler attach {id}")),
        }
    }

    pub(super) fn say_why_it_waits(&mut self, why: Option<String>) -> Result<(), KeeperError> {
        if self.state.mail.waits != why { self.note(Event::MessageWaits { why }) } else { Ok(()) }
    }
}

pub(super) fn dialog(agent: &str, id: &str) -> String {
    format!("{agent} shows a dialog; answer it: ostler attach {id}")
}

/// The name of the return that sends the message.
fn sent_name(message: Message, time: u32) -> String {
    match time {
        1 => format!("message-{}-sent", message.n),
        _ => format!("message-{}-sent-{time}", message.n),
    }
}
