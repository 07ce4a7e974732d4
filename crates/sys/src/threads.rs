//! The same work on every processor, at once and for a moment.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity, sched_yield};

/// Does `work` in this thread and in others, as many as there are processors for us, and hands over what each of them found.
pub fn side_by_side<T: Send>(at_most: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    let allowed = sched_getaffinity(None).ok();
    let processors = allowed.as_ref().map_or(1, |allowed| usize::try_from(allowed.count()).unwrap_or(1));
    let threads = processors.min(at_most);
    if threads <= 1 {
        return vec![work()];
    }
    let here = sched_getcpu();
    std::thread::scope(|scope| {
        let other = || {
            if let Some(allowed) = &allowed {
                leave(here, allowed);
            }
            work()
        };
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(other)).collect();
        sched_yield();
        let mut found = vec![work()];
        for other in others {
            found.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        found
    })
}

/// Goes to another processor. A machine that saves processors lets a new thread wait beside the one that made it until its
/// clock ticks next, which is longer than most of our work takes; from where we are put we may be moved again.
fn leave(processor: usize, allowed: &CpuSet) {
    let mut others = *allowed;
    others.unset(processor);
    // Where this is not allowed, work goes on here, and takes longer.
    let _ = sched_setaffinity(None, &others).and_then(|()| sched_setaffinity(None, allowed));
}
