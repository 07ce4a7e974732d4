//! Notifications as far as a person handles them: a test of every way, and clearing what waits or was given up. Keepers
//! record the moments and start the sender; see `ostler_notify`.

use crate::engine::Engine;
use crate::error::{Error, Result};
use ostler_core::event::Event;
use ostler_core::id::SessionId;
use ostler_core::moment::{self, Moment};
use ostler_core::outcome::Kind;
use ostler_core::view::View;
use ostler_keeper::keeper::{start_sender, start_sender_in};
pub use ostler_notify::message::Message;
use ostler_notify::spool::{LIFETIME, Record, Spool};
use ostler_notify::ways::{self, NotSent};
use ostler_store::home::Place;
use ostler_sys::clock;

/// A notification that a keeper has sent to attached faces. The text is as the agent wrote it: a face makes it safe for
/// a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Which session, and what has happened to it.
    pub title: String,
    /// What is asked, what was answered, or why it ended.
    pub text: String,
}

/// The result of one way in a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tested {
    /// As it is written in config.toml.
    pub way: &'static str,
    /// What shows that it arrived, or why it did not.
    pub result: std::result::Result<String, String>,
}

impl Engine {
    /// Sends one notification each way that is configured, and reports each as soon as it is known.
    pub fn test_notifications(&self, tell: &mut dyn FnMut(Tested)) -> Result<()> {
        self.config.needs("notify")?;
        let settings = crate::config::notify_settings(&self.environment).ok_or(Error::NoNotifications)?;
        self.send_what_waits()?;
        let message = self.test_notification();
        for way in settings.ways() {
            let result = ways::send(way, &settings, &message).map_err(|not| match not {
                NotSent::NotConfigured => "it is not configured".to_owned(),
                NotSent::Failed(words) => words,
            });
            tell(Tested { way: way.word(), result });
        }
        Ok(())
    }

    /// What a test sends.
    #[must_use]
    pub fn test_notification(&self) -> Message {
        Message::test(format!("test-{}", uuid::Uuid::new_v4()), clock::now())
    }

    /// The notification of a session's end, which a face shows in the terminal in which it showed the session.
    #[must_use]
    pub fn told_of_end(&self, view: &View) -> Option<Told> {
        let wanted = &self.config.notify.as_ref()?.wanted;
        let outcome = view.outcome.as_ref().filter(|_| wanted.in_terminals)?;
        let moment = wanted.choose_end(outcome)?;
        let text = moment::text_of(&Event::Ended { outcome: outcome.clone() });
        Some(Told { title: format!("{} {}", view.title, moment.says()), text })
    }

    /// Drops the notifications that wait to be sent and those that were given up. Returns how many there were.
    pub fn clear_notifications(&self) -> Result<usize> {
        Ok(Spool::find(&self.home)?.map(|spool| spool.clear()).transpose()?.unwrap_or(0))
    }

    /// Deletes the notifications about a session that is deleted: they contain words of the agent.
    pub(crate) fn forget_notifications(&self, id: SessionId) -> Result<()> {
        Ok(Spool::find(&self.home)?.map_or(Ok(()), |spool| spool.forget(id))?)
    }

    /// Starts a sender for a session that was lost, because its helpers are gone. Starting a sender twice does no harm:
    /// the spool has each notification only once.
    pub(crate) fn notify_if_lost(&self, place: &Place, view: &View) {
        let lost = view.outcome.as_ref().is_some_and(|outcome| outcome.kind == Kind::Lost);
        if !lost || place.archived || clock::now().duration_since(view.updated) > LIFETIME {
            return;
        }
        let notifies =
            |moment| self.config.notify.as_ref().is_some_and(|notify| notify.wanted.moments.contains(&moment));
        if (notifies(Moment::Lost) || notifies(Moment::Ended))
            && !self.is_told(view)
            && let Ok(folder) = place.open()
        {
            // A sender that cannot be started now is started with the next moment.
            let _ = start_sender(&self.launcher, &folder);
        }
    }

    /// Whether the spool has a notification about the end of this session.
    fn is_told(&self, view: &View) -> bool {
        let known = Spool::find(&self.home).ok().flatten().map(|spool| spool.records()).unwrap_or_default();
        known.iter().any(|record| record.message.session == view.id.as_str() && record.message.at >= view.updated)
    }

    /// Starts a sender where one was killed, perhaps after its session has ended, so that no keeper starts another one.
    /// Cheap enough for every command: without `[notify]` nothing is read, and where nothing waits only one file is
    /// looked at.
    pub fn revive_sender(&self) -> Result<()> {
        match self.config.notify.is_some() && Spool::may_have_work(&self.home) {
            true => self.send_what_waits(),
            false => Ok(()),
        }
    }

    /// Starts a sender where one was killed and something still waits.
    pub(crate) fn send_what_waits(&self) -> Result<()> {
        if self.config.notify.is_none() {
            return Ok(());
        }
        let Some(spool) = Spool::find(&self.home)? else { return Ok(()) };
        // The lock is tried before the records are read: a sender that finds the lock taken by this attempt relies on
        // us, and has already put into the spool what it would send.
        let no_sender_runs = spool.try_lock()?.map(drop).is_some();
        if no_sender_runs && spool.records().iter().any(Record::waits) {
            // The new sender exits at once if another one runs by then.
            let _ = start_sender_in(&self.launcher, &self.home);
        }
        Ok(())
    }
}
