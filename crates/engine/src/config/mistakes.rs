//! A config.toml with mistakes: which settings are wrong, in which lines, and what the other settings are. The file is
//! read this way only when it is not valid as a whole.
//!
//! A mistake makes only those commands fail that need its setting, because `stop`, `ls` and `doctor` are needed most
//! when something is wrong.

use super::{Config, File, KEYS, notify, plain_words};
use crate::installed;
use crate::suggest::nearest;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// Settings that a launch does not need. All others say how a session is started: with a default in place of a wrong
/// one, it would not be the session that the user asked for.
const NOT_FOR_LAUNCHES: [&str; 10] = [
    "default_agent",
    "detach_key",
    "ui",
    "grace",
    "archive_after",
    "purge_after",
    "notify",
    "queues",
    "snapshots",
    "snapshot_file_limit",
];

/// One mistake in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    path: PathBuf,
    line: Option<usize>,
    /// What is wrong.
    pub words: String,
    affects: Affects,
}

/// What uses its default because of a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Affects {
    /// The file cannot be read at all.
    Everything,
    Setting(String),
    /// One setting of `[notify]`; its other settings are valid.
    Notify(String),
    /// `[agents.NAME]`
    Agent(String),
    /// An unknown setting that resembles no known one.
    Nothing,
}

impl Mistake {
    /// A file that could not be read.
    pub fn of_file(path: &Path, words: String) -> Mistake {
        Mistake { path: path.to_owned(), line: None, words, affects: Affects::Everything }
    }

    /// Where it is and what is wrong.
    pub fn place_and_words(&self) -> String {
        let line = self.line.map(|line| format!(" line {line}")).unwrap_or_default();
        format!("{}{line}: {}", self.path.display(), self.words)
    }

    /// All of it in one line.
    pub fn in_a_line(&self) -> String {
        let (words, consequence) = (self.place_and_words(), self.consequence());
        if words.ends_with('?') { format!("{words} ({consequence})") } else { format!("{words}; {consequence}") }
    }

    /// What happens because of it.
    pub fn consequence(&self) -> &'static str {
        match &self.affects {
            Affects::Everything => "all settings use their defaults",
            Affects::Setting(name) if name == "notify" => "no notification is sent",
            Affects::Setting(name) if name == "ui" => "using \"off\"",
            Affects::Setting(_) => "using the default",
            Affects::Notify(name) if notify::WAYS.contains(&name.as_str()) => "nothing is sent this way",
            Affects::Notify(_) => "using the default of this one setting",
            Affects::Agent(_) => "this agent cannot be started",
            Affects::Nothing => "it is ignored",
        }
    }

    /// Whether no session may be started because of it.
    pub fn prevents_launch(&self) -> bool {
        match &self.affects {
            Affects::Everything => true,
            Affects::Setting(name) => !NOT_FOR_LAUNCHES.contains(&name.as_str()),
            Affects::Notify(_) | Affects::Agent(_) | Affects::Nothing => false,
        }
    }

    /// Whether this setting is wrong.
    pub fn is_of_setting(&self, name: &str) -> bool {
        matches!(&self.affects, Affects::Setting(setting) if setting == name)
    }

    /// Whether this agent is described wrongly.
    pub fn is_of_agent(&self, name: &str) -> bool {
        matches!(&self.affects, Affects::Agent(agent) if agent == name)
    }
}

/// `default_agent` may be any text to the parser, but has to name an agent.
pub fn unknown_default_agent(config: &Config, text: &str, path: &Path) -> Option<Mistake> {
    let name = config.default_agent.as_deref()?;
    let known: Vec<&str> =
        installed::known().map(|agent| agent.name()).chain(config.agents.keys().map(String::as_str)).collect();
    // An agent whose description is wrong has a mistake of its own.
    if known.contains(&name) || config.mistakes.iter().any(|mistake| mistake.is_of_agent(name)) {
        return None;
    }
    let hint = nearest(name, known).map_or("see ostler agents".to_owned(), |meant| format!("did you mean {meant}?"));
    Some(Mistake {
        path: path.to_owned(),
        line: line_of(text, "default_agent"),
        words: format!("default_agent {name:?} is not an agent; {hint}"),
        affects: Affects::Setting("default_agent".to_owned()),
    })
}

/// The valid settings, and what is wrong with the others.
pub fn read(text: &str, path: &Path) -> (Config, Vec<Mistake>) {
    let mistake = |line, words: String, affects| Mistake { path: path.to_owned(), line, words, affects };
    let (places, values) = match (DeTable::parse(text), text.parse::<Table>()) {
        (Ok(places), Ok(values)) => (places, values),
        (Err(error), _) | (_, Err(error)) => {
            let line = error.span().map(|span| line_at(text, span.start));
            let all = mistake(line, plain_words::of(error.message()), Affects::Everything);
            return (Config::default(), vec![all]);
        }
    };
    let (mut mistakes, mut good) = (Vec::new(), Table::new());
    for (key, place) in places.get_ref() {
        let (name, line) = (key.get_ref().as_ref(), line_at(text, key.span().start));
        let Some(value) = values.get(name) else { continue };
        if !KEYS.contains(&name) {
            let meant = nearest(name, KEYS);
            let words = match meant {
                Some(meant) => format!("there is no setting {name:?}; did you mean {meant}?"),
                None => format!("there is no setting {name:?}"),
            };
            let affects = meant.map_or(Affects::Nothing, |meant| Affects::Setting(meant.to_owned()));
            mistakes.push(mistake(Some(line), words, affects));
            continue;
        }
        match (name, value) {
            ("agents", Value::Table(agents)) => {
                let mut right = Table::new();
                for (agent, described) in agents {
                    let alone = |value: Value| one("agents", one(agent, value).into());
                    let wrong = check(alone(described.clone()));
                    let Some(words) = wrong else {
                        right.insert(agent.clone(), described.clone());
                        continue;
                    };
                    let words = if words.contains(agent) { words } else { format!("[agents.{agent}]: {words}") };
                    let at = place.get_ref().get(agent.as_str());
                    let line = line_of_culprit(text, at, described, &alone).unwrap_or(line);
                    mistakes.push(mistake(Some(line), words, Affects::Agent(agent.clone())));
                }
                good.insert(name.to_owned(), right.into());
            }
            ("notify", Value::Table(settings)) => {
                let mut right = Table::new();
                for (setting, value) in settings {
                    let alone = |value: Value| one("notify", one(setting, value).into());
                    let at = place.get_ref().as_table().and_then(|table| table.get_key_value(setting.as_str()));
                    let line = at.map_or(line, |(key, _)| line_at(text, key.span().start));
                    let meant = nearest(setting, notify::KEYS);
                    let (words, affects) =
                        match (check(alone(value.clone())), notify::KEYS.contains(&setting.as_str()), meant) {
                            (None, ..) => {
                                right.insert(setting.clone(), value.clone());
                                continue;
                            }
                            (Some(words), true, _) => {
                                let words = words.trim_start_matches("[notify]: ");
                                let named = if words.contains(setting) {
                                    words.to_owned()
                                } else {
                                    format!("{setting}: {words}")
                                };
                                (named, Affects::Notify(setting.clone()))
                            }
                            (Some(_), false, Some(meant)) => (
                                format!("there is no setting {setting:?}; did you mean {meant}?"),
                                Affects::Notify(meant.to_owned()),
                            ),
                            (Some(_), false, None) => (format!("there is no setting {setting:?}"), Affects::Nothing),
                        };
                    mistakes.push(mistake(Some(line), format!("[notify]: {words}"), affects));
                }
                good.insert(name.to_owned(), right.into());
            }
            (_, value) => match check(one(name, value.clone())) {
                None => {
                    good.insert(name.to_owned(), value.clone());
                }
                Some(words) => {
                    let line = line_of_culprit(text, Some(place), value, &|value| one(name, value)).unwrap_or(line);
                    let words = if words.contains(name) { words } else { format!("{name}: {words}") };
                    mistakes.push(mistake(Some(line), words, Affects::Setting(name.to_owned())));
                }
            },
        }
    }
    match File::deserialize(good).map_err(|error| plain_words::of(error.message())).and_then(Config::check) {
        Ok(config) => (config, mistakes),
        // Each setting is valid by itself, but not all of them together.
        Err(words) => {
            mistakes.push(mistake(None, words, Affects::Everything));
            (Config::default(), mistakes)
        }
    }
}

/// The line of a setting.
pub fn line_of(text: &str, name: &str) -> Option<usize> {
    let places = DeTable::parse(text).ok()?;
    let key = places.get_ref().keys().find(|key| key.get_ref() == name)?;
    Some(line_at(text, key.span().start))
}

fn one(name: &str, value: Value) -> Table {
    Table::from_iter([(name.to_owned(), value)])
}

/// What is wrong with a file that contains only this table.
fn check(table: Table) -> Option<String> {
    let file = File::deserialize(table).map_err(|error| plain_words::of(error.message()));
    file.and_then(Config::check).err()
}

/// The line where the parser finds the mistake, of a file that has only this table; otherwise the line of the entry in
/// the table without which the rest is valid. `whole` makes a complete file of a table.
fn line_of_culprit(
    text: &str,
    place: Option<&Spanned<DeValue<'_>>>,
    value: &Value,
    whole: &dyn Fn(Value) -> Table,
) -> Option<usize> {
    let (place, Value::Table(entries)) = (place?, value) else {
        return place.map(|place| line_at(text, place.span().start));
    };
    let first = line_at(text, place.span().start);
    let alone = only_table_at(text, first);
    if let Err(Some(span)) = toml::from_str::<File>(&alone).map_err(|error| error.span())
        && line_at(&alone, span.start) > first
    {
        return Some(line_at(&alone, span.start));
    }
    let keys = place.get_ref().as_table()?.keys();
    let culprit = keys.into_iter().find(|key| {
        let mut without = entries.clone();
        without.remove(key.get_ref().as_ref());
        check(whole(without.into())).is_none()
    });
    Some(culprit.map_or(place.span(), Spanned::span)).map(|span| line_at(text, span.start))
}

/// The text with only the table whose header is in this line, and the tables in it; all other lines are empty.
fn only_table_at(text: &str, line: usize) -> String {
    let header = |line: &str| line.trim().strip_prefix('[').map(|name| name.trim_end_matches(']').to_owned());
    let Some(name) = text.lines().nth(line - 1).and_then(header) else { return String::new() };
    let within = |other: &str| other == name || other.strip_prefix(&name).is_some_and(|rest| rest.starts_with('.'));
    let mut inside = false;
    let mut keep = |line: &str| {
        if let Some(other) = header(line).filter(|_| !line.contains('=') && !line.trim().ends_with(',')) {
            inside = within(&other);
        }
        inside
    };
    text.lines().map(|line| if keep(line) { format!("{line}\n") } else { "\n".to_owned() }).collect()
}

fn line_at(text: &str, place: usize) -> usize {
    text.get(..place).unwrap_or_default().matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> (Config, Vec<(Option<usize>, String, bool)>) {
        let (config, mistakes) = read(text, Path::new("config.toml"));
        let told = mistakes
            .into_iter()
            .map(|mistake| (mistake.line, mistake.words.clone(), mistake.prevents_launch()))
            .collect();
        (config, told)
    }

    #[test]
    fn each_mistake_has_its_line_and_the_other_settings_hold() {
        let text = "linger = '7s'\ngrace = 'soon'\ncolour = 'red'\n\n[limts]\nmemory = '2G'\n\n[limits]\nprocesses = 5\n\
                    cpus = 'many'\n\n[agents.good]\ncommand = ['x']\n\n[agents.bad]\ncommand = ['x']\ncolour = 'red'\n";
        let (config, mistakes) = lines(text);
        assert_eq!(config.linger, std::time::Duration::from_secs(7));
        assert_eq!(config.agents.keys().collect::<Vec<_>>(), ["good"]);
        let mut places: Vec<_> = mistakes.iter().map(|(line, _, launch)| (line.unwrap_or(0), *launch)).collect();
        places.sort_unstable();
        assert_eq!(places, [(2, false), (3, false), (5, true), (10, true), (17, false)], "{mistakes:?}");
        assert!(mistakes.iter().any(|(_, words, _)| words.contains("did you mean limits?")), "{mistakes:?}");
        assert!(mistakes.iter().any(|(_, words, _)| words.starts_with("grace: ")), "{mistakes:?}");
    }

    #[test]
    fn a_misspelt_key_in_a_table_has_its_own_line_and_says_what_was_meant() {
        let text = "grace = \"10s\"\n\n[agents.my]\n# c\ncomand = [\"cat\"]\n\n[queues.q]\nslots = 2\nmax_laod = 3\n\n\
                    [agents.other]\nmode = \"terminal\"\ncommand = \"cat\"\n";
        let (_, mut mistakes) = lines(text);
        mistakes.sort();
        let said: Vec<(usize, &str)> =
            mistakes.iter().map(|(line, words, _)| (line.unwrap_or(0), words.as_str())).collect();
        let [(5, agent), (9, queue), (13, other)] = said[..] else { unreachable!("{said:?}") };
        assert!(agent.ends_with("there is no setting \"comand\"; did you mean command?"), "{agent}");
        assert!(queue.ends_with("there is no setting \"max_laod\"; did you mean max_load?"), "{queue}");
        assert!(other.contains("it must be a list"), "{other}");
    }

    #[test]
    fn a_mistake_about_notifications_is_about_one_setting_and_the_others_hold() {
        let text = "[notify]\nmin_duration = '30 secs.'\nquiet = '18:00-18:00'\nsound = true\ndesktp = true\nterminal = true\n\
                    command = ['true']\n[notify.webhook]\nurl = 'ftp://x'\n";
        let (config, mistakes) = read(text, Path::new("config.toml"));
        let told = config.notify.as_ref();
        assert!(
            told.is_some_and(|told| told.wanted.in_terminals && told.command.is_some() && told.webhook.is_none()),
            "{told:?}"
        );
        let mut said: Vec<String> = mistakes
            .iter()
            .map(|mistake| format!("{}; {}", mistake.place_and_words(), mistake.consequence()))
            .collect();
        said.sort();
        let expected = [
            ("config.toml line 2: [notify]: min_duration: ", "; using the default of this one setting"),
            ("config.toml line 3: [notify]: quiet ", "; using the default of this one setting"),
            ("config.toml line 4: [notify]: there is no setting \"sound\"", "; it is ignored"),
            (
                "config.toml line 5: [notify]: there is no setting \"desktp\"; did you mean desktop?",
                "; nothing is sent this way",
            ),
            ("config.toml line 8: [notify]: webhook: ", "; nothing is sent this way"),
        ];
        assert_eq!(said.len(), expected.len(), "{said:#?}");
        for (said, (begin, end)) in said.iter().zip(expected) {
            assert!(said.starts_with(begin) && said.ends_with(end), "{said}");
        }
        assert!(!mistakes.iter().any(|mistake| mistake.prevents_launch() || mistake.is_of_setting("notify")));
        let consequence = |text| read(text, Path::new("config.toml")).1.first().map(Mistake::consequence);
        assert_eq!(consequence("notify = true"), Some("no notification is sent"));
        assert_eq!(consequence("ui = 'bogus'"), Some("using \"off\""));
    }

    #[test]
    fn what_cannot_be_parsed_is_one_mistake_about_everything() {
        let (config, mistakes) = lines("grace = '5s'\nlinger = \n");
        assert_eq!(config, Config::default());
        assert_eq!(mistakes.len(), 1, "{mistakes:?}");
        assert_eq!((mistakes[0].0, mistakes[0].2), (Some(2), true), "{mistakes:?}");
    }
}
