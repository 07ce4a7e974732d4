//! Decoders accept whatever foreign processes print: every sequence of bytes, in bounded memory, and the intact parts
//! are interpreted.

#![expect(clippy::unwrap_used, reason = "a test that finds no value has failed")]

mod every_byte_sequence;
mod one_field_of_another_type;
mod recorded;
mod samples;
mod transcripts;
