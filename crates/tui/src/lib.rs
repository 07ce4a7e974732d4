//! A conversation on a terminal: [`Conversation`] draws what was said and done into a ratatui buffer, [`Input`] draws
//! the lines being written below it, and [`frame`] turns two buffers into the bytes that lead from one to the other.
//!
//! Except for [`terminal`], which is the terminal itself, nothing here reads or writes: facts and keys in, a buffer
//! out. The chat of `ostler attach` and the dashboard use the same widgets. Every text that comes from an agent goes
//! through [`clean`] before it enters a buffer.

pub mod clean;
pub mod clipboard;
mod code;
mod conversation;
mod diff;
mod entry;
pub mod frame;
mod input;
pub mod keys;
mod layout;
mod markdown;
pub mod notification;
pub mod program_screen;
pub mod progress;
mod table;
pub mod terminal;
mod text_pieces;
mod theme;
mod wrap;

pub use conversation::{Choose, Conversation};
pub use input::Input;
pub use keys::{Key, Keys};
pub use ratatui_core::buffer::Buffer;
pub use ratatui_core::layout::Rect;
pub use ratatui_core::style::Style;
pub use ratatui_core::text::{Line, Span};
pub use theme::Theme;
pub use wrap::{cut, cut_front, rows_of, rows_of_words, width};
