//! Which facts of an agent's output change the state of its session.

use super::State;
use crate::event::Event;
use crate::fact::Fact;

/// The event of a fact that changes the state of a session; the other facts are only displayed.
#[must_use]
pub fn event_of(fact: Fact, state: &State) -> Option<Event> {
    match fact {
        Fact::Native { id } if state.native_id.as_deref() == Some(id.as_str()) => None,
        Fact::Native { id } => Some(Event::Native { id }),
        Fact::Transcript { path } if state.transcript.as_deref() == Some(path.as_str()) => None,
        Fact::Transcript { path } => Some(Event::Transcript { path }),
        Fact::Opened { native_id } => Some(Event::Opened { native_id }),
        Fact::NotOpened { reason } => Some(Event::NotOpened { reason }),
        // Output between turns means that the agent has begun a turn by itself, unless its protocol makes it answer for
        // each turn.
        Fact::Saying { .. } | Fact::Said { .. } | Fact::Thought { .. } | Fact::ToolCalled { .. }
            if !state.turn_running() && !state.plan.opens() =>
        {
            Some(Event::TurnStarted)
        }
        Fact::Ready => (state.is_running() && !state.is_ready()).then_some(Event::Ready),
        Fact::TurnStarted => Some(Event::TurnStarted),
        Fact::Asked(ask) => Some(Event::Asked { ask }),
        Fact::AskClosed { request } => Some(Event::AskClosed { request }),
        Fact::TurnEnded(end) => Some(Event::TurnEnded { end }),
        Fact::Background { task, runs } => {
            (state.tasks.contains(&task) != runs).then_some(Event::Background { task, runs })
        }
        Fact::LineTooLong { bytes } => Some(Event::Alarm {
            text: format!("a line of {} MB in its output was too long to read", bytes / 1_000_000),
        }),
        Fact::Limited(limit) => state.turn_running().then_some(Event::Limited { limit }),
        Fact::Retrying(retry) => state.turn_running().then_some(Event::Retrying { retry, err: None }),
        // Anything that comes from the model is an answer.
        Fact::Saying { .. }
        | Fact::Said { .. }
        | Fact::Thought { .. }
        | Fact::ToolCalled { .. }
        | Fact::Subagent(_)
            if state.retrying().is_some() =>
        {
            Some(Event::RetryOver)
        }
        Fact::Saying { .. }
        | Fact::Said { .. }
        | Fact::Thought { .. }
        | Fact::Model { .. }
        | Fact::ToolCalled { .. }
        | Fact::ToolReturned { .. }
        | Fact::Subagent(_)
        | Fact::ReplyDue { .. }
        | Fact::Behind { .. }
        | Fact::Recalled { .. }
        | Fact::Unknown { .. } => None,
    }
}
