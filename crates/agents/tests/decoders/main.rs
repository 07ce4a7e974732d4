//! What foreign processes print is survived: every sequence of bytes, in bounded memory, with what is sound in it understood.

#![expect(clippy::unwrap_used, reason = "a test that finds no value has failed")]

mod every_byte_sequence;
mod one_field_of_another_type;
mod recorded;
mod samples;
mod transcripts;
