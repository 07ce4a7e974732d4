//! Faults on purpose, a few of each kind and always the same ones. `cargo xtask chaos` does many more.

#![expect(clippy::unwrap_used, reason = "a test that finds no value has failed")]

mod every_pause_point;
mod power_loss;

use std::path::Path;

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_ostler"))
}
