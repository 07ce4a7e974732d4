//! `$XDG_CONFIG_HOME/ostler/config.toml`: what a person may set. Everything has a default; an unknown word is an error
//! that names it, because a misspelt setting that is silently ignored is worse.

use crate::exit::{Failure, Result};
use crate::limits;
use crate::own_agents::{self, OwnAgent};
use crate::ui::time::{parse_duration, parse_size};
use ostler_core::limits::Limits;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    default_agent: Option<String>,
    detach_key: Option<String>,
    linger: Option<String>,
    grace: Option<String>,
    terminal_output_limit: Option<String>,
    autosave: Option<String>,
    retry_alarm: Option<String>,
    archive_after: Option<String>,
    purge_after: Option<String>,
    #[serde(default)]
    limits: limits::Written,
    #[serde(default)]
    agents: BTreeMap<String, own_agents::Written>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub default_agent: Option<String>,
    /// The byte that the detach key sends.
    pub detach_key: u8,
    /// How long what is left of a program may take to leave by itself.
    pub linger: Duration,
    /// How long `stop` waits before it kills.
    pub grace: Duration,
    pub terminal_output_limit: u64,
    /// How often the transcript is copied while a turn runs; `None`: never.
    pub autosave: Option<Duration>,
    /// After how long a turn that only retries is an alarm; `None`: never.
    pub retry_alarm: Option<Duration>,
    /// How long after its end a session is put away, and how long after that it is deleted; `None`: never.
    pub archive_after: Option<Duration>,
    pub purge_after: Option<Duration>,
    /// For every session that is started without others.
    pub limits: Limits,
    /// A person's own, by name.
    pub agents: BTreeMap<String, OwnAgent>,
}

impl Config {
    pub fn load(variable: &dyn Fn(&str) -> Option<String>) -> Result<Config> {
        let file = match path(variable).map(|path| (std::fs::read_to_string(&path), path)) {
            None => File::default(),
            Some((Err(error), _)) if error.kind() == std::io::ErrorKind::NotFound => File::default(),
            Some((Err(error), path)) => return Err(Failure::ours(format!("{}: {error}", path.display()))),
            Some((Ok(text), path)) => toml::from_str(&text).map_err(|error| wrong(&path, &in_line(&text, &error)))?,
        };
        let path = path(variable).unwrap_or_default();
        let duration = |text: Option<String>, default| match text {
            None => Ok(default),
            Some(text) => parse_duration(&text).map_err(|words| wrong(&path, &words)),
        };
        let age = |text: Option<String>| match text.as_deref() {
            None | Some("off") => Ok(None),
            Some(text) => parse_duration(text).map(Some).map_err(|words| wrong(&path, &words)),
        };
        Ok(Config {
            default_agent: file.default_agent,
            detach_key: match file.detach_key {
                None => 0x1c,
                Some(key) => control_key(&key)
                    .ok_or_else(|| wrong(&path, &format!("detach_key {key:?} is not of the form ctrl-x")))?,
            },
            linger: duration(file.linger, Duration::from_secs(2))?,
            grace: duration(file.grace, Duration::from_secs(10))?,
            terminal_output_limit: match file.terminal_output_limit {
                None => 64 << 20,
                Some(text) => parse_size(&text).map_err(|words| wrong(&path, &words))?,
            },
            autosave: match file.autosave.as_deref() {
                Some("off") => None,
                _ => Some(duration(file.autosave, Duration::from_secs(5))?),
            },
            retry_alarm: match file.retry_alarm.as_deref() {
                Some("off") => None,
                _ => Some(duration(file.retry_alarm, Duration::from_secs(300))?),
            },
            archive_after: age(file.archive_after)?,
            purge_after: age(file.purge_after)?,
            limits: file.limits.check().map_err(|words| wrong(&path, &format!("[limits]: {words}")))?,
            agents: own_agents::check(file.agents).map_err(|words| wrong(&path, &words))?,
        })
    }

    pub fn linger_ms(&self) -> u64 {
        milliseconds(self.linger)
    }

    pub fn retry_alarm_ms(&self) -> Option<u64> {
        self.retry_alarm.map(milliseconds)
    }

    pub fn autosave_ms(&self) -> Option<u64> {
        self.autosave.map(milliseconds)
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn wrong(path: &std::path::Path, words: &str) -> Failure {
    Failure::usage(format!("{}: {words}; mend it or remove it", path.display()))
}

/// The complaint and the line that it is about.
fn in_line(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    match before {
        Some(before) => format!("line {}: {}", before.matches('\n').count() + 1, error.message()),
        None => error.message().to_owned(),
    }
}

fn path(variable: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(folder.join("ostler/config.toml"))
}

/// `ctrl-a` … `ctrl-z`, and the five others that a terminal can send.
fn control_key(text: &str) -> Option<u8> {
    let key = text.to_ascii_lowercase();
    let key = key.strip_prefix("ctrl-")?.as_bytes();
    match key {
        [letter @ (b'a'..=b'z' | b'[' | b'\\' | b']' | b'^' | b'_')] => Some(letter & 0x1f),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What stands in the file becomes settings or one line of complaint.
    fn load(bytes: &[u8]) -> std::result::Result<(), String> {
        let home = tempfile::tempdir().map_err(|error| error.to_string())?;
        let folder = home.path().join("ostler");
        std::fs::create_dir(&folder)
            .and_then(|()| std::fs::write(folder.join("config.toml"), bytes))
            .unwrap_or_default();
        let place = home.path().to_string_lossy().into_owned();
        let variable = |name: &str| (name == "XDG_CONFIG_HOME").then(|| place.clone());
        Config::load(&variable).map(|_| ()).map_err(|failure| failure.to_string())
    }

    proptest! {
        #[test]
        fn any_text_becomes_settings_or_one_line_of_complaint(text in prop_oneof![
            "\\PC{0,80}",
            "(linger|grace|detach_key|terminal_output_limit|default_agent) = \"[0-9.]{0,25}[a-zA-Z-]{0,4}[0-9]{0,25}[a-z]{0,3}\"\n",
            "\\[agents\\.[a-z \"]{0,8}\\]\n(command|mode|end|end_text) = (\"[a-z]{0,8}\"|\\[\\]|\\[\"a\"\\]|1)\n",
        ]) {
            if let Err(complaint) = load(text.as_bytes()) {
                prop_assert!(!complaint.contains('\n') && complaint.contains("config.toml"), "{}", complaint);
            }
        }

        #[test]
        fn any_bytes_become_settings_or_one_line_of_complaint(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Err(complaint) = load(&bytes) {
                prop_assert!(!complaint.contains('\n') && complaint.contains("config.toml"), "{}", complaint);
            }
        }
    }

    #[test]
    fn a_duration_beyond_all_measure_is_a_complaint() {
        let days = "213503982334601d".repeat(2);
        assert!(load(format!("grace = \"{days}\"").as_bytes()).is_err());
    }

    #[test]
    fn an_unknown_word_is_named_with_its_line() {
        let text = "linger = '1s'\n\n[agents.mine]\ncommand = ['x']\ncolour = 'red'\n";
        let error = toml::from_str::<File>(text).map(|_| ()).map_err(|error| in_line(text, &error));
        let words = error.err().unwrap_or_default();
        assert!(words.starts_with("line 5: ") && words.contains("colour"), "{words}");
    }

    #[test]
    fn keys_are_what_a_terminal_sends() {
        assert_eq!(control_key("ctrl-\\"), Some(0x1c));
        assert_eq!(control_key("Ctrl-A"), Some(1));
        assert_eq!(control_key("alt-a"), None);
        assert_eq!(control_key("ctrl-"), None);
    }
}
