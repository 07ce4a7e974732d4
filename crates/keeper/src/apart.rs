//! A replacement holder goes apart from the process that has started it.
//!
//! The race this solves: where both helpers were killed, the process that notices it first starts a replacement. That may be the agent
//! itself (the driver of a job watches its own session) or a command that the agent runs. A holder below the agent, and in its cgroup,
//! would end with it, be listed as something that the agent has left behind, and could not end it: nobody signals a parent of its own.

use ostler_sys::{cgroup, spawn};
use rustix::fd::AsFd;
use std::io;

/// The flag before the id of the session.
pub const FLAG: &str = "--apart";

/// Goes on in a copy of this process: nobody's child once we have left, and in the cgroup in which a launch would have put it.
pub fn go_on(session: &str, life: &dyn Fn() -> i32) -> io::Result<()> {
    let outside = cgroup::base().and_then(|base| base.to_leave_for(session));
    let copy = |group| {
        spawn::branch_off(group, || {
            life();
        })
    };
    // A cgroup that it may not enter is no reason not to hold the session.
    copy(outside.as_ref().map(AsFd::as_fd)).or_else(|_| copy(None))
}
