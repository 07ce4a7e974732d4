//! config.toml: every setting that is unknown or wrong, with its line.

use super::{Finding, quoted};
use crate::config::{self, Config};
use crate::environment::Environment;

pub fn check(environment: &Environment) -> Vec<Finding> {
    let Some(path) = config::path(&environment.lookup()).filter(|path| path.exists()) else {
        return Vec::new();
    };
    let remedy = format!("edit {}", quoted(&path));
    let mut findings: Vec<Finding> = Config::load(&environment.lookup())
        .mistakes
        .iter()
        .map(|mistake| Finding::problem(mistake.in_a_line(), remedy.clone()))
        .collect();
    if findings.is_empty() {
        findings.push(Finding::fine(format!("{} has no mistakes", path.display())));
    }
    findings
}
