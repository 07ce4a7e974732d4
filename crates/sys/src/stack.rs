//! Memory of the stack that only the start of a process needed. A session has two processes that wait for days, so that some
//! pages each count.

use rustix::mm::{Advice, madvise};

/// The size of a page. Where pages are larger the kernel refuses the range, which then stays as it is.
const PAGE: usize = 4096;
/// How far below the present frame memory is given back. The kernel maps little more than this for a new process.
const DEPTH: usize = 112 * 1024;

/// Gives back the memory below the frames that are in use. What is called later gets new, empty pages.
#[inline(never)]
#[expect(unsafe_code, reason = "the memory below the frames that are in use belongs to no variable")]
pub fn give_back() {
    let in_this_frame = 0_u8;
    // Two pages stay for this function and those that it calls.
    let end = (std::ptr::from_ref(&in_this_frame).addr() & !(PAGE - 1)).saturating_sub(2 * PAGE);
    let start = end.saturating_sub(DEPTH);
    // SAFETY: The stack grows down, and the range ends more than a page below the frame of this function: no frame is in it,
    // in this thread. Other threads have other stacks, and below the stack of the main thread the kernel leaves a gap of
    // 1 MiB, so that the range is in no other mapping. The kernel fills pages that are used again with zeros.
    let given = unsafe { madvise(std::ptr::with_exposed_provenance_mut(start), end - start, Advice::LinuxDontNeed) };
    // A part of the range that is not mapped is an error, and the rest is given back all the same.
    let _ = given;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses stack down to `depth` frames of 4 KiB, and adds up what is in them.
    #[inline(never)]
    fn deep(depth: u64) -> u64 {
        let filled = std::hint::black_box([depth; 512]);
        let below = if depth == 0 { 0 } else { deep(depth - 1) };
        below + std::hint::black_box(&filled).iter().sum::<u64>() / 512
    }

    #[test]
    fn frames_in_use_stay_and_later_calls_find_memory_again() {
        let kept = std::hint::black_box([7_u8; 8192]);
        for _ in 0..3 {
            assert_eq!(deep(20), (0..=20).sum::<u64>());
            give_back();
            assert!(kept.iter().all(|&byte| byte == 7));
        }
    }
}
