//! `[notify]` as people write it.

use super::milliseconds;
use crate::quantities::parse_duration;
use crate::suggest::nearest;
use ostler_core::moment::{Moment, Wanted};
use ostler_notify::settings::{Command, Http, Quiet, Secret, Settings};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long one attempt may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// All settings; `WAYS` are those of them that are ways to send.
pub const KEYS: [&str; 10] = [
    "moments",
    "only_detached",
    "min_duration",
    "quiet",
    "desktop",
    "terminal",
    "command",
    "timeout",
    "webhook",
    "ntfy",
];
pub const WAYS: [&str; 5] = ["desktop", "terminal", "command", "webhook", "ntfy"];

/// What is in the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    moments: Option<Vec<String>>,
    only_detached: Option<bool>,
    min_duration: Option<String>,
    quiet: Option<String>,
    desktop: Option<bool>,
    terminal: Option<bool>,
    command: Option<Vec<String>>,
    timeout: Option<String>,
    webhook: Option<WrittenHttp>,
    ntfy: Option<WrittenHttp>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenHttp {
    url: String,
    #[serde(alias = "token_file")]
    secret_file: Option<PathBuf>,
    #[serde(alias = "token_env")]
    secret_env: Option<String>,
}

impl Written {
    /// The settings, or what is wrong, in words.
    pub fn check(self) -> Result<Settings, String> {
        let timeout = self.timeout.as_deref().map_or(Ok(TIMEOUT), parse_duration)?;
        if timeout.is_zero() {
            return Err("timeout is too short".to_owned());
        }
        let moments = match self.moments {
            None => Moment::ALL.to_vec(),
            Some(words) => words.iter().map(|word| moment(word)).collect::<Result<_, _>>()?,
        };
        let command = match self.command {
            Some(argv) if argv.is_empty() => return Err("command is empty".to_owned()),
            Some(argv) => Some(Command { argv, timeout }),
            None => None,
        };
        let quiet = |text: &String| {
            Quiet::parse(text).ok_or_else(|| format!("quiet {text:?} is not a span of hours (example: 22:00-07:00)"))
        };
        let min_duration = self.min_duration.as_deref().map_or(Ok(Duration::ZERO), parse_duration)?;
        let http = |written: Option<WrittenHttp>, name| written.map(|http| http.check(name, timeout)).transpose();
        let mut settings = Settings {
            wanted: Wanted {
                moments,
                only_detached: self.only_detached.unwrap_or(false),
                min_duration_ms: milliseconds(min_duration),
                in_terminals: self.terminal.unwrap_or(false),
                by_sender: false,
            },
            quiet: self.quiet.as_ref().map(quiet).transpose()?,
            desktop: self.desktop.unwrap_or(false),
            command,
            webhook: http(self.webhook, "webhook")?,
            ntfy: http(self.ntfy, "ntfy")?,
        };
        settings.wanted.by_sender = !settings.ways().is_empty();
        Ok(settings)
    }
}

impl WrittenHttp {
    fn check(self, name: &str, timeout: Duration) -> Result<Http, String> {
        if !["http://", "https://"].iter().any(|scheme| self.url.starts_with(scheme)) {
            return Err(format!("{name}: {:?} is not a URL that begins with https:// or http://", self.url));
        }
        let secret = match (self.secret_file, self.secret_env) {
            (Some(_), Some(_)) => return Err(format!("{name}: its secret is either in a file or in a variable")),
            (Some(file), None) => Some(Secret::File(file)),
            (None, Some(variable)) => Some(Secret::Variable(variable)),
            (None, None) => None,
        };
        Ok(Http { url: self.url, secret, timeout })
    }
}

fn moment(word: &str) -> Result<Moment, String> {
    Moment::parse(word).ok_or_else(|| {
        let words = Moment::ALL.map(Moment::word);
        match nearest(word, words) {
            Some(meant) => format!("{word:?} is not a moment; did you mean {meant}?"),
            None => format!("{word:?} is not a moment ({})", words.join(", ")),
        }
    })
}

/// Resolves the paths of files with secrets: `~` is the home folder, and relative paths begin in the folder of
/// config.toml.
pub fn at_home(mut settings: Settings, variable: &dyn Fn(&str) -> Option<String>) -> Settings {
    let beside = super::path(variable).and_then(|path| path.parent().map(Path::to_owned)).unwrap_or_default();
    for http in [&mut settings.webhook, &mut settings.ntfy].into_iter().flatten() {
        if let Some(Secret::File(file)) = &mut http.secret {
            *file = match (file.strip_prefix("~"), variable("HOME")) {
                (Ok(rest), Some(home)) => Path::new(&home).join(rest),
                (Ok(_), None) | (Err(_), _) => beside.join(&file),
            };
        }
    }
    settings
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<Settings, String> {
        toml::from_str::<Written>(text).map_err(|error| error.message().to_owned())?.check()
    }

    #[test]
    fn everything_can_be_set_and_nothing_has_to_be() {
        let settings = check(
            "moments = ['asking', 'ended']\nonly_detached = true\nmin_duration = '30s'\nquiet = '22:00-07:00'\n\
             desktop = true\nterminal = true\ncommand = ['say', 'it']\ntimeout = '2s'\n\
             [webhook]\nurl = 'https://example.org/hook'\nsecret_file = '~/hook.key'\n\
             [ntfy]\nurl = 'http://localhost/topic'\ntoken_env = 'NTFY_TOKEN'\n",
        )
        .unwrap();
        assert_eq!(settings.ways().len(), 4);
        assert!(settings.wanted.by_sender && settings.wanted.in_terminals && settings.wanted.only_detached);
        assert_eq!(settings.wanted.moments, [Moment::Asking, Moment::Ended]);
        assert_eq!(settings.webhook.as_ref().unwrap().timeout, Duration::from_secs(2));
        let settings = at_home(settings, &|name| (name == "HOME").then(|| "/home/me".to_owned()));
        assert_eq!(settings.webhook.unwrap().secret, Some(Secret::File("/home/me/hook.key".into())));
        let nothing = check("").unwrap();
        assert_eq!((nothing.ways(), nothing.wanted.moments.len(), nothing.wanted.by_sender), (Vec::new(), 8, false));
    }

    #[test]
    fn the_settings_that_are_listed_are_those_that_there_are() {
        let complaint = toml::from_str::<Written>("no_such_setting = 1").unwrap_err().message().to_owned();
        let named: Vec<&str> = complaint.split('`').skip(3).step_by(2).collect();
        assert_eq!(named, KEYS, "{complaint}");
        assert!(WAYS.iter().all(|way| KEYS.contains(way)));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, words) in [
            ("moments = ['askin']", "did you mean asking?"),
            ("moments = ['sunrise']", "is not a moment (asking, turn"),
            ("quiet = 'night'", "22:00-07:00"),
            ("command = []", "command is empty"),
            ("[webhook]\nurl = 'example.org'", "https://"),
            ("[ntfy]\nurl = 'https://a/b'\nsecret_file = 'a'\nsecret_env = 'B'", "either in a file or in a variable"),
            ("timeout = '0s'", "timeout"),
            ("colour = 'red'", "colour"),
        ] {
            let wrong = check(text).unwrap_err();
            assert!(wrong.contains(words), "{text}: {wrong}");
        }
    }
}
