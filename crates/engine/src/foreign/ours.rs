//! Which of these processes belong to sessions of ours, by identity and by descent.

use super::{ConversationOwner, Evidence};
use ostler_core::view::View;
use ostler_store::home::{Home, Place};
use ostler_sys::process_table::descends_from;
use ostler_view::live_views::Live;
use ostler_view::look::{Depth, look_to};

/// Marks the owners that belong to a session of ours. A session that cannot be read marks no process: it is better to
/// list one process too many as foreign than to hide one.
pub fn tell_apart(home: &Home, owners: &mut [ConversationOwner]) {
    if owners.is_empty() {
        return;
    }
    let places = home.live_places().unwrap_or_default();
    let live = Live::open(home, places.len());
    let look = |place: &Place| match &live {
        Some(live) => live.look(place),
        None => look_to(Depth::Awaited, place),
    };
    let living: Vec<View> = places.iter().filter_map(|place| look(place).ok()).filter(|view| view.alive).collect();
    for owner in owners {
        let session = living.iter().find(|view| accounts_for(view, owner));
        owner.ours = session.is_some();
        owner.session = session.map(|view| view.id);
        if session.is_some_and(|view| view.pid == Some(owner.pid)) {
            owner.known_by = Evidence::Session;
        }
    }
}

/// The agent of a session belongs to it. So do the descendants of the agent, unless they use another conversation: an
/// agent that our agent has started is not kept by us.
fn accounts_for(view: &View, owner: &ConversationOwner) -> bool {
    let Some(agent) = view.pid else {
        return false;
    };
    if agent == owner.pid {
        return true;
    }
    let same = owner.native_id.is_none() || owner.native_id == view.native_id;
    view.conversation_agent() == owner.agent && same && descends_from(owner.pid, agent)
}
