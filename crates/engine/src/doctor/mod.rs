//! What is wrong or soon will be, and for each finding what to do about it. It changes nothing, unless it is asked to fix what is
//! safe to fix.
//!
//! One check per file, each a function from what it looks at to findings; where a check reads the machine's own files,
//! their root is an argument, so that tests can show it another machine.

mod agents;
mod config;
mod containment;
mod fix;
mod foreign;
mod helpers;
mod home;
mod kernel;
mod limits;
mod logout;
mod sessions;
mod strays;
mod tools;

pub use fix::{Fix, fix};

use crate::error::Result;
use crate::settings::Engine;
use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Fine,
    /// Worth knowing; nothing has to be done.
    Note,
    /// A person has to do something.
    Problem,
    /// Was one of these until now.
    #[serde(rename = "mended")]
    Fixed,
}

/// One thing that a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub level: Level,
    pub what: String,
    /// A command, where one helps.
    #[serde(rename = "do")]
    pub remedy: Option<String>,
    /// How `--fix` fixes it.
    #[serde(skip)]
    pub fix: Option<Fix>,
}

impl Finding {
    /// Nothing is wrong.
    pub fn fine(what: impl Into<String>) -> Finding {
        Finding { level: Level::Fine, what: what.into(), remedy: None, fix: None }
    }

    /// Worth knowing.
    pub fn note(what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        let remedy = Some(remedy.into()).filter(|text| !text.is_empty());
        Finding { level: Level::Note, what: what.into(), remedy, fix: None }
    }

    /// Something is wrong.
    pub fn problem(what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { level: Level::Problem, what: what.into(), remedy: Some(remedy.into()), fix: None }
    }

    /// The same, with how to fix it.
    #[must_use]
    pub fn fixed_by(self, fix: Fix) -> Finding {
        Finding { fix: Some(fix), ..self }
    }
}

impl Engine {
    /// Looks at everything: home, sessions, helpers, kernel, agents, settings.
    pub fn doctor(&self) -> Result<Vec<Finding>> {
        let (home, environment) = (&self.home, &self.environment);
        let mut findings = home::check(home, self.config.min_free_space);
        findings.extend(sessions::check(home)?);
        findings.extend(strays::check(home)?);
        findings.extend(helpers::check(home)?);
        findings.extend(containment::check(environment, home)?);
        findings.extend(kernel::check());
        findings.extend(limits::check());
        findings.extend(logout::check_this_machine(environment));
        findings.extend(agents::check(environment));
        findings.extend(config::check(environment));
        findings.extend(foreign::check(environment, home)?);
        findings.extend(tools::check(environment, home)?);
        Ok(findings)
    }
}

/// A path as one word of a shell command.
fn quoted(path: &std::path::Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if text.chars().all(plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_survives_a_shell() {
        assert_eq!(quoted(std::path::Path::new("/a/b-c.d")), "/a/b-c.d");
        assert_eq!(quoted(std::path::Path::new("/a b/it's")), "'/a b/it'\\''s'");
    }
}
