//! Names of sessions: which are allowed, and that each is given once.

use crate::engine::Engine;
use crate::error::{Error, Result};
use ostler_core::id::{SessionId, is_name};

impl Engine {
    /// Whether a session may have this name. Called while `names.lock` is held, so that no other process gives names.
    pub fn check_name(&self, name: &str) -> Result<()> {
        if !is_name(name) {
            return Err(Error::NotAName { name: name.to_owned() });
        }
        if let Some(id) = SessionId::parse(name)
            && (id.has_digit() || self.home.place_of(id)?.is_some())
        {
            return Err(Error::LooksLikeId { name: name.to_owned() });
        }
        match self.home.name_is_taken(name)? {
            Some(id) => Err(Error::NameTaken { name: name.to_owned(), id }),
            None => Ok(()),
        }
    }
}
