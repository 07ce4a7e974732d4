//! One attempt on one way. What comes back is what the other side said, or why it did not arrive.

mod command;
mod desktop;
mod http;

use crate::message::Message;
use crate::settings::{Settings, Way};

/// Why a notification did not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotSent {
    /// The way is not configured.
    NotConfigured,
    /// In words; another attempt may do better.
    Failed(String),
}

impl From<String> for NotSent {
    fn from(words: String) -> NotSent {
        NotSent::Failed(words)
    }
}

/// Tries once. Returns what shows that it arrived. A program or a server that does not read what it is sent is not the end of the
/// process that sends.
pub fn send(way: Way, settings: &Settings, message: &Message) -> Result<String, NotSent> {
    ostler_sys::signals::without_broken_pipes(|| attempt(way, settings, message))
}

fn attempt(way: Way, settings: &Settings, message: &Message) -> Result<String, NotSent> {
    let missing = NotSent::NotConfigured;
    Ok(match way {
        Way::Desktop if !settings.desktop => return Err(missing),
        Way::Desktop => desktop::send(message)?,
        Way::Command => command::send(settings.command.as_ref().ok_or(missing)?, message)?,
        Way::Webhook => http::webhook(settings.webhook.as_ref().ok_or(missing)?, message)?,
        Way::Ntfy => http::ntfy(settings.ntfy.as_ref().ok_or(missing)?, message)?,
    })
}
