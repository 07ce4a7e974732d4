//! The screen of a terminal session, from the bytes its program wrote.
//!
//! Most of the time no terminal shows a terminal session; its output goes to a file. A person who attaches must see at
//! once what they would have seen all along, whatever happened before. So [`Screen`] is the state of a terminal after
//! some prefix of the output. It can be written to a file and read back (`snapshot`, `restore`), so that attaching
//! never replays more than the last part of the output. It can be drawn onto a real terminal (`redraw`), which then
//! interprets the following bytes as if it had read them all. [`PlainText`] makes readable text of the same bytes, and
//! [`printable()`], [`printable_lines`] and [`printable_text`] make any untrusted text safe to show.
//!
//! The crate is pure: bytes in, bytes out, no clock, no files. It never panics on any input. Its memory is bounded by
//! the size of the screen, and with [`Scrollback`] also by the lines that this keeps.
//!
//! The emulator is our own because of the snapshot. Two other crates come close. `avt` gives an accent a cell of its
//! own, which shifts the rest of the line. `vt100` has neither line drawing nor tab stops nor insert mode, and gives no
//! access to the primary screen behind the alternate one. Neither stores everything that programs set, from the title
//! to the keyboard protocol. A second parser for the rest would have to agree with theirs on every byte. Here one
//! parser and one state have everything that a redraw must restore. The tests check it against both crates.

mod ascii;
mod buffer;
mod charset;
mod cursor;
mod keyboard;
mod modes;
mod params;
mod parser;
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
mod styled_pieces;
mod tabs;
mod terminal;
mod utf8;

pub use plain::PlainText;
pub use printable::{printable, printable_lines, printable_text};
pub use screen::Screen;
pub use scrollback::{Lines, Scrollback};
pub use size::Size;
pub use snapshot::DamagedSnapshot;
pub use styled_pieces::{Look, Paint, Piece};
