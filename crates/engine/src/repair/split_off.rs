//! A conversation that was moved out of another one's transcript becomes a session of its own. It has ended, its parent
//! is recorded, and it can be resumed with the rights of the original session.

use crate::engine::Engine;
use crate::error::Result;
use crate::foreign_outcome::of_past;
use crate::prepare::prepare;
use ostler_core::id::SessionId;
use ostler_core::outcome::{Closing, Kind, Outcome};
use ostler_core::record::Session;
use ostler_keeper::create_ended::put_ended;
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::{RunRecord, StoreError};
use ostler_sys::clock;
use ostler_view::write_outcome;
use std::path::Path;

/// Makes the session of a conversation that `original` had until now.
pub fn keep(engine: &Engine, original: Session, native_id: &str, transcript: &Path) -> Result<SessionId> {
    let session = Session {
        id: SessionId::from_random(uuid::Uuid::new_v4().as_u128() as u64),
        name: None,
        keep: false,
        parent: Some(original.id),
        fork: None,
        origin: None,
        adopted: None,
        rules: ostler_core::rules::Rules::default(),
        created: clock::now(),
        ..original
    };
    let transcript = transcript.to_string_lossy().into_owned();
    let prepared = prepare(engine, &session, 1, native_id, true)?;
    let record = RunRecord { transcript: Some(transcript.clone()), ..prepared.record };
    let outcome = ended(&session, native_id, transcript);
    let nothing_more = |_: &Folder, _: &RunFolder| Ok::<(), StoreError>(());
    Ok(put_ended(&engine.home, &session, &record, &outcome, nothing_more)?.id)
}

/// Everything that was said is in its transcript, where it was before.
fn ended(session: &Session, native_id: &str, transcript: String) -> Outcome {
    let parent = session.parent.map(|id| format!(" from {id}")).unwrap_or_default();
    let closing = Closing {
        native_id: Some(native_id.to_owned()),
        transcript: Some(transcript),
        ended: session.created,
        ..write_outcome::of(session, 1)
    };
    of_past(Kind::Stopped, format!("split off{parent}: two processes had written one conversation"), closing)
}
