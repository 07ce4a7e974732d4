//! `ostler purge`: delete sessions for good. Only what has ended, and in two steps: the folder first gets a hidden name
//! that no list shows, then its files go. A purge that is killed in between leaves no half session behind, and the next
//! one finishes its work.

use super::several;
use crate::args::Purge;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::say;
use crate::ui::called::called_at;
use crate::ui::time::{age, parse_duration};
use ostler_engine::quiesced::{NotQuiesced, Quiesced};
use ostler_store::home::{Home, Place};
use ostler_sys::clock;
use ostler_sys::dir::Dir;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What a session is called while it is being deleted.
pub const GONE: &str = ".gone-";

pub fn run(context: &Context, args: &Purge) -> Result<Code> {
    let older_than = args.older_than.as_deref().map(parse_duration).transpose().map_err(Failure::usage)?;
    let at_least_s = older_than.map_or(0, |limit| i64::try_from(limit.as_secs()).unwrap_or(i64::MAX));
    let mut places = if args.archived {
        context.engine.home.archived_places()?
    } else {
        several::select(&context.engine.home, &args.ids)?
    };
    places.sort_by_key(|place| place.id);
    let code = several::each(places, |place| {
        let still = take(&place)?;
        let ended_s = match &still.view {
            Ok(view) => clock::now().as_second() - view.updated.as_second(),
            // Nobody asked for this one by name, and nobody can say when it ended.
            Err(damage) if args.archived => {
                return Err(Failure::ours(format!(
                    "{}: {damage}; kept, delete it with: ostler purge {}",
                    place.id, place.id
                )));
            }
            Err(_) => i64::MAX,
        };
        if ended_s < at_least_s {
            if !args.archived {
                say!("{}: kept; it ended only {} ago", called_at(&place), age(ended_s))?;
            }
            return Ok(Code::Succeeded);
        }
        let name = called_at(&place);
        if args.dry_run {
            say!("{name}: would be purged")?;
            return Ok(Code::Succeeded);
        }
        delete(&place, &still)?;
        say!("{name}: purged")?;
        Ok(Code::Succeeded)
    });
    if !args.dry_run {
        for folder in leftovers(&context.engine.home)? {
            remove(&folder)?;
        }
    }
    Ok(code)
}

fn take(place: &Place) -> Result<Quiesced> {
    let id = place.id;
    Quiesced::take(place).map_err(|not| match not {
        NotQuiesced::Runs => Failure::new(
            Code::Failed,
            format!("{} is still running; stop it first: ostler stop {id}", called_at(place)),
        ),
        NotQuiesced::Failed(error) => error.into(),
    })
}

pub fn delete(place: &Place, still: &Quiesced) -> Result<()> {
    let hidden = format!("{GONE}{}", place.id);
    let path = still.parent_path().join(&hidden);
    // A copy of it that was being deleted before this one came back.
    remove(&path)?;
    still.rename(&still.parent()?, &hidden)?;
    remove(&path)
}

/// Another purge may be at it as well: what is gone is gone.
pub fn remove(folder: &Path) -> Result<()> {
    loop {
        match std::fs::remove_dir_all(folder) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound && !folder.exists() => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::ours(format!("{}: {error}; delete it by hand", folder.display()))),
        }
    }
}

/// Sessions whose deletion was begun and never finished.
pub fn leftovers(home: &Home) -> Result<Vec<PathBuf>> {
    let names = |folder: &Path| match Dir::open(folder).and_then(|dir| dir.names()) {
        Ok(names) => Ok(names),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(Vec::new()),
        Err(error) => Err(Failure::ours(format!("{}: {error}", folder.display()))),
    };
    let archive = home.archive();
    let mut folders = vec![home.sessions()];
    folders.extend(names(&archive)?.into_iter().map(|month| archive.join(month)));
    let mut found = Vec::new();
    for folder in folders {
        found.extend(names(&folder)?.into_iter().filter(|name| name.starts_with(GONE)).map(|name| folder.join(name)));
    }
    Ok(found)
}
