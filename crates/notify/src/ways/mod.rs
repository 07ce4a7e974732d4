//! One attempt on one way. Returns what the other side answered, or why the message did not arrive.

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
    /// The reason as a text; another attempt may succeed.
    Failed(String),
}

impl From<String> for NotSent {
    fn from(words: String) -> NotSent {
        NotSent::Failed(words)
    }
}

/// Tries once. Returns what shows that the message arrived. A program or a server that closes the connection without
/// reading does not end the sending process.
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
