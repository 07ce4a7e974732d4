//! Recordings of real agents, played through the whole program: what ostler prints about them has not changed, and what
//! it calls saved is in the session file.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that finds no value has failed")]

mod every_recording_is_kept;
mod fixture;
mod players_say_what_is_wrong;
mod session_files_decide;
