//! Notifications to a person about moments in the life of sessions.
//!
//! ```text
//! keeper ──notes the moment in the journal, starts──► sender ──► spool ──► desktop, command, webhook, ntfy
//! ```
//!
//! There is no daemon. The keeper marks a moment in its journal entry (`notify`), and starts a process of the same
//! binary ([`sender`]) that lives only until everything has arrived or was given up. A server that does not answer
//! delays that process and nothing else.
//!
//! [`spool`] is the folder of what waits, [`message`] what is sent, [`settings`] what a person has configured, [`ways`]
//! how it is sent.

#![warn(missing_docs)]

pub mod message;
pub mod sender;
mod sender_threads;
pub mod settings;
pub mod spool;
pub mod ways;
