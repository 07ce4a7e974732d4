//! What the screen promises to those who use it.

mod continuity;
mod corpus;
mod emulation;
mod other_emulators;
mod redraw;
