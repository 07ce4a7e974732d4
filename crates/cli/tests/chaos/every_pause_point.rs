//! Whoever is killed at whichever named point: no message lost or doubled, no wrong status, nothing left behind. A point
//! that nobody passes fails as well.

use crate::{at_once, program};
use ostler_chaos::{attempt, points};
use ostler_sys::pause::token;

#[test]
fn a_death_at_any_pause_point_loses_nothing() {
    at_once(points::all(), |(role, point)| {
        let lived = attempt(|| points::kill_at(program(), role, point));
        lived.map_err(|why| format!("{}: {why}", token(role, point)))
    });
}
