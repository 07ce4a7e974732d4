//! Which agent a session gets: the agent that is named, one of a person's own, or the one that is installed; and the
//! message when there is none.

#![expect(clippy::unwrap_used, reason = "a test that finds no value has failed")]

mod acp_agents;
mod acp_messages;
mod adopting;
mod completing;
mod listing;
mod mistyped;
mod older_versions;
mod own_agents;
mod prompts;
mod settings;
mod without_a_name;

use ostler_testkit::Harness;
use std::path::{Path, PathBuf};

fn harness() -> Harness {
    Harness::new(env!("CARGO_BIN_EXE_ostler"))
}

/// A machine with these programs, the shell and a few of its commands, and no others.
fn harness_with(programs: &[&str]) -> (Harness, PathBuf) {
    let mut harness = harness();
    let folder = harness.root().join("bin");
    std::fs::create_dir(&folder).unwrap();
    for name in ["sh", "sleep", "cat", "echo"] {
        let real = ["/bin", "/usr/bin"].iter().map(|folder| Path::new(folder).join(name)).find(|path| path.exists());
        std::os::unix::fs::symlink(real.unwrap(), folder.join(name)).unwrap();
    }
    for name in programs {
        // Prints its version, or reads a prompt and answers nothing.
        program(
            &harness,
            &folder,
            name,
            &format!("if [ \"$1\" = --version ]; then echo {name} 7.8.9; else cat >/dev/null; fi"),
        );
    }
    harness.set("PATH", &folder);
    (harness, folder)
}

fn program(harness: &Harness, folder: &Path, name: &str, script: &str) {
    harness.write_program(&folder.join(name), &format!("#!/bin/sh\n{script}\n"));
}
