//! Finds what is wrong or soon will be, and says for each finding what to do about it. It changes nothing, unless the
//! caller asks it to fix what is safe to fix.
//!
//! One check per file, each a function that returns findings. Where a check reads the machine's own files, their root
//! is an argument, so that tests can pass files of their own.

mod agents;
mod config;
mod containment;
mod fix;
mod foreign;
mod helpers;
mod home;
mod journals;
mod kernel;
mod limits;
mod logout;
mod notifications;
mod sessions;
mod strays;
mod tools;

pub use fix::{Fix, fix};

use crate::engine::Engine;
use crate::error::Result;
use serde::Serialize;

/// At most this many threads are used.
const AT_ONCE: usize = 8;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Fine,
    /// Worth knowing; nothing has to be done.
    Note,
    /// A person has to do something.
    Problem,
    /// Was a note or a problem, and has been fixed now.
    #[serde(rename = "repaired")]
    Fixed,
}

/// One thing that a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which check found it; stays the same when the words change.
    pub check: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What was found.
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
        Finding { check: "", level: Level::Fine, what: what.into(), remedy: None, fix: None }
    }

    /// Worth knowing.
    pub fn note(what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        let remedy = Some(remedy.into()).filter(|text| !text.is_empty());
        Finding { check: "", level: Level::Note, what: what.into(), remedy, fix: None }
    }

    /// Something is wrong.
    pub fn problem(what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { check: "", level: Level::Problem, what: what.into(), remedy: Some(remedy.into()), fix: None }
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
        let mut findings = Vec::new();
        let mut add = |check: &'static str, found: Vec<Finding>| {
            // A check that has several parts names them itself.
            let named = |finding: Finding| match finding.check {
                "" => Finding { check, ..finding },
                _ => finding,
            };
            findings.extend(found.into_iter().map(named));
        };
        add("home", home::check(home, self.config.min_free_space));
        let (found, kept) = sessions::check(home)?;
        add("sessions", found);
        add("journals", journals::check(home)?);
        let helpers = helpers::all(kept)?;
        add("strays", strays::check(home, &helpers)?);
        add("helpers", helpers::check(home, &helpers));
        add("containment", containment::check(environment, home, &helpers)?);
        add("kernel", kernel::check());
        add("system_limits", limits::check());
        add("logout", logout::check_this_machine(environment));
        add("agents", agents::check(environment));
        add("config", config::check(environment));
        add("notifications", notifications::check(home)?);
        add("foreign", foreign::check(environment, home)?);
        add("tools", tools::check(environment, home, &helpers)?);
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
