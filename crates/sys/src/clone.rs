//! Making a process: `clone3`, the one call that also puts the child into its cgroup as it comes to life.
//!
//! The cost this saves: a copy of a process shares its pages with the original until one of the two writes, and every such
//! write then takes a fault and copies a page (3 µs in a virtual machine, a hundred of them in a launch). A child that
//! only prepares to run another program needs none of that. It may live on our own memory while we are suspended
//! (`CLONE_VM` and `CLONE_VFORK`), on a stack of its own. Unlike after `vfork`, it may then do anything that we could do.

#![expect(unsafe_code, reason = "clone3 and the first instructions of the child; each block says why it is sound")]

use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ffi::c_void;
use std::io;

/// Where a child lives, and what we do meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A copy of us, and both go on.
    Fork,
    /// A copy of us, and we are suspended until it has run `exec` or left.
    VforkCopy,
    /// We are suspended in the same way, and it lives on our memory. The kernel that kills it for want of memory kills
    /// us as well, so not for one that may have but little. If it is killed otherwise it may leave our memory in the middle of
    /// a change. (On processors for which nobody has written the few instructions, a copy.)
    VforkShared,
}

/// A new process; its end is told to us by SIGCHLD.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
}

/// Not libc's constant of that name, which does not fit its type.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// One child, in its cgroup from its first instruction. It lives `life`, which ends by running another program, or with
/// it.
pub(crate) fn make(kind: Kind, cgroup: Option<BorrowedFd<'_>>, life: &dyn Fn()) -> io::Result<Child> {
    let mut pidfd: RawFd = -1;
    // SAFETY: all-zero is a valid clone_args: plain integers.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = libc::CLONE_PIDFD as u64;
    arguments.pidfd = std::ptr::from_mut(&mut pidfd) as u64;
    arguments.exit_signal = libc::SIGCHLD as u64;
    if let Some(group) = cgroup {
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = group.as_raw_fd() as u64;
    }
    let pid = match kind {
        Kind::Fork => copied(&mut arguments, life),
        Kind::VforkCopy => {
            arguments.flags |= libc::CLONE_VFORK as u64;
            copied(&mut arguments, life)
        }
        Kind::VforkShared => {
            arguments.flags |= libc::CLONE_VFORK as u64;
            within::lent(&mut arguments, life)
        }
    }?;
    // SAFETY: the kernel just gave us this descriptor (CLONE_PIDFD), nobody else owns it.
    Ok(Child { pid, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } })
}

/// The child has its own copy of everything.
fn copied(arguments: &mut libc::clone_args, life: &dyn Fn()) -> io::Result<i32> {
    // SAFETY: without CLONE_VM this is fork; what the arguments point to outlives the call.
    let result =
        unsafe { libc::syscall(libc::SYS_clone3, std::ptr::from_mut(arguments), size_of::<libc::clone_args>()) };
    match i32::try_from(result) {
        Ok(0) => live(life),
        Ok(pid) if pid > 0 => Ok(pid),
        Ok(_) | Err(_) => Err(io::Error::last_os_error()),
    }
}

/// The whole life of a child. Nothing may come back from it into what the original was doing, a panic neither.
fn live(life: &dyn Fn()) -> ! {
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(life));
    // SAFETY: ends this process, without what the original left to do at its exit.
    unsafe { libc::_exit(127) }
}

#[cfg(target_arch = "x86_64")]
mod within {
    use super::{c_void, io, live};
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

    /// Room for anything; only what is used of it becomes memory.
    const STACK: usize = 1 << 20;
    /// Nothing lies on the lowest part: a process that needs more than there is dies there, and overwrites nothing.
    const GUARD: usize = 1 << 12;

    /// The child lives on our memory, with a stack of its own: on ours it would overwrite where we are to go on.
    pub(super) fn lent(arguments: &mut libc::clone_args, life: &dyn Fn()) -> io::Result<i32> {
        let (access, kind) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: new memory at a place of the kernel's choice, of which nobody else knows.
        let stack = unsafe { mmap_anonymous(std::ptr::null_mut(), STACK, access, kind) }?;
        // SAFETY: the lower end of the memory above.
        let guarded = unsafe { mprotect(stack, GUARD, MprotectFlags::empty()) };
        arguments.flags |= libc::CLONE_VM as u64;
        arguments.stack = stack as u64;
        arguments.stack_size = STACK as u64;
        let mut life = life;
        // SAFETY: we are suspended until the child no longer uses our memory, so that `life`, what it borrows and the stack
        // outlive it, and at no time do two of us run in it. `entered` never returns, so it needs no place to return to.
        let made = guarded.map_err(io::Error::from).and_then(|()| unsafe {
            match clone3(arguments, entered, std::ptr::from_mut(&mut life).cast()) {
                pid if pid > 0 => i32::try_from(pid).map_err(io::Error::other),
                error => Err(io::Error::from_raw_os_error(i32::try_from(-error).unwrap_or(libc::EIO))),
            }
        });
        // SAFETY: the memory from above; the child has left it, see there.
        unsafe { munmap(stack, STACK) }?;
        made
    }

    unsafe extern "C" fn entered(life: *mut c_void) -> ! {
        // SAFETY: what `lent` passed, which waits for us and keeps it.
        live(unsafe { *life.cast::<&dyn Fn()>() })
    }

    /// Returns in the parent only; the child begins with `entry(argument)` at the top of its own stack, which is a multiple of
    /// sixteen, as a call requires.
    unsafe fn clone3(
        arguments: &mut libc::clone_args,
        entry: unsafe extern "C" fn(*mut c_void) -> !,
        argument: *mut c_void,
    ) -> i64 {
        let result;
        // SAFETY: of the registers the system call changes rax, rcx and r11, which are named; memory is assumed to change.
        unsafe {
            std::arch::asm!(
                "syscall",
                "test rax, rax",
                "jnz 2f",
                "mov rdi, {argument}",
                "call {entry}",
                "ud2",
                "2:",
                argument = in(reg) argument,
                entry = in(reg) entry,
                inout("rax") libc::SYS_clone3 => result,
                in("rdi") std::ptr::from_mut(arguments),
                in("rsi") size_of::<libc::clone_args>(),
                out("rcx") _,
                out("r11") _,
            );
        }
        result
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod within {
    pub(super) use super::copied as lent;
}
