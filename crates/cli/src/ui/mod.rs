//! How things look: colour, tables, times. Pure functions from values to text.

pub mod asking;
pub mod called;
pub mod columns;
pub mod conversation;
pub mod money;
pub mod next_step;
pub mod style;
pub mod table;
pub mod time;
