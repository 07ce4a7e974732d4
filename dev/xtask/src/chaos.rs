//! `cargo xtask chaos`: faults on purpose. Builds the program and starts the runner of the faults, which is a separate
//! crate: it needs our own crates, and xtask needs none.

use anyhow::Result;

use crate::workspace;

pub fn run(arguments: &[String]) -> Result<()> {
    // The same choice of packages as in the tests, so that nothing is built twice.
    workspace::run_visibly(workspace::cargo().args(["build", "--workspace", "--bins", "--example", "misbehave"]))?;
    let mut chaos = workspace::cargo();
    chaos.args(["run", "--quiet", "--package", "ostler-chaos", "--"]).args(arguments);
    workspace::run_visibly(&mut chaos)
}
