//! A look at many: nothing is asked of a session that can be known without.

use crate::StoreError;
use crate::folder::Folder;
use crate::home::{Place, Shelf};
use crate::look::{Depth, blank, ended, is_full, look_at, own};
use crate::rest::glance;
use ostler_core::id::SessionId;
use ostler_core::view::View;

/// A look at all the sessions of a shelf.
#[derive(Debug)]
pub struct Overview<'a> {
    shelf: &'a Shelf,
    depth: Depth,
}

impl<'a> Overview<'a> {
    #[must_use]
    pub fn over(shelf: &'a Shelf) -> Overview<'a> {
        Overview { shelf, depth: if is_full(&shelf.dir) { Depth::Everything } else { Depth::Listed } }
    }

    pub fn ids(&self) -> impl Iterator<Item = SessionId> {
        self.shelf.ids.iter().copied()
    }

    #[must_use]
    pub fn place(&self, id: SessionId) -> Place {
        self.shelf.place(id)
    }

    /// Looks at one of many: at most of them a glance is enough.
    pub fn look(&self, id: SessionId) -> Result<View, StoreError> {
        if let Some((outcome, closing)) = glance(&self.shelf.dir, id) {
            let mut view = blank(&closing.session, closing.run, self.shelf.archived);
            ended(outcome, Some(closing), 0, &mut view);
            return Ok(view);
        }
        let look = || {
            let dir = self.shelf.dir.open_dir_or_link(id.as_str()).map_err(StoreError::io(id.as_str()))?;
            own(look_at(self.depth, &Folder::new(dir), self.shelf.archived)?, id)
        };
        look().map_err(|error| error.of(id))
    }
}
