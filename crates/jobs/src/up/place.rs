//! The positions of everything in a TOML file, by keys.

use ostler_engine::suggest::{did_you_mean, nearest};
use std::fmt;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A mistake in the file, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The file.
    pub path: PathBuf,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What is wrong; after a semicolon, what to do.
    pub words: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.path.display(), self.line, self.column, self.words)
    }
}

impl std::error::Error for Mistake {}

/// The text of a file, and where its keys and values are.
#[derive(Clone, Debug)]
pub struct Places {
    path: PathBuf,
    text: String,
    /// Its keys, each with its position; for a list, the position of each element.
    entries: Vec<(Vec<String>, usize)>,
}

impl Places {
    /// Reads the positions.
    ///
    /// # Errors
    /// When the text is not TOML.
    pub fn read(text: &str, path: &Path) -> Result<Places, Mistake> {
        let mut places = Places { path: path.to_owned(), text: text.to_owned(), entries: Vec::new() };
        let table = DeTable::parse(text).map_err(|error| places.of_parser(&error))?;
        let mut entries = Vec::new();
        walk(table.get_ref(), &mut Vec::new(), &mut entries);
        places.entries = entries;
        Ok(places)
    }

    /// The keys of a table, in alphabetical order.
    #[must_use]
    pub fn keys(&self, table: &[&str]) -> Vec<String> {
        let below = |keys: &Vec<String>| keys.len() == table.len() + 1 && keys.iter().zip(table).all(|(a, b)| a == b);
        self.entries.iter().filter(|(keys, _)| below(keys)).filter_map(|(keys, _)| keys.last().cloned()).collect()
    }

    /// Refuses a key of a table that is not one of these.
    ///
    /// # Errors
    /// With the key that was probably meant.
    pub fn refuse_unknown(&self, table: &[&str], known: &[&str]) -> Result<(), Mistake> {
        match self.keys(table).iter().find(|key| !known.contains(&key.as_str())) {
            Some(key) => {
                let meant = did_you_mean(nearest(key, known.iter().copied()));
                let hint = if meant.is_empty() { format!("; known are {}", known.join(", ")) } else { meant };
                let keys: Vec<&str> = table.iter().copied().chain([key.as_str()]).collect();
                Err(self.at(&keys, &format!("there is no key {key:?} here{hint}")))
            }
            None => Ok(()),
        }
    }

    /// A mistake at these keys, or at the nearest table around them that is in the file.
    #[must_use]
    pub fn at(&self, keys: &[&str], words: &str) -> Mistake {
        let found = (0..=keys.len()).rev().find_map(|length| self.find(keys.get(..length)?));
        self.mistake(found.unwrap_or(0), words)
    }

    /// A mistake at an element of a list.
    #[must_use]
    pub fn in_list(&self, keys: &[&str], element: usize, words: &str) -> Mistake {
        let element = element.to_string();
        let keys: Vec<&str> = keys.iter().copied().chain([element.as_str()]).collect();
        self.at(&keys, words)
    }

    /// The error of the parser, with its position.
    #[must_use]
    pub fn of_parser(&self, error: &toml::de::Error) -> Mistake {
        let words = error.message().lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>();
        self.mistake(error.span().map_or(0, |span| span.start), &words.join(", "))
    }

    fn find(&self, keys: &[&str]) -> Option<usize> {
        self.entries
            .iter()
            .find(|(known, _)| known.iter().map(String::as_str).eq(keys.iter().copied()))
            .map(|(_, at)| *at)
    }

    fn mistake(&self, at: usize, words: &str) -> Mistake {
        let before = self.text.get(..at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Mistake { path: self.path.clone(), line, column, words: words.to_owned() }
    }
}

fn walk(table: &DeTable<'_>, above: &mut Vec<String>, entries: &mut Vec<(Vec<String>, usize)>) {
    for (key, value) in table {
        above.push(key.get_ref().to_string());
        entries.push((above.clone(), key.span().start));
        below(value, above, entries);
        above.pop();
    }
}

fn below(value: &Spanned<DeValue<'_>>, above: &mut Vec<String>, entries: &mut Vec<(Vec<String>, usize)>) {
    match value.get_ref() {
        DeValue::Table(table) => walk(table, above, entries),
        DeValue::Array(list) => {
            for (place, element) in list.iter().enumerate() {
                above.push(place.to_string());
                entries.push((above.clone(), element.span().start));
                below(element, above, entries);
                above.pop();
            }
        }
        DeValue::String(_) | DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {}
    }
}
