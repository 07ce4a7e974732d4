//! What the screen promises to those who use it.

#![expect(clippy::expect_used, reason = "tests")]

mod continuity;
mod corpus;
mod emulation;
mod other_emulators;
mod redraw;
