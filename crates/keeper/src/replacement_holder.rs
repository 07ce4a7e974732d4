//! A replacement holder separates itself from the process that has started it.
//!
//! The race this solves: when both helpers were killed, the first process that notices it starts a replacement. That
//! may be the agent itself (the driver of a job watches its own session) or a command that the agent runs. A holder
//! below the agent, and in its cgroup, would end with the agent and be listed as a process that the agent has left
//! behind. It also could not end the agent, because no process signals its own parent.

use ostler_sys::{cgroup, spawn};
use rustix::fd::AsFd;
use std::io;

/// The flag before the id of the session.
pub const FLAG: &str = "--apart";

/// Continues in a copy of this process. The copy is orphaned once this process has exited, and it is in the cgroup in
/// which a launch would have put it.
pub fn go_on(session: &str, life: &dyn Fn() -> i32) -> io::Result<()> {
    let outside = cgroup::base().and_then(|base| base.to_leave_for(session));
    let copy = |group| {
        spawn::branch_off(group, || {
            life();
        })
    };
    // The session is held even when the copy may not enter that cgroup.
    copy(outside.as_ref().map(AsFd::as_fd)).or_else(|_| copy(None))
}
