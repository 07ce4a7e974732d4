//! `cargo xtask record`: records again what the real agents print and write. The recorder itself is a crate of the
//! workspace, because it starts agents as ostler does; see dev/recorder.

use anyhow::Result;

use crate::processes::become_subreaper;
use crate::{agents, workspace};

pub fn run(arguments: &[String]) -> Result<()> {
    become_subreaper()?;
    agents::run(&[])?;
    let mut recorder = workspace::cargo();
    recorder.args(["run", "--quiet", "--package", "ostler-recorder", "--"]).args(arguments);
    workspace::run_visibly(&mut recorder)?;
    eprintln!(
        "\ngit diff recordings shows what has changed; then:\n    \
         INSTA_UPDATE=always cargo test -p ostler-agents --test recordings\n    \
         INSTA_UPDATE=always cargo test -p ostler --test replay"
    );
    Ok(())
}
