//! A session that is created as one that has ended: its conversation exists already, and no process is started for it.
//!
//! As with a launch, its folder is made under a hidden name and becomes visible when it is complete. What remains when
//! the process is killed in between is removed together with the remains of killed launches.

use crate::abandoned;
use ostler_core::outcome::Outcome;
use ostler_core::record::Session;
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::home::{Home, Place, hidden_name};
use ostler_store::{RunRecord, StoreError};
use ostler_sys::dir::Dir;
use ostler_sys::pause_points::{self, Point};

/// Makes the session. `add` puts into its folder what else belongs there. The session is not visible before that is
/// done, and nothing of it is left when it fails.
pub fn put_ended<E: From<StoreError>>(
    home: &Home,
    session: &Session,
    record: &RunRecord,
    outcome: &Outcome,
    add: impl FnOnce(&Folder, &RunFolder) -> Result<(), E>,
) -> Result<Place, E> {
    let sessions = home.open_or_make(&home.sessions())?;
    let hidden = hidden_name(session.id.as_str());
    let made = make(&sessions, &hidden, session, record, outcome, add);
    if made.is_err() {
        // If the removal fails, the rest has a name that is never listed as a session.
        let _ = sessions.remove_all(&hidden);
    }
    made?;
    Ok(Place { id: session.id, path: home.sessions().join(session.id.as_str()), archived: false })
}

fn make<E: From<StoreError>>(
    sessions: &Dir,
    hidden: &str,
    session: &Session,
    record: &RunRecord,
    outcome: &Outcome,
    add: impl FnOnce(&Folder, &RunFolder) -> Result<(), E>,
) -> Result<(), E> {
    let failed = |error| StoreError::Io { file: hidden.to_owned(), error };
    sessions.make_dir(hidden).map_err(failed)?;
    let folder = Folder::new(sessions.open_dir(hidden).map_err(failed)?);
    abandoned::hold(&folder).map_err(failed)?;
    folder.write_session(session)?;
    let run = folder.make_run(record.run)?;
    run.write_record(record)?;
    add(&folder, &run)?;
    run.publish_outcome(outcome, record)?;
    run.dir().sync().and_then(|()| folder.dir().sync()).map_err(failed)?;
    pause_points::at(Point::EndedFilled);
    sessions.rename_new(hidden, sessions, session.id.as_str()).map_err(failed)?;
    pause_points::at(Point::EndedShown);
    Ok(sessions.sync().map_err(failed)?)
}
