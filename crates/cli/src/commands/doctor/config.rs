//! config.toml: every setting that is unknown or wrong, with its line.

use super::{Finding, quoted};
use crate::config::{self, Config};
use crate::installed;
use crate::ui::suggest::{did_you_mean, nearest};

pub fn check(variable: &dyn Fn(&str) -> Option<String>) -> Vec<Finding> {
    let Some(path) = config::path(variable).filter(|path| path.exists()) else {
        return Vec::new();
    };
    let remedy = format!("edit {}", quoted(&path));
    let config = Config::load(variable);
    let mut findings: Vec<Finding> = config
        .mistakes
        .iter()
        .map(|mistake| {
            let words = format!("{}; {}", mistake.place_and_words(), mistake.consequence());
            Finding::problem(words, remedy.clone())
        })
        .collect();
    findings.extend(unknown_default_agent(&config, &path, &remedy));
    if findings.is_empty() {
        findings.push(Finding::fine(format!("{} is right", path.display())));
    }
    findings
}

/// `default_agent` may be any text; only here is it looked at before somebody needs it.
fn unknown_default_agent(config: &Config, path: &std::path::Path, remedy: &str) -> Option<Finding> {
    let name = config.default_agent.as_deref()?;
    let known: Vec<&str> =
        installed::known().map(|agent| agent.name()).chain(config.agents.keys().map(String::as_str)).collect();
    if known.contains(&name) {
        return None;
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = config::line_of(&text, "default_agent").map(|line| format!(" line {line}")).unwrap_or_default();
    let meant = did_you_mean(nearest(name, known));
    Some(Finding::problem(format!("{}{line}: default_agent {name:?} is not an agent{meant}", path.display()), remedy))
}
