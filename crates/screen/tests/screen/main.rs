//! What the screen guarantees to its callers.

#![expect(clippy::expect_used, reason = "tests")]

mod continuity;
mod corpus;
mod emulation;
mod other_emulators;
mod redraw;
