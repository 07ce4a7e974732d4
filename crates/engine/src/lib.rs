//! What ostler can do, as a library: every verb is a typed function of [`Engine`].
//!
//! It never prints, never exits, and reads neither arguments nor the environment: home, settings and environment are
//! passed in. Progress of long operations is reported to a callback as a [`Notice`]. A failure is an [`Error`] that
//! says which session, what is wrong and which process is concerned. The face makes the texts for people, hints and
//! exit codes.

#![warn(missing_docs)]

pub mod adopt;
pub mod archive;
pub mod attach;
pub mod checkpoints;
pub mod completion;
pub mod config;
pub mod content;
pub mod disk_usage;
pub mod doctor;
pub mod draft;
mod engine;
mod environment;
mod error;
pub mod events;
pub mod foreign;
mod foreign_outcome;
pub mod fork;
pub mod groups;
pub mod handover;
pub mod installed;
pub mod job;
pub mod launch;
pub mod limits;
pub mod list;
pub mod logs;
pub mod moved;
mod names;
mod notice;
pub mod notify;
pub mod orphans;
pub mod own_run;
pub mod owners;
pub mod piped;
pub mod prepare;
pub mod process;
pub mod purge;
pub mod quantities;
pub mod queues;
pub mod quiesced;
pub mod recover;
pub mod repair;
pub mod reply;
pub mod request;
pub mod reserved;
pub mod resume;
pub mod review;
pub mod rules;
pub mod search;
pub mod selecting;
pub mod send;
mod session_ref;
pub mod session_watch;
pub mod shell_command;
pub mod show;
pub mod stats;
pub mod stop;
pub mod suggest;
pub mod sweep;
pub mod systemd_unit;
mod takeover;
pub mod turns;
pub mod upgrade;
pub mod view;
pub mod wait;
pub mod watch;
mod who;
pub mod worktrees;

pub use adopt::Adopt;
pub use engine::Engine;
pub use environment::Environment;
pub use error::{Error, Result};
pub use fork::Fork;
pub use handover::Handover;
pub use launch::{Launch, Launched};
pub use notice::Notice;
pub use ostler_keeper::launch::LaunchError;
pub use ostler_keeper::launcher_process::Launcher;
pub use ostler_search::SearchError;
pub use ostler_store::home::{NotFound, Place};
pub use ostler_store::{StoreError, is_full_disk, is_out_of_descriptors};
pub use ostler_sys::{entry, ready};
pub use resume::Resume;
pub use session_ref::SessionRef;
pub use who::Users;
