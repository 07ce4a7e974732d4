//! Why there is no such log.

use ostler_core::id::SessionId;

/// Why what was asked for cannot be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogRefusal {
    /// It was prepared and never started.
    #[error("{id} never ran, so there is nothing to show")]
    NeverRan {
        /// Which session.
        id: SessionId,
    },
    /// Its screen was asked for.
    #[error("this session does not run in a terminal and has no screen")]
    NoScreen,
    /// Its conversation was asked for.
    #[error("a command has no conversation")]
    CommandHasNone,
    /// A conversation was asked for, and there is only a screen.
    #[error("a screen is not a conversation")]
    ScreenIsNone,
    /// Times were asked for.
    #[error("{0} has no times")]
    NoTimes(Untimed),
}

/// What has no times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untimed {
    /// A screen.
    Screen,
    /// Output from before times were recorded.
    OlderVersion,
}

impl std::fmt::Display for Untimed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Untimed::Screen => "what a program draws on its terminal",
            Untimed::OlderVersion => "the output of this session, which an older ostler started,",
        })
    }
}
