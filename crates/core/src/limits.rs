//! What a session may use at most, and the words for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of one session, for all of its processes together. They are stored in `session.json` and apply to every run.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Processors; fractions are allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
}

impl Limits {
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Limits::default()
    }

    /// `2.0 GiB of memory, 1.5 processors, 200 processes`.
    #[must_use]
    pub fn words(&self) -> String {
        let memory = self.memory.map(|bytes| format!("{} of memory", size(bytes)));
        let cpus =
            self.cpus.map(|cpus| if cpus == 1.0 { "1 processor".to_owned() } else { format!("{cpus} processors") });
        let processes = self.processes.map(|count| counted(count, "process", "processes"));
        let words: Vec<String> = memory.into_iter().chain(cpus).chain(processes).collect();
        words.join(", ")
    }

    /// These limits where they are set, and `others` where they are not.
    #[must_use]
    pub fn or(self, others: Limits) -> Limits {
        Limits {
            memory: self.memory.or(others.memory),
            cpus: self.cpus.or(others.cpus),
            processes: self.processes.or(others.processes),
        }
    }

    /// The lower value of each limit.
    #[must_use]
    pub fn within(self, outer: Limits) -> Limits {
        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        Limits {
            memory: least(self.memory, outer.memory),
            cpus: self.cpus.into_iter().chain(outer.cpus).reduce(f64::min),
            processes: least(self.processes, outer.processes),
        }
    }

    /// What a person is told when limits were hit: processes were killed for memory, or could not be started. It does
    /// not say how often, so that it is reported once.
    #[must_use]
    pub fn hit_words(&self, killed: u64, not_started: u64) -> Option<String> {
        let memory = self.memory.filter(|_| killed > 0);
        let processes = self.processes.filter(|_| not_started > 0);
        let words: Vec<String> = memory
            .map(|limit| format!("it hit its memory limit ({})", size(limit)))
            .into_iter()
            .chain(
                processes.map(|limit| format!("it hit its process limit ({})", counted(limit, "process", "processes"))),
            )
            .collect();
        (!words.is_empty()).then(|| words.join("; "))
    }
}

/// What bounds the output of a session, according to the present config.toml.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputBounds {
    /// For a headless run.
    pub limit: Option<u64>,
    /// What must stay free on the file system; `None`: the default, 0: nothing.
    pub min_free: Option<u64>,
}

/// What must stay free on a file system of this size unless it is configured.
#[must_use]
pub fn default_min_free(total: u64) -> u64 {
    (1 << 30).min(total / 50)
}

/// A length of time as people write it: `250ms`, `90s`, `10m`, `1h30m`.
#[must_use]
pub fn duration(ms: u64) -> String {
    let (seconds, minutes) = (ms / 1000, ms / 60_000);
    match ms {
        _ if !ms.is_multiple_of(1000) => format!("{ms}ms"),
        0..120_000 if !ms.is_multiple_of(60_000) => format!("{seconds}s"),
        _ if !seconds.is_multiple_of(60) => format!("{minutes}m{}s", seconds % 60),
        _ if minutes < 60 => format!("{minutes}m"),
        _ if minutes.is_multiple_of(60) => format!("{}h", minutes / 60),
        _ => format!("{}h{}m", minutes / 60, minutes % 60),
    }
}

/// `1 process`, `2 processes`.
#[must_use]
pub fn counted(count: u64, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// `1.5 GiB`.
#[must_use]
pub fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_never_gets_wider_than_the_one_around_it() {
        let outer = Limits { memory: Some(100), cpus: Some(1.5), processes: None };
        let inner = Limits { memory: Some(200), cpus: Some(0.5), processes: Some(7) };
        assert_eq!(inner.within(outer), Limits { memory: Some(100), cpus: Some(0.5), processes: Some(7) });
        assert_eq!(Limits::default().within(outer), outer);
    }

    #[test]
    fn what_stays_free_is_a_gibibyte_or_a_fiftieth_of_a_small_disk() {
        assert_eq!(default_min_free(1 << 40), 1 << 30);
        assert_eq!(default_min_free(5000 << 20), 100 << 20);
    }

    #[test]
    fn only_a_limit_that_was_set_is_reported() {
        let limits = Limits { memory: Some(2 << 30), cpus: None, processes: Some(200) };
        assert_eq!(limits.hit_words(0, 0), None);
        assert_eq!(Limits::default().hit_words(1, 1), None);
        let words = "it hit its memory limit (2.0 GiB); it hit its process limit (200 processes)";
        assert_eq!(limits.hit_words(1, 4).as_deref(), Some(words));
    }
}
