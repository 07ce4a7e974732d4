//! One program for every target, so that it is built once; `OSTLER_FUZZ` names the target. `cargo xtask fuzz` starts
//! it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("OSTLER_FUZZ").unwrap_or_default();
    let target = ostler_fuzz_targets::targets().into_iter().find(|target| target.name == name);
    target.unwrap_or_else(|| panic!("OSTLER_FUZZ={name:?} names no target")).run
});

fuzz_target!(|bytes: &[u8]| TARGET(bytes));
