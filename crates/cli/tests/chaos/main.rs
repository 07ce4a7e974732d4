//! Injected faults, a few of each kind and always the same ones. `cargo xtask chaos` injects many more.

#![expect(clippy::unwrap_used, reason = "a test that finds no value has failed")]

mod a_fault_of_each_kind;
mod every_pause_point;
mod power_loss;

use std::path::Path;
use std::sync::Mutex;

/// More than one, because most of the time is spent waiting for processes to begin and end.
const AT_ONCE: usize = 4;

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_ostler"))
}

/// Does everything in `todo`, a few at a time, and fails with a list of everything that went wrong.
#[track_caller]
fn at_once<T: Send>(todo: Vec<T>, act: impl Fn(T) -> Result<(), String> + Sync) {
    let _alone = ostler_testkit::alone();
    let (todo, wrong) = (Mutex::new(todo.into_iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = todo.lock().unwrap().next();
                    let Some(next) = next else { return };
                    if let Err(why) = act(next) {
                        wrong.lock().unwrap().push(why);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} broke a promise: {wrong:#?}", wrong.len());
}
