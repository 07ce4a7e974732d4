//! Writes formatted numbers into byte sequences.

use std::fmt::Arguments;
use std::io::Write;

pub(crate) fn push(out: &mut Vec<u8>, text: Arguments<'_>) {
    // Writing to a vector cannot fail.
    let _ = out.write_fmt(text);
}
