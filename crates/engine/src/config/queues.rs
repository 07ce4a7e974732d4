//! Queues: `[queues.NAME]` in config.toml says how many sessions of a queue run at once, and how busy the machine may
//! be before the next one starts.

use crate::quantities::parse_size;
use ostler_core::id::is_name;
use ostler_store::queue::{DEFAULT, MOST_SLOTS, QueueSettings, SLOTS};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The section as it is written in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    slots: Option<u32>,
    min_free_memory: Option<String>,
    max_load: Option<f64>,
}

/// Checks what was written; the error is a text for the user. The default queue, for sessions that name no queue,
/// always exists.
pub fn check(written: BTreeMap<String, Written>) -> Result<BTreeMap<String, QueueSettings>, String> {
    let mut queues: BTreeMap<String, QueueSettings> = written
        .into_iter()
        .map(|(name, written)| Ok((name.clone(), check_one(&name, written)?)))
        .collect::<Result<_, String>>()?;
    queues.entry(DEFAULT.to_owned()).or_default();
    Ok(queues)
}

fn check_one(name: &str, written: Written) -> Result<QueueSettings, String> {
    let wrong = |words: &str| Err(format!("[queues.{name}] {words}"));
    // The name is one word of a command line, and the name of a folder.
    if !is_name(name) || name.contains(' ') {
        return wrong("is not a valid name; use letters, digits, dots, dashes and underscores");
    }
    let slots = written.slots.unwrap_or(SLOTS);
    if !(1..=MOST_SLOTS).contains(&slots) {
        return wrong(&format!("has slots = {slots}; use a number from 1 to {MOST_SLOTS}"));
    }
    if written.max_load.is_some_and(|load| !load.is_finite() || load <= 0.0) {
        return wrong("has a max_load that lets nothing start; use a number above 0");
    }
    let size = |text: String| parse_size(&text).map_err(|words| format!("[queues.{name}] min_free_memory: {words}"));
    let min_free_memory = written.min_free_memory.map(size).transpose()?;
    Ok(QueueSettings { slots, min_free_memory, max_load: written.max_load })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<BTreeMap<String, QueueSettings>, String> {
        check(toml::from_str(text).map_err(|error: toml::de::Error| error.message().to_owned())?)
    }

    #[test]
    fn a_queue_has_what_is_said_and_the_usual_one_is_always_there() {
        let queues = read("[big]\nslots = 12\nmin_free_memory = '2GiB'\nmax_load = 8.0").unwrap();
        let big = QueueSettings { slots: 12, min_free_memory: Some(2 << 30), max_load: Some(8.0) };
        assert_eq!(queues["big"], big);
        assert_eq!(queues[DEFAULT], QueueSettings::default());
        assert_eq!(read("[default]\nslots = 1").unwrap()[DEFAULT].slots, 1);
    }

    #[test]
    fn invalid_arguments_are_refused_with_a_reason() {
        for (text, words) in [
            ("[a]\nslots = 0", "from 1 to"),
            ("[a]\nslots = 100000", "from 1 to"),
            ("[a]\nmax_load = 0.0", "max_load"),
            ("[a]\nmax_load = nan", "max_load"),
            ("[a]\nmin_free_memory = 'much'", "min_free_memory"),
            ("['a b']\nslots = 1", "valid name"),
            ("['../x']\nslots = 1", "valid name"),
            ("[a]\nslot = 1", "slot"),
        ] {
            let refused = read(text).unwrap_err();
            assert!(refused.contains(words), "{text:?}: {refused}");
        }
    }
}
