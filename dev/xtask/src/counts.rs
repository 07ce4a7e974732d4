//! `cargo xtask counts`: the promises about real agents at full count, with the release build, as rows for
//! docs/reliability.md. The test suite runs the same tests with smaller numbers.

use anyhow::{Result, bail};

use crate::{agents, test, workspace};

/// The variable with which tests know that the full count is requested (`ostler_testkit::times`).
const FULL: &str = "OSTLER_TEST_FULL";

pub fn run(arguments: &[String]) -> Result<()> {
    if let Some(unknown) = arguments.first() {
        bail!("`counts` takes no arguments, not even {unknown}");
    }
    agents::run(&[])?;
    let mut tests = workspace::cargo();
    tests.args(["test", "--release", "--package", "ostler", "--test", "agents", "--"]);
    // One after the other: the figures are for a machine that does only one thing.
    tests.args(["claude_stopped_", "background_tasks_", "all_of_it_is_saved_"]);
    // Jobs whose processes are all killed with SIGKILL at random.
    tests.args(["paid_once_whatever_is_killed", "six_agents_are_asked_once_each"]);
    tests.args(["--test-threads", "1", "--nocapture"]);
    test::clean_environment(&mut tests, &test::empty_home()?);
    tests.env(FULL, "1");
    workspace::run_visibly(&mut tests)
}
