//! An agent behind the Agent Client Protocol may name the file of a conversation by the minute, and begin a new file
//! when it loads the conversation. So a conversation that is loaded in the minute in which it began is overwritten.
//! Resuming therefore waits until that minute is over. Nothing has been started yet, and a client may exit instead of
//! waiting.

use crate::error::Result;
use crate::notice::Notice;
use jiff::Timestamp;
use ostler_agents::acp;
use ostler_core::event::Event;
use ostler_core::record::Session;
use ostler_store::folder::Folder;
use ostler_store::journal;
use ostler_sys::clock;
use rustix::event::{Timespec, poll};

pub fn wait_out(folder: &Folder, session: &Session, native_id: &str, tell: &mut dyn FnMut(Notice)) -> Result<()> {
    let behind = acp::adapters::of_command(&session.arguments).filter(|agent| agent.names_files_by_the_minute());
    let Some(behind) = behind else {
        return Ok(());
    };
    if !folder.run(folder.newest_run()?)?.record()?.plan.opens() {
        return Ok(());
    }
    let began = journal::read(folder.dir(), 0)?.entries.into_iter().find_map(|entry| match entry.event {
        Event::Opened { native_id: Some(id) } if id == native_id => Some(entry.at),
        _ => None,
    });
    let left = began.map_or(0, |began| left_of_its_minute(began, clock::now()));
    if left > 0 {
        tell(Notice::WaitsOutMinute { agent: behind.name(), seconds: left.unsigned_abs() });
        // Only the time is waited for.
        match poll(&mut [], Some(&Timespec { tv_sec: left, tv_nsec: 0 })) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(std::io::Error::from(error).into()),
        }
    }
    Ok(())
}

/// How many seconds are left of the minute in which it began; 0 when that is over.
fn left_of_its_minute(began: Timestamp, now: Timestamp) -> i64 {
    let next = began.as_second().div_euclid(60) * 60 + 60;
    (next - now.as_second()).clamp(0, 60)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_minute_is_waited_out() {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(left_of_its_minute(at(600), at(600)), 60);
        assert_eq!(left_of_its_minute(at(610), at(659)), 1);
        assert_eq!(left_of_its_minute(at(659), at(660)), 0);
        assert_eq!(left_of_its_minute(at(600), at(9000)), 0);
    }
}
