//! The present view of one session, and the record that it was launched with.

use crate::engine::Engine;
use crate::error::Result;
use crate::request::{look_and_record, look_and_record_to};
pub use ostler_core::fact::{Ask, Fact, TurnEnd, Verdict};
pub use ostler_core::outcome::{Kind, Outcome};
pub use ostler_core::record::{Mode, Session};
pub use ostler_core::view::{Phase, View};
use ostler_store::home::Place;
use ostler_view::look::Depth;

impl Engine {
    /// A summary of a session. The end of a session that ended while it had no keeper is recorded.
    pub fn view(&self, place: &Place) -> Result<View> {
        let view = look_and_record(place)?;
        self.notify_if_lost(place, &view);
        Ok(view)
    }

    /// The same without its last line, which costs most: for a terminal session the screen is drawn for it.
    pub fn view_without_last(&self, place: &Place) -> Result<View> {
        let view = look_and_record_to(Depth::Standing, place)?;
        self.notify_if_lost(place, &view);
        Ok(view)
    }

    /// What was asked for when the session was launched.
    pub fn record(&self, place: &Place) -> Result<Session> {
        Ok(place.open()?.session()?)
    }

    /// What the agent proposes to allow for the rest of the run, in words, when it asks and proposes something.
    #[must_use]
    pub fn proposal(view: &View) -> Option<String> {
        ostler_agents::find(&view.agent)?.longer(view.asking.as_ref()?)
    }
}
