//! Git: a tree of its own for each session, and nothing that was done in it is lost.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that finds no value has failed")]

mod faults;
mod half_removed;
mod landing;
mod landing_again;
mod landing_alone;
mod landing_as_person;
mod odd_repositories;
mod own_trees;
#[path = "../attach/person.rs"]
#[expect(dead_code, reason = "shared with the tests of attach, which need all of it")]
mod person;
mod removing;
mod repo;
