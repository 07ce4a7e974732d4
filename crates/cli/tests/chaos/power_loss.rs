//! The power is cut at every moment of a session, and the disk has only what was synced. Everything that was reported
//! to a person is there, and nothing half-written is read as complete.

use crate::program;
use ostler_chaos::power;

#[test]
fn what_was_reported_survives_a_power_cut_at_any_moment() {
    if !power::can_record() {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "strace is needed");
        eprintln!("left out: strace is needed");
        return;
    }
    let tried = power::cut_everywhere(program());
    assert!(tried.moments > 100 && tried.disks > 200, "hardly anything was recorded: {tried:?}");
    println!("{tried:?}");
}
