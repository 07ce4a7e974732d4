//! Limits as people write them, on the command line and in config.toml, and what they are for a new session.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::quantities::parse_size;
use ostler_core::id::SessionId;
use ostler_core::limits::Limits;
use serde::Deserialize;

/// Limits as they were typed.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// For example `2G`.
    pub memory: Option<String>,
    /// For example `1.5`.
    pub cpus: Option<String>,
    /// For example `200`.
    pub processes: Option<String>,
}

/// `[limits]` in config.toml: for every session that is started without limits of its own.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    memory: Option<String>,
    cpus: Option<f64>,
    processes: Option<u64>,
}

impl Written {
    /// The limits as numbers; the error names the one that is not valid.
    pub fn check(self) -> std::result::Result<Limits, String> {
        let memory = self.memory.as_deref().map(parse_memory).transpose()?;
        let cpus = self.cpus.map(|cpus| check_cpus(cpus, &cpus.to_string())).transpose()?;
        let processes = self.processes.map(|count| check_processes(count, &count.to_string())).transpose()?;
        Ok(Limits { memory, cpus, processes })
    }
}

/// The limits of a session that is about to begin: what was asked for, else what is configured, and inside another
/// session no more than that session has.
pub fn for_new(engine: &Engine, asked: &Asked, parent: Option<SessionId>) -> Result<Limits> {
    let asked = parse(asked).map_err(Error::Limit)?;
    let outer = parent.and_then(|id| limits_of(engine, id)).unwrap_or_default();
    Ok(asked.or(engine.config.limits).within(outer))
}

/// The limits of the session in which this process runs. `None` when that session is in another home.
fn limits_of(engine: &Engine, id: SessionId) -> Option<Limits> {
    Some(engine.home.select(id.as_str()).ok()?.open().ok()?.session().ok()?.limits)
}

fn parse(args: &Asked) -> std::result::Result<Limits, String> {
    let cpus = |text: &String| text.parse().map_err(|_| no_cpus(text)).and_then(|cpus| check_cpus(cpus, text));
    let processes =
        |text: &String| text.parse().map_err(|_| no_processes(text)).and_then(|count| check_processes(count, text));
    Ok(Limits {
        memory: args.memory.as_deref().map(parse_memory).transpose()?,
        cpus: args.cpus.as_ref().map(cpus).transpose()?,
        processes: args.processes.as_ref().map(processes).transpose()?,
    })
}

/// The smallest memory limit: with less, not even a shell starts, and the kernel rounds very small values to zero.
const LEAST_MEMORY: u64 = 1 << 20;

fn parse_memory(text: &str) -> std::result::Result<u64, String> {
    match parse_size(text)? {
        bytes if bytes < LEAST_MEMORY => Err(format!("{text:?} is too little memory for any program (example: 2G)")),
        bytes => Ok(bytes),
    }
}

fn check_cpus(cpus: f64, text: &str) -> std::result::Result<f64, String> {
    if (0.01..=4096.0).contains(&cpus) { Ok(cpus) } else { Err(no_cpus(text)) }
}

fn no_cpus(text: &str) -> String {
    format!("{text:?} is not a number of processors (example: 1.5)")
}

fn check_processes(count: u64, text: &str) -> std::result::Result<u64, String> {
    if (1..=4_194_304).contains(&count) { Ok(count) } else { Err(no_processes(text)) }
}

fn no_processes(text: &str) -> String {
    format!("{text:?} is not a number of processes (example: 200)")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(memory: &str, cpus: &str, processes: &str) -> Asked {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Asked { memory: text(memory), cpus: text(cpus), processes: text(processes) }
    }

    #[test]
    fn limits_are_read_as_people_write_them() {
        let limits = Limits { memory: Some(2 << 30), cpus: Some(1.5), processes: Some(200) };
        assert_eq!(parse(&args("2G", "1.5", "200")), Ok(limits));
        assert_eq!(parse(&args("", "", "")), Ok(Limits::default()));
        for (memory, cpus, processes) in
            [("4096", "", ""), ("much", "", ""), ("", "0", ""), ("", "nan", ""), ("", "-1", ""), ("", "", "0")]
        {
            assert!(parse(&args(memory, cpus, processes)).is_err(), "{memory} {cpus} {processes}");
        }
    }
}
