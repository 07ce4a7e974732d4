//! Whoever is killed at whichever named point: no message lost or doubled, no wrong status, nothing left behind. A point
//! that nobody passes fails as well.

use crate::program;
use ostler_chaos::points;
use std::sync::Mutex;

/// Most of the time is spent waiting for processes to begin and end.
const AT_ONCE: usize = 4;

#[test]
fn a_death_at_any_pause_point_loses_nothing() {
    let only = std::env::var("OSTLER_CHAOS_POINT").ok();
    let points = points::all().into_iter().filter(|(role, point)| {
        only.as_ref().is_none_or(|only| ostler_sys::pause::token(*role, *point).contains(only.as_str()))
    });
    let todo = Mutex::new(points.collect::<Vec<_>>());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = todo.lock().unwrap().pop();
                    let Some((role, point)) = next else { return };
                    if let Err(why) = ostler_chaos::attempt(|| points::kill_at(program(), role, point)) {
                        failed.lock().unwrap().push(format!("{}: {why}", ostler_sys::pause::token(role, point)));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "deaths at these points did harm: {failed:#?}");
}
