//! `cargo xtask chaos`: faults on purpose. It builds what they befall and hands over: the faults need our own crates, and
//! this runner needs none.

use anyhow::Result;

use crate::workspace;

pub fn run(arguments: &[String]) -> Result<()> {
    workspace::run_visibly(workspace::cargo().args([
        "build",
        "--package",
        "ostler",
        "--bins",
        "--example",
        "misbehave",
    ]))?;
    let mut chaos = workspace::cargo();
    chaos.args(["run", "--quiet", "--package", "ostler-chaos", "--"]).args(arguments);
    workspace::run_visibly(&mut chaos)
}
