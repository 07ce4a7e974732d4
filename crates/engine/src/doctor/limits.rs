//! Limits of the system that we may run into. Everything that meets one has a way to go on without.

use super::Finding;
use ostler_sys::notify::Watcher;

pub fn check() -> Vec<Finding> {
    let limit = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/fs/inotify/{name}")).unwrap_or_default();
        if text.trim().is_empty() { "?".to_owned() } else { text.trim().to_owned() }
    };
    let (instances, watches) = (limit("max_user_instances"), limit("max_user_watches"));
    vec![match Watcher::new() {
        Ok(_) => Finding::fine(format!("files can be watched ({instances} instances and {watches} watches per user)")),
        Err(error) => Finding::note(
            format!("no file can be watched now ({error}; {instances} instances per user); ostler polls instead"),
            "sysctl fs.inotify.max_user_instances=1024",
        ),
    }]
}
