//! Sessions that work in one tree: each sees the other's changes, and may overwrite them.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::launch::COMMAND;
use crate::list::{Listed, list};
use crate::notice::Notice;
use crate::session_ref::SessionRef;
use ostler_core::record::Session;
use std::path::Path;

impl Engine {
    /// Reports another agent that works in the tree in which this session is to work, or, with `exclusive`, refuses the
    /// session. Commands are ignored: most of them only read.
    pub(crate) fn look_for_others(
        &self,
        session: &Session,
        exclusive: bool,
        tell: &mut dyn FnMut(Notice),
    ) -> Result<()> {
        if session.agent == COMMAND && !exclusive || works_elsewhere(session.job.as_deref()) {
            return Ok(());
        }
        let Some(tree) = tree_of(Path::new(&session.cwd)) else { return Ok(()) };
        // The session that starts this one is not reported: it waits for this one, or works at the same time on
        // purpose.
        let concerns = |one: Listed| match one {
            Listed::Good(view)
                if !view.ended
                    && view.agent != COMMAND
                    && Some(view.id) != session.parent
                    && !works_elsewhere(view.job.as_deref()) =>
            {
                (tree_of(Path::new(&view.cwd)) == Some(tree)).then(|| SessionRef::from(&*view))
            }
            Listed::Good(_) | Listed::Bad(_) => None,
        };
        let found = list(self, false, concerns)?.into_iter().flatten().next();
        match found {
            Some(session) if exclusive => Err(Error::TreeInUse { session }),
            Some(session) => {
                tell(Notice::SharedTree { session });
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// Each round of a worker has a tree of its own.
fn works_elsewhere(job: Option<&str>) -> bool {
    job == Some("worker")
}

/// The top of the git tree that a folder is in.
fn tree_of(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.join(".git").exists())
}
