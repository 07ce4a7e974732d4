//! Agents that run without ostler, and the stale records of such processes. ostler must not change either.

use super::{Finding, quoted};
use crate::environment::Environment;
use crate::error::Result;
use crate::foreign::{owners, stale_records};
use ostler_store::home::Home;
use std::path::PathBuf;

pub fn check(environment: &Environment, home: &Home) -> Result<Vec<Finding>> {
    let variable = environment.lookup();
    let foreign = owners(home, &variable)?.iter().filter(|holder| !holder.ours).count();
    let mut findings: Vec<Finding> = running(foreign).into_iter().collect();
    for agent in ostler_agents::all() {
        findings.extend(left_behind(agent.name(), &stale_records(agent, &variable)?));
    }
    Ok(findings)
}

fn running(foreign: usize) -> Option<Finding> {
    let what = match foreign {
        0 => return None,
        1 => "1 conversation runs outside ostler".to_owned(),
        more => format!("{more} conversations run outside ostler"),
    };
    Some(Finding::note(what, "ostler ls --foreign"))
}

fn left_behind(agent: &str, stale: &[PathBuf]) -> Option<Finding> {
    let what = match stale {
        [] => return None,
        [one] => format!("{} is a stale record of a {agent} process that was killed", one.display()),
        [first, rest @ ..] => {
            format!(
                "{} and {} more are stale records of {agent} processes that were killed",
                first.display(),
                rest.len()
            )
        }
    };
    // The records belong to the agent; the user may remove them.
    let words: Vec<String> = stale.iter().take(20).map(|file| quoted(file)).collect();
    Some(Finding::note(what, format!("rm {}", words.join(" "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_without_foreign_is_not_worth_a_line() {
        assert_eq!((running(0), left_behind("demo", &[])), (None, None));
        let words = |finding: Option<Finding>| finding.map(|finding| finding.what).unwrap_or_default();
        assert_eq!(words(running(2)), "2 conversations run outside ostler");
        let stale = ["/a/1.json", "/a/2.json"].map(PathBuf::from);
        assert_eq!(
            words(left_behind("demo", &stale)),
            "/a/1.json and 1 more are stale records of demo processes that were killed"
        );
    }
}
