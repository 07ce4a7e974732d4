//! A scripted model, so that tests can drive the real agents without a network, an account or luck.
//!
//! [`Server::start`] listens on a loopback port of its own and understands the protocols of the agents: Anthropic
//! Messages, OpenAI Responses, OpenAI Chat Completions and Gemini `generateContent`, streamed and in one piece. Two
//! promises:
//!
//! * **The prompt is the script.** The user's last message decides what the model does, in one small language for all
//!   protocols. The server keeps no conversation: the next step follows from the request alone, so a resumed, forked or
//!   repeated conversation continues exactly where its history ends. (Only `fail … once` is remembered, or it would
//!   never end.)
//! * **Everything is recorded.** [`Server::requests`] has every request in order of arrival with its parsed body and
//!   how its connection ended, and [`Server::user_messages`] what the model saw; [`Server::wait_for`] waits for one.
//!
//! # The language
//!
//! Steps are separated by ` ; `. After the user's message each answer of the model is one step: the first answer the
//! first step, the answer to that step's tool results the second, and so on.
//!
//! | step | the model |
//! | --- | --- |
//! | `say TEXT` | answers TEXT |
//! | `stream N MS` | answers `word1 word2 … wordN`, each word in a piece of its own, MS milliseconds apart |
//! | `tool NAME {json}` | calls the tool NAME, by the agent's own name for it |
//! | `tools NAME {json} NAME {json} …` | calls several tools in one answer |
//! | `ask twice NAME {json}` | calls the tool, and once its result is back calls it again: two questions in one turn |
//! | `fail STATUS once` | fails one request with that HTTP status; the retry gets the next step |
//! | `fail STATUS always` | fails this request and every retry |
//! | `limit SECONDS [once]` | refuses this request, without `once` also retries: a usage limit, reset in SECONDS |
//! | `hang` | accepts the request and sends no answer, until the agent hangs up |
//! | `huge BYTES` | answers a text of that many bytes |
//! | `cut N` | answers `word1 … wordN` and hangs up before the answer is complete; with 0, before its first word |
//! | `heavy TOKENS TEXT` | answers TEXT, and reports TOKENS as the tokens that it has read |
//! | `empty` | ends its answer without a text |
//! | `malformed NAME` | calls the tool NAME with arguments that cannot be parsed |
//!
//! A message with `(held N)` anywhere in it is answered once the test has called [`Server::release`] with N or more. So
//! is a message with a text that was passed to [`Server::hold`]. The request is in the record from its arrival on.
//!
//! When the steps are used up, or the prompt is not in this language, the model answers [`POLITE`]. A step that begins
//! like one of these and cannot be parsed is answered with the mistake in it, so that a typing error in a test is seen.
//!
//! # What agents add by themselves
//!
//! Agents put notes of their own into the user's messages (`<system-reminder>…`, `<environment_context>…`); those are
//! neither scripts nor user messages. They also send background requests: for a title, a topic, a routing decision, a
//! token count, a quota. Such a request offers no tools or demands JSON with a given schema. It is recorded as
//! [`Kind::Background`], is answered at once with a harmless value, and uses up no step of the script.
//!
//! [`agents`] has the other half of such a test: where the pinned agents are, and how to point one at this server.
//!
//! Every answer but a heavy one costs [`INPUT_TOKENS`] and [`OUTPUT_TOKENS`], so that an agent's report can be checked
//! by counting requests.

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

/// What the model answers when there is no script, or no further step.
pub const POLITE: &str = "Certainly. That is done.";

/// The number of tokens that every answer reports as read.
pub const INPUT_TOKENS: u64 = 1000;

/// The number of tokens that every answer reports as written.
pub const OUTPUT_TOKENS: u64 = 10;
