//! Limits of the system that ostler may reach. Whatever reaches one of them has another way to continue.

use super::Finding;
use ostler_sys::notify::{self, Watcher};

pub fn check() -> Vec<Finding> {
    let words = |limit: Option<u64>| limit.map_or_else(|| "?".to_owned(), |limit| limit.to_string());
    let limits = notify::limits();
    let (instances, watches) = (words(limits.instances), words(limits.watches));
    vec![match Watcher::new() {
        Ok(_) => Finding::fine(format!("files can be watched ({instances} instances and {watches} watches per user)")),
        Err(error) => Finding::note(
            format!("no file can be watched now ({error}; {instances} instances per user); ostler polls instead"),
            "sysctl fs.inotify.max_user_instances=1024",
        ),
    }]
}
