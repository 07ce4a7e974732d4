//! `[notify]` of config.toml, checked: what is sent, when, and on which ways.

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use ostler_core::moment::Wanted;
use std::path::PathBuf;
use std::time::Duration;

/// Everything about notifications that a person has set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which moments.
    pub wanted: Wanted,
    /// The hours in which nothing is sent.
    pub quiet: Option<Quiet>,
    /// Through the notification service of the desktop.
    pub desktop: bool,
    /// A program that gets the notification.
    pub command: Option<Command>,
    /// A server that gets the notification as JSON.
    pub webhook: Option<Http>,
    /// A topic of an ntfy server.
    pub ntfy: Option<Http>,
}

/// A program, and how long it may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments; never empty.
    pub argv: Vec<String>,
    /// After this time it is killed, and tried again later.
    pub timeout: Duration,
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    /// Where to.
    pub url: String,
    /// What a webhook is signed with; the token for ntfy.
    pub secret: Option<Secret>,
    /// How long one attempt may take.
    pub timeout: Duration,
}

/// Where a secret is. The secret itself is never in config.toml, which people show to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// The first line of a file.
    File(PathBuf),
    /// A variable of the environment that the session was started in.
    Variable(String),
}

impl Secret {
    /// Reads the secret; the error is a text for people.
    pub fn read(&self) -> Result<String, String> {
        let text = match self {
            Secret::File(path) => {
                std::fs::read_to_string(path).map_err(|error| format!("its secret {}: {error}", path.display()))?
            }
            Secret::Variable(name) => std::env::var(name).map_err(|_| format!("{name} is not set"))?,
        };
        let secret = text.lines().next().unwrap_or_default().trim();
        if secret.is_empty() { Err("its secret is empty".to_owned()) } else { Ok(secret.to_owned()) }
    }
}

/// Hours of the day, in local time. The end may be on the next day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quiet {
    from: Time,
    to: Time,
}

impl Quiet {
    /// `22:00-07:00`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Quiet> {
        let time = |text: &str| {
            let (hour, minute) = text.trim().split_once(':')?;
            Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()
        };
        let (from, to) = text.split_once('-')?;
        Some(Quiet { from: time(from)?, to: time(to)? }).filter(|quiet| quiet.from != quiet.to)
    }

    /// Whether nothing is sent at this time.
    #[must_use]
    pub fn contains(self, at: Timestamp) -> bool {
        self.contains_time(at.to_zoned(TimeZone::system()).time())
    }

    fn contains_time(self, time: Time) -> bool {
        match self.from < self.to {
            true => (self.from..self.to).contains(&time),
            false => time >= self.from || time < self.to,
        }
    }
}

/// The ways that the sender uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The notification service of the desktop.
    Desktop,
    /// A program.
    Command,
    /// A server.
    Webhook,
    /// An ntfy server.
    Ntfy,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 4] = [Way::Desktop, Way::Command, Way::Webhook, Way::Ntfy];

    /// As it is written in config.toml.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Way::Desktop => "desktop",
            Way::Command => "command",
            Way::Webhook => "webhook",
            Way::Ntfy => "ntfy",
        }
    }
}

impl Settings {
    /// Whether this way needs a variable of the environment that this process has. Another process may not have it, so
    /// a process that has it sends.
    #[must_use]
    pub fn has_variable_for(&self, way: Way) -> bool {
        let http = match way {
            Way::Webhook => self.webhook.as_ref(),
            Way::Ntfy => self.ntfy.as_ref(),
            Way::Desktop | Way::Command => None,
        };
        match http.and_then(|http| http.secret.as_ref()) {
            Some(secret @ Secret::Variable(_)) => secret.read().is_ok(),
            Some(Secret::File(_)) | None => false,
        }
    }

    /// Those of the sender's ways that are configured.
    #[must_use]
    pub fn ways(&self) -> Vec<Way> {
        let is_set = |way: &Way| match way {
            Way::Desktop => self.desktop,
            Way::Command => self.command.is_some(),
            Way::Webhook => self.webhook.is_some(),
            Way::Ntfy => self.ntfy.is_some(),
        };
        Way::ALL.into_iter().filter(is_set).collect()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn quiet_hours_may_pass_midnight() {
        let at = |hour, minute| Time::new(hour, minute, 0, 0).unwrap();
        let night = Quiet::parse("22:30-07:00").unwrap();
        assert!(night.contains_time(at(22, 30)) && night.contains_time(at(0, 0)) && night.contains_time(at(6, 59)));
        assert!(!night.contains_time(at(7, 0)) && !night.contains_time(at(22, 29)));
        let noon = Quiet::parse("12:00 - 13:00").unwrap();
        assert!(noon.contains_time(at(12, 0)) && !noon.contains_time(at(13, 0)) && !noon.contains_time(at(0, 0)));
        assert!(["", "22:00", "22-7", "25:00-07:00", "07:00-07:00"].iter().all(|text| Quiet::parse(text).is_none()));
    }
}
