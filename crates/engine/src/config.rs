//! `$XDG_CONFIG_HOME/ostler/config.toml`: the user's settings. Every setting has a default. An unknown setting is
//! reported as a mistake, because a misspelt setting that is silently ignored is worse. See `mistakes`.

mod mistakes;
mod notify;
pub mod own_agents;
mod plain_words;
mod queues;

use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::limits;
use crate::quantities::{parse_duration, parse_size};
pub use mistakes::Mistake;
use ostler_core::limits::{Limits, OutputBounds};
use ostler_core::rules::Rules;
pub use ostler_notify::settings::Settings as Notify;
use ostler_store::queue::{DEFAULT, QueueSettings};
use own_agents::OwnAgent;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    default_agent: Option<String>,
    detach_key: Option<String>,
    ui: Option<String>,
    linger: Option<String>,
    grace: Option<String>,
    terminal_output_limit: Option<String>,
    output_limit: Option<String>,
    min_free_space: Option<String>,
    autosave: Option<String>,
    snapshots: Option<String>,
    snapshot_file_limit: Option<String>,
    retry_alarm: Option<String>,
    answer_within: Option<String>,
    archive_after: Option<String>,
    purge_after: Option<String>,
    #[serde(default)]
    limits: limits::Written,
    #[serde(default)]
    agents: BTreeMap<String, own_agents::Written>,
    notify: Option<notify::Written>,
    #[serde(default)]
    queues: BTreeMap<String, queues::Written>,
}

/// The settings of config.toml.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The agent for prompts that name no agent.
    pub default_agent: Option<String>,
    /// The byte that the detach key sends.
    pub detach_key: u8,
    /// `ostler` without arguments opens the dashboard.
    pub opens_dashboard: bool,
    /// How long the remaining processes of a program may take to exit by themselves.
    pub linger: Duration,
    /// How long `stop` waits before it kills.
    pub grace: Duration,
    /// At most this many bytes of a terminal's output are kept.
    pub terminal_output_limit: u64,
    /// How many bytes a headless run may print; `None`: no limit.
    pub output_limit: Option<u64>,
    /// How many bytes must stay free on the disk; `None`: the default, 0: no minimum.
    pub min_free_space: Option<u64>,
    /// How often the transcript is copied while a turn runs; `None`: never.
    pub autosave: Option<Duration>,
    /// Snapshots of the working tree are taken at the end of each turn.
    pub snapshots: bool,
    /// Larger files are not in the snapshots.
    pub snapshot_file_limit: u64,
    /// After how long a turn that only retries raises an alarm; `None`: never.
    pub retry_alarm: Option<Duration>,
    /// How long an agent behind a protocol may take to answer before an alarm is raised; `None`: no limit.
    pub answer_within: Option<Duration>,
    /// How long after its end a session is archived; `None`: never.
    pub archive_after: Option<Duration>,
    /// After how long an archived session is deleted; `None`: never.
    pub purge_after: Option<Duration>,
    /// For every session that is started without limits of its own.
    pub limits: Limits,
    /// The user's own agents, by name.
    pub agents: BTreeMap<String, OwnAgent>,
    /// The rules of an agent's sessions, by the agent's name.
    pub rules: BTreeMap<String, Rules>,
    /// Which notifications are sent, and how; `None`: none.
    pub notify: Option<Notify>,
    /// All queues, by name.
    pub queues: BTreeMap<String, QueueSettings>,
    /// What is wrong with the file.
    pub mistakes: Vec<Mistake>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            default_agent: None,
            detach_key: 0x1c,
            opens_dashboard: false,
            linger: Duration::from_secs(2),
            grace: Duration::from_secs(10),
            terminal_output_limit: 64 << 20,
            output_limit: Some(OUTPUT_LIMIT),
            min_free_space: None,
            autosave: Some(Duration::from_secs(5)),
            snapshots: true,
            snapshot_file_limit: 50 << 20,
            retry_alarm: Some(Duration::from_secs(300)),
            answer_within: Some(Duration::from_secs(60)),
            archive_after: None,
            purge_after: None,
            limits: Limits::default(),
            agents: BTreeMap::new(),
            rules: BTreeMap::new(),
            notify: None,
            queues: BTreeMap::from([(DEFAULT.to_owned(), QueueSettings::default())]),
            mistakes: Vec::new(),
        }
    }
}

impl Config {
    /// Reads the file. What is wrong with it is in [`Config::mistakes`]; wrong settings have their defaults.
    pub fn load(variable: &dyn Fn(&str) -> Option<String>) -> Config {
        let Some(path) = path(variable) else {
            return Config::default();
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Config::default(),
            Err(error) => {
                return Config { mistakes: vec![Mistake::of_file(&path, error.to_string())], ..Config::default() };
            }
        };
        let file: std::result::Result<File, _> = toml::from_str(&text);
        let mut config = match file.map(Config::check) {
            Ok(Ok(config)) => config,
            Ok(Err(_)) | Err(_) => {
                let (config, mistakes) = mistakes::read(&text, &path);
                Config { mistakes, ..config }
            }
        };
        config.mistakes.extend(mistakes::unknown_default_agent(&config, &text, &path));
        config
    }

    /// The settings of a file; the error is a text for the user.
    fn check(file: File) -> std::result::Result<Config, String> {
        let default = Config::default();
        let duration = |text: Option<String>, default| text.map_or(Ok(default), |text| parse_duration(&text));
        let age = |text: Option<String>| match text.as_deref() {
            None | Some("off") => Ok(None),
            Some(text) => parse_duration(text).map(Some),
        };
        let agents = own_agents::check(file.agents)?;
        Ok(Config {
            default_agent: file.default_agent,
            detach_key: match file.detach_key {
                None => default.detach_key,
                Some(key) => {
                    control_key(&key).ok_or_else(|| format!("detach_key {key:?} is not a key (example: ctrl-a)"))?
                }
            },
            opens_dashboard: match file.ui.as_deref() {
                None | Some("off") => false,
                Some("default") => true,
                Some(other) => return Err(format!("ui {other:?} is neither \"default\" nor \"off\"")),
            },
            linger: duration(file.linger, default.linger)?,
            grace: duration(file.grace, default.grace)?,
            terminal_output_limit: match file.terminal_output_limit {
                None => default.terminal_output_limit,
                Some(text) => parse_size(&text)?,
            },
            output_limit: match file.output_limit.as_deref() {
                None => default.output_limit,
                Some("off") => None,
                Some(text) => Some(parse_output_limit(text)?),
            },
            min_free_space: match file.min_free_space.as_deref() {
                None => None,
                Some("off") => Some(0),
                Some(text) => Some(parse_size(text)?),
            },
            autosave: match file.autosave.as_deref() {
                None => default.autosave,
                Some("off") => None,
                Some(text) => Some(parse_duration(text)?),
            },
            snapshots: match file.snapshots.as_deref() {
                None | Some("on") => true,
                Some("off") => false,
                Some(other) => return Err(format!("snapshots {other:?} is neither \"on\" nor \"off\"")),
            },
            snapshot_file_limit: match file.snapshot_file_limit {
                None => default.snapshot_file_limit,
                Some(text) => parse_size(&text)?,
            },
            retry_alarm: match file.retry_alarm.as_deref() {
                None => default.retry_alarm,
                Some("off") => None,
                Some(text) => Some(parse_duration(text)?),
            },
            answer_within: match file.answer_within.as_deref() {
                None => default.answer_within,
                Some("off") => None,
                Some(text) => Some(parse_duration(text)?),
            },
            archive_after: age(file.archive_after)?,
            purge_after: age(file.purge_after)?,
            limits: file.limits.check().map_err(|words| format!("[limits]: {words}"))?,
            agents: agents.own,
            rules: agents.rules,
            notify: file
                .notify
                .map(notify::Written::check)
                .transpose()
                .map_err(|words| format!("[notify]: {words}"))?,
            queues: queues::check(file.queues)?,
            mistakes: Vec::new(),
        })
    }

    /// Fails when a setting that every new session needs is wrong.
    pub fn needs_for_launch(&self) -> Result<()> {
        let mistake = self.mistakes.iter().find(|mistake| mistake.prevents_launch());
        mistake.map_or(Ok(()), |mistake| Err(Error::Config(mistake.clone())))
    }

    /// Fails when this setting is wrong.
    pub fn needs(&self, setting: &str) -> Result<()> {
        self.mistakes
            .iter()
            .find(|mistake| mistake.is_of_setting(setting))
            .map_or(Ok(()), |mistake| Err(Error::Config(mistake.clone())))
    }

    /// The user's own agent with this name; fails when its description is wrong.
    pub fn own_agent(&self, name: &str) -> Result<Option<(&str, &OwnAgent)>> {
        if let Some(mistake) = self.mistakes.iter().find(|mistake| mistake.is_of_agent(name)) {
            return Err(Error::Config(mistake.clone()));
        }
        Ok(self.agents.get_key_value(name).map(|(name, own)| (name.as_str(), own)))
    }

    /// How long the remaining processes of a program may take to exit by themselves.
    pub fn linger_ms(&self) -> u64 {
        milliseconds(self.linger)
    }

    /// After how long a turn that only retries raises an alarm.
    pub fn retry_alarm_ms(&self) -> Option<u64> {
        self.retry_alarm.map(milliseconds)
    }

    /// How often the transcript is copied while a turn runs.
    pub fn autosave_ms(&self) -> Option<u64> {
        self.autosave.map(milliseconds)
    }

    /// How long an agent behind a protocol may take to answer before an alarm is raised.
    pub fn answer_within_ms(&self) -> Option<u64> {
        self.answer_within.map(milliseconds)
    }
}

/// How many bytes a headless run may print by default.
const OUTPUT_LIMIT: u64 = 2 << 30;
/// The smallest limit that is accepted: with less, output is dropped or held before it can be read.
const LEAST_OUTPUT: u64 = 1 << 20;

fn parse_output_limit(text: &str) -> std::result::Result<u64, String> {
    match parse_size(text)? {
        bytes if bytes < LEAST_OUTPUT => Err(format!("output_limit {text:?} is too small; use at least 1MiB")),
        bytes => Ok(bytes),
    }
}

/// The limits of output that the file has now, for a keeper that holds output back.
pub fn output_bounds(environment: &Environment) -> Option<OutputBounds> {
    let config = Config::load(&environment.lookup());
    config.needs_for_launch().ok()?;
    Some(OutputBounds { limit: config.output_limit, min_free: config.min_free_space })
}

/// The settings for notifications that the file has now; `None` when it has none, or wrong ones. A file that does not
/// contain the word is not parsed, because keepers ask at the end of every turn.
pub fn notify_settings(environment: &Environment) -> Option<Notify> {
    let text = std::fs::read_to_string(path(&environment.lookup())?).ok()?;
    if !text.contains("notify") {
        return None;
    }
    let settings = Config::load(&environment.lookup()).notify?;
    Some(notify::at_home(settings, &environment.lookup()))
}

/// Whether snapshots of working trees are to be taken now. A file that does not contain the word is not parsed, because
/// keepers ask at the end of every turn.
pub fn takes_snapshots(environment: &Environment) -> bool {
    let text = path(&environment.lookup()).and_then(|path| std::fs::read_to_string(path).ok());
    !text.is_some_and(|text| text.contains("snapshots")) || Config::load(&environment.lookup()).snapshots
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The path of the file, whether it exists or not.
pub fn path(variable: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(folder.join("ostler/config.toml"))
}

/// All settings.
pub const KEYS: [&str; 19] = [
    "default_agent",
    "detach_key",
    "ui",
    "linger",
    "grace",
    "terminal_output_limit",
    "output_limit",
    "min_free_space",
    "autosave",
    "snapshots",
    "snapshot_file_limit",
    "retry_alarm",
    "answer_within",
    "archive_after",
    "purge_after",
    "limits",
    "agents",
    "notify",
    "queues",
];

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

    /// Loads a file with these bytes; the error is its first mistake.
    fn load(bytes: &[u8]) -> std::result::Result<(), String> {
        let home = tempfile::tempdir().map_err(|error| error.to_string())?;
        let folder = home.path().join("ostler");
        std::fs::create_dir(&folder)
            .and_then(|()| std::fs::write(folder.join("config.toml"), bytes))
            .unwrap_or_default();
        let place = home.path().to_string_lossy().into_owned();
        let variable = |name: &str| (name == "XDG_CONFIG_HOME").then(|| place.clone());
        match Config::load(&variable).mistakes.as_slice() {
            [] => Ok(()),
            [first, ..] => Err(first.place_and_words()),
        }
    }

    proptest! {
        #[test]
        fn any_text_becomes_settings_or_one_line_of_complaint(text in prop_oneof![
            "\\PC{0,80}",
            "(linger|grace|detach_key|terminal_output_limit|output_limit|min_free_space|default_agent) = \"[0-9.]{0,25}[a-zA-Z-]{0,4}[0-9]{0,25}[a-z]{0,3}\"\n",
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
    fn a_duration_that_is_too_large_is_refused() {
        let days = "213503982334601d".repeat(2);
        assert!(load(format!("grace = \"{days}\"").as_bytes()).is_err());
    }

    #[test]
    fn the_settings_that_are_listed_are_those_of_the_file() {
        let complaint = toml::from_str::<File>("no_such_setting = 1").map(|_| ()).err();
        let complaint = complaint.map(|error| error.message().to_owned()).unwrap_or_default();
        let named: Vec<&str> = complaint.split('`').skip(3).step_by(2).collect();
        assert_eq!(named, KEYS, "{complaint}");
    }

    #[test]
    fn keys_are_what_a_terminal_sends() {
        assert_eq!(control_key("ctrl-\\"), Some(0x1c));
        assert_eq!(control_key("Ctrl-A"), Some(1));
        assert_eq!(control_key("alt-a"), None);
        assert_eq!(control_key("ctrl-"), None);
    }
}
