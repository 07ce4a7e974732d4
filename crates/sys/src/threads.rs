//! The same work on every processor at the same time.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity, sched_yield};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};

/// Runs `work` in this thread and in others, as many as there are processors for us, and returns the result of each.
pub fn parallel<T: Send>(at_most: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
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

/// How many things are taken at once: threads that take one at a time wait for each other at the counter.
const BATCH: usize = 8;

/// Runs `work` on each of these in as many threads as there are processors for us, and returns the results in the same
/// order. For work that does not wait: more threads than processors would only take turns.
pub fn each_in_parallel<T: Sync, R: Send>(at_most: usize, things: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            match things.chunks(BATCH).nth(at) {
                Some(handful) => done.push((at, handful.iter().map(&work).collect::<Vec<R>>())),
                None => return done,
            }
        }
    };
    let mut all: Vec<(usize, Vec<R>)> = parallel(at_most, take).into_iter().flatten().collect();
    all.sort_unstable_by_key(|(at, _)| *at);
    all.into_iter().flat_map(|(_, came_of_it)| came_of_it).collect()
}

/// Runs `work` on each of these, this many at a time, and returns the results in the same order. For work that waits
/// for the disk or for other processes.
pub fn many_at_once<T: Sync, R: Send>(at_most: usize, things: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            match things.get(at) {
                Some(thing) => done.push((at, work(thing))),
                None => return done,
            }
        }
    };
    let mut all: Vec<(usize, R)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..at_most.min(things.len())).map(|_| scope.spawn(take)).collect();
        let mut all = take();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    all.sort_unstable_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, came_of_it)| came_of_it).collect()
}

/// The same, but passes each result on as soon as it and all before it are available.
pub fn many_in_order<T: Send, R: Send>(
    at_most: usize,
    things: Vec<T>,
    work: impl Fn(T) -> R + Sync,
    mut each: impl FnMut(R),
) {
    if things.len() <= 1 {
        things.into_iter().for_each(|thing| each(work(thing)));
        return;
    }
    let threads = at_most.clamp(1, things.len());
    let left = Mutex::new(things.into_iter().enumerate());
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (tell, left, work) = (tell.clone(), &left, &work);
            scope.spawn(move || {
                // A thread that panics ends the scope with its panic, so the other threads can stop.
                let take = || left.lock().ok()?.next();
                while let Some((at, thing)) = take() {
                    if tell.send((at, work(thing))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(tell);
        let (mut early, mut next) = (BTreeMap::new(), 0);
        for (at, result) in told {
            early.insert(at, result);
            while let Some(result) = early.remove(&next) {
                each(result);
                next += 1;
            }
        }
    });
}

/// Moves this thread to another processor. On a machine that saves processors, a new thread waits on the processor of
/// its creator until the next clock tick, which is longer than most of our work takes. The thread may be moved again
/// later.
fn leave(processor: usize, allowed: &CpuSet) {
    let mut others = *allowed;
    others.unset(processor);
    // If this is not allowed, the work is done here, and takes longer.
    let _ = sched_setaffinity(None, &others).and_then(|()| sched_setaffinity(None, allowed));
}

/// Whether this process has one thread.
pub fn is_single() -> std::io::Result<bool> {
    // The kernel counts a link for each thread, in addition to the two that every folder has: one call instead of a
    // list.
    Ok(rustix::fs::stat("/proc/self/task")?.st_nlink == 3)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn what_came_of_each_is_in_the_order_of_the_things() {
        let things: Vec<usize> = (0..100).collect();
        for threads in [0, 1, 7, 1000] {
            assert_eq!(many_at_once(threads, &things, |thing| thing * 2), (0..100).map(|n| n * 2).collect::<Vec<_>>());
        }
        assert_eq!(many_at_once(4, &[] as &[usize], |thing| *thing), [0; 0]);
        for threads in [0, 1, 7] {
            assert_eq!(each_in_parallel(threads, &things, |n| n * 2), (0..100).map(|n| n * 2).collect::<Vec<_>>());
        }
        assert_eq!(each_in_parallel(4, &[] as &[usize], |thing| *thing), [0; 0]);
    }

    #[test]
    fn results_are_handed_over_in_order_and_as_soon_as_they_can_be() {
        for threads in [1, 7, 1000] {
            let mut found = Vec::new();
            many_in_order(threads, (0..100).collect(), |thing: usize| thing * 2, |result| found.push(result));
            assert_eq!(found, (0..100).map(|n| n * 2).collect::<Vec<_>>());
        }
        // The second one works until the first one was passed on.
        let (tell, told) = mpsc::channel();
        let told = Mutex::new(told);
        let work = |thing: usize| {
            if thing == 1 {
                told.lock().unwrap().recv().unwrap();
            }
            thing
        };
        let mut found = Vec::new();
        many_in_order(2, vec![0, 1, 2], work, |result| {
            found.push(result);
            let _ = tell.send(());
        });
        assert_eq!(found, [0, 1, 2]);
    }

    #[test]
    fn a_process_with_tests_in_it_has_several_threads() {
        assert!(!is_single().is_ok_and(|single| single));
    }
}
