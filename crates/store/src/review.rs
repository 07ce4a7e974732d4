//! What a session that reviews another one has in its folder: what it reviews and how the tree was before
//! (`review.json`), and the result (`verdict.json`, created once).

use crate::StoreError;
use crate::folder::{self, Folder, to_json};
use ostler_core::id::SessionId;
use ostler_core::review::Review;
use ostler_sys::dir::Sync;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const BEGUN: &str = "review.json";
const VERDICT: &str = "verdict.json";

/// A review that has begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Begun {
    /// The session that is reviewed.
    pub of: SessionId,
    /// What its tree was before.
    pub before: Value,
}

pub fn begun(folder: &Folder) -> Result<Option<Begun>, StoreError> {
    folder::read(folder.dir(), BEGUN)
}

pub fn write_begun(folder: &Folder, begun: &Begun) -> Result<(), StoreError> {
    folder.dir().replace(BEGUN, &to_json(begun), Sync::Bytes).map_err(StoreError::io(BEGUN))
}

pub fn verdict(folder: &Folder) -> Result<Option<Review>, StoreError> {
    folder::read(folder.dir(), VERDICT)
}

/// `Ok(false)`: there is one already, and it stays.
pub fn publish_verdict(folder: &Folder, review: &Review) -> Result<bool, StoreError> {
    folder.dir().publish_once(VERDICT, &to_json(review)).map_err(StoreError::io(VERDICT))
}
