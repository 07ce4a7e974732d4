//! A model that does as it is told, so that tests can drive the real agents without a network, an account or luck.
//!
//! [`Server::start`] listens on a loopback port of its own and speaks what the agents speak: Anthropic Messages, OpenAI
//! Responses, OpenAI Chat Completions and Gemini `generateContent`, streamed and whole. Two promises:
//!
//! * **The prompt is the script.** What the user said last decides what the model does, in one small language for all
//!   protocols. The server keeps no conversation: which step is due follows from the request alone, so a resumed,
//!   forked or repeated conversation goes on exactly where its history says. (Only `fail … once` is remembered, or it
//!   would never end.)
//! * **Everything is recorded.** [`Server::requests`] has every request in order of arrival with its parsed body and
//!   how its connection ended, and [`Server::user_messages`] what the model saw; [`Server::wait_for`] waits for one.
//!
//! # The language
//!
//! Steps are separated by ` ; `. After the user's words each answer of the model is one step: the first answer the
//! first step, the answer to that step's tool results the second, and so on.
//!
//! | step | the model |
//! | --- | --- |
//! | `say TEXT` | answers TEXT |
//! | `stream N MS` | answers `word1 word2 … wordN`, each word a piece of its own, MS milliseconds apart |
//! | `tool NAME {json}` | calls the tool NAME, by the agent's own name for it |
//! | `tools NAME {json} NAME {json} …` | calls several tools in one answer |
//! | `ask twice NAME {json}` | calls the tool, and once its result is back calls it again: two questions in one turn |
//! | `fail STATUS once` | fails one request with that HTTP status; the retry gets the next step |
//! | `fail STATUS always` | fails this request and every retry |
//! | `limit SECONDS [once]` | refuses this request, or this one and every retry, for a usage limit that is reset in so many seconds, as the maker's server does |
//! | `hang` | takes the request and never says a word, until the agent hangs up |
//! | `huge BYTES` | answers a text of that many bytes |
//! | `cut N` | answers `word1 … wordN` and hangs up before the answer is over; with 0, before its first word |
//! | `heavy TOKENS TEXT` | answers TEXT, and says that it has read TOKENS for it |
//! | `empty` | ends its answer without having said anything |
//! | `malformed NAME` | calls the tool NAME with arguments that cannot be read |
//!
//! A message that has `(held N)` anywhere in it is answered once the test has called [`Server::release`] with N or more; so is
//! one with words of which [`Server::hold`] says so. It is in the record from its arrival.
//!
//! When the steps are used up, or the prompt is not in this language, the model answers [`POLITE`]. A step that begins
//! like one of these and cannot be read is answered with what is wrong with it, so that a typing error in a test shows.
//!
//! # What agents add by themselves
//!
//! Agents wrap notes of their own into the user's messages (`<system-reminder>…`, `<environment_context>…`); those are
//! neither scripts nor user messages. They also ask for things on the side: a title, a topic, a routing decision, a
//! token count, a quota. Such a request offers no tools or demands JSON of a given shape. It is recorded as
//! [`Kind::Background`], is answered harmlessly and at once, and uses up no step, whatever the script says.
//!
//! [`agents`] has the other half of such a test: where the pinned agents are, and how one is pointed at this server.
//!
//! Every answer but a heavy one costs [`INPUT_TOKENS`] and [`OUTPUT_TOKENS`], so that what an agent reports can be checked by counting
//! requests.

pub mod agents;
mod conversation;
mod gate;
mod http;
mod limit;
mod protocol;
mod record;
mod script;
mod server;
mod shape;

pub use conversation::Conversation;
pub use protocol::Protocol;
pub use record::{Ending, Kind, NotSeen, Request, Turn};
pub use server::Server;

/// What the model says when it was told nothing, or nothing more.
pub const POLITE: &str = "Certainly. That is done.";

/// What every answer says it has read.
pub const INPUT_TOKENS: u64 = 1000;

/// What every answer says it has written.
pub const OUTPUT_TOKENS: u64 = 10;
