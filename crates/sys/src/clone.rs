//! Making a process: `clone3`, the only call that also creates the child inside its cgroup.
//!
//! The cost this saves: a copy of a process shares its pages with the original until one of the two writes. Every such
//! write then takes a fault and copies a page (3 µs in a virtual machine, a hundred of them in a launch). A child that
//! only prepares to run another program needs none of that. It may use our own memory while we are suspended
//! (`CLONE_VM` and `CLONE_VFORK`), on a stack of its own. Unlike after `vfork`, it may then do anything that we could
//! do.

#![expect(unsafe_code, reason = "clone3 and the first instructions of the child; each block says why it is sound")]

use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ffi::c_void;
use std::io;

/// Which memory a child uses, and what the parent does in the meantime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A copy of the parent, and both continue.
    Fork,
    /// A copy of the parent, which is suspended until the child has run `exec` or exited.
    VforkCopy,
    /// The parent is suspended in the same way, and the child uses the parent's memory. When the kernel kills the child
    /// for lack of memory, it kills the parent as well, so this is not for a child with a memory limit. If the child is
    /// killed otherwise, it may leave the memory in the middle of a change. (On processors for which the few
    /// instructions are not written, a copy.)
    VforkShared,
}

/// A new process; its end is reported by SIGCHLD.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
}

/// Not libc's constant of that name, which does not fit its type.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// One child, in its cgroup from its first instruction. It runs `life`; after that it ends, unless it has run another
/// program.
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
    // SAFETY: the kernel just gave us this descriptor (CLONE_PIDFD), and nothing else owns it.
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

/// Everything that a child runs. It never returns into the code of the original, not even with a panic.
fn live(life: &dyn Fn()) -> ! {
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(life));
    // SAFETY: ends this process, without the exit handlers of the original.
    unsafe { libc::_exit(127) }
}

#[cfg(target_arch = "x86_64")]
mod within {
    use super::{c_void, io, live};
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

    /// More than is needed; only the used part becomes memory.
    const STACK: usize = 1 << 20;
    /// The lowest part is not accessible: a process that needs more stack than there is dies there, and overwrites
    /// nothing.
    const GUARD: usize = 1 << 12;

    /// The child uses our memory, with a stack of its own: on our stack it would overwrite our return addresses.
    pub(super) fn lent(arguments: &mut libc::clone_args, life: &dyn Fn()) -> io::Result<i32> {
        let (access, kind) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: new memory at an address that the kernel chooses, to which nothing else refers.
        let stack = unsafe { mmap_anonymous(std::ptr::null_mut(), STACK, access, kind) }?;
        // SAFETY: the lower end of the memory above.
        let guarded = unsafe { mprotect(stack, GUARD, MprotectFlags::empty()) };
        arguments.flags |= libc::CLONE_VM as u64;
        arguments.stack = stack as u64;
        arguments.stack_size = STACK as u64;
        let mut life = life;
        // SAFETY: the parent is suspended until the child no longer uses its memory. So `life`, what it borrows and the
        // stack outlive the child, and parent and child never run in this memory at the same time. `entered` never
        // returns, so it needs no return address.
        let made = guarded.map_err(io::Error::from).and_then(|()| unsafe {
            match clone3(arguments, entered, std::ptr::from_mut(&mut life).cast()) {
                pid if pid > 0 => i32::try_from(pid).map_err(io::Error::other),
                error => Err(io::Error::from_raw_os_error(i32::try_from(-error).unwrap_or(libc::EIO))),
            }
        });
        // SAFETY: the memory from above; the child no longer uses it, see there.
        unsafe { munmap(stack, STACK) }?;
        made
    }

    unsafe extern "C" fn entered(life: *mut c_void) -> ! {
        // SAFETY: the pointer that `lent` passed; `lent` waits for this process and keeps the value.
        live(unsafe { *life.cast::<&dyn Fn()>() })
    }

    /// Returns in the parent only. The child begins with `entry(argument)` at the top of its own stack, which is a
    /// multiple of sixteen, as a call requires.
    unsafe fn clone3(
        arguments: &mut libc::clone_args,
        entry: unsafe extern "C" fn(*mut c_void) -> !,
        argument: *mut c_void,
    ) -> i64 {
        let result;
        // SAFETY: the system call changes the registers rax, rcx and r11, which are named; memory is assumed to change.
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
