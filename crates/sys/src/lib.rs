//! The kernel, and nothing else: every system call of ostler that is not plain file reading is here, and so is
//! everything that is particular to Linux (including the bus over which its services are asked, [`dbus`]). A port to
//! another system is a second implementation of this crate.
//!
//! Theory of operation:
//!
//! * A process is its [`process::Identity`]: pid, start time and boot together. A pid alone proves nothing.
//! * Signals go through [`process::Pidfd`], which is opened first and compared afterwards, so that a reused pid can
//!   never be hit. It refuses 0, 1, this process and its parents.
//! * "Gone" and "could not look" are different answers; the second is an error.
//! * [`spawn`] is the only place that starts processes. The child gets the descriptors that are named and no others.
//! * [`dir::Dir`] is a folder held open. Everything in a session folder is reached relative to it, so that no path is
//!   too long and a renamed folder stays the same folder.

pub mod cgroup;
pub mod clock;
mod clone;
pub mod dbus;
pub mod descriptors;
pub mod dir;
pub mod entry;
pub mod fifo;
pub mod file_locks;
pub mod lock;
pub mod machine;
pub mod memory_file;
pub mod mounts;
pub mod notify;
pub mod pack;
pub mod pause_points;
pub mod piped;
pub mod pipes;
pub mod priority;
pub mod process;
pub mod process_table;
pub mod pty;
pub mod ready;
pub mod rename;
pub mod signals;
pub mod socket;
pub mod spawn;
pub mod stack;
pub mod terminal;
pub mod terminal_guard;
pub mod threads;
pub mod timer;
pub mod tree;
pub mod users;
