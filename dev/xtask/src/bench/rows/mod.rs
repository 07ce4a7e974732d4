//! The rows of the table, one file each: what is prepared, what is measured, and the goal.

pub mod attach;
pub mod decoder;
pub mod disk;
pub mod echo;
pub mod follow;
pub mod headless;
pub mod launch;
pub mod listing;
pub mod long_turn;
pub mod memory;
pub mod output;
pub mod queue;
pub mod recovery;
pub mod scale;
pub mod search;
pub mod snapshots;
pub mod terminals;
pub mod turns;
pub mod ui;
pub mod wake;
