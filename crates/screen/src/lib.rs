//! The screen of a terminal session, from the bytes its program wrote.
//!
//! Nobody watches a terminal session most of the time; its output goes to a file. When somebody attaches, they must see
//! what they would have seen all along, at once, whatever happened before. So: [`Screen`] is the state of a
//! terminal after some prefix of the output. It can be written to a file and read back (`snapshot`, `restore`),
//! so that attaching never replays more than the last stretch, and drawn onto a real terminal (`redraw`), after
//! which the real one understands the following bytes as if it had read them all. [`PlainText`] makes readable text of the
//! same bytes, and [`printable()`], [`printable_lines`] and [`printable_text`] make any untrusted text safe to show.
//!
//! The crate is pure: bytes in, bytes out, no clock, no files. It never panics on any input and its memory is bounded by
//! the size of the screen, with [`Scrollback`] also by what that keeps.
//!
//! The emulator is our own, for the snapshot's sake. Of the two crates that come close, `avt` gives an accent a cell of
//! its own, which shifts the rest of the line; `vt100` has neither line drawing nor tab stops nor insert mode and keeps the
//! primary screen behind the alternate one to itself. Neither holds all that programs set, from the title to the keyboard
//! protocol, and with a second scanner beside them for the rest, two parsers would have to agree on every byte.
//! Here one parser and one state hold everything that a redraw must bring back. Both crates check it in the tests.

mod ascii;
mod buffer;
mod charset;
mod cursor;
mod keyboard;
mod modes;
mod params;
mod parser;
mod pieces;
mod plain;
mod printable;
mod redraw;
mod reflow;
mod row;
mod screen;
mod scrollback;
mod sequences;
mod size;
mod snapshot;
mod style;
mod tabs;
mod terminal;
mod utf8;

pub use pieces::{Look, Paint, Piece};
pub use plain::PlainText;
pub use printable::{printable, printable_lines, printable_text};
pub use screen::Screen;
pub use scrollback::{Lines, Scrollback};
pub use size::Size;
pub use snapshot::DamagedSnapshot;
