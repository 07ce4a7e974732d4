//! The dashboard without a terminal.
