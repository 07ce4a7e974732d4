//! `ostler land`: brings the work of a session to a branch.

use crate::args::Land;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::say;
use ostler_core::limits::counted;
use ostler_engine::worktrees::{self, How, Landing};
use ostler_engine::{Engine, Place};
use ostler_tui::terminal::{Signal, Signals};

/// How many files are named.
const NAMED: usize = 5;

pub fn run(context: &Context, args: &Land) -> Result<Code> {
    if args.message.as_ref().is_some_and(|message| message.trim().is_empty()) {
        return Err(Failure::usage("the message is empty; say what the commit is about"));
    }
    let place = context.engine.select(&args.id)?;
    let request = worktrees::Land {
        into: args.into.clone(),
        how: match (args.merge, args.rebase) {
            (true, _) => How::Merge,
            (false, true) => How::Rebase,
            (false, false) => How::Squash,
        },
        check: args.check.clone(),
        message: args.message.clone(),
        no_trailers: args.no_trailers,
        dry: args.dry_run,
    };
    let landing = context.engine.land(&place, &request, || Signals::take(&Signal::LEAVING).map(Some))?;
    say!("{}: {}", place.id, told(&context.engine, &place, landing, args.dry_run)?)?;
    Ok(Code::Succeeded)
}

/// The result, in words.
pub fn told(engine: &Engine, place: &Place, landing: Landing, dry: bool) -> Result<String> {
    let id = place.id;
    // Landing has committed what was not committed before.
    let own = if dry { None } else { engine.view(place)?.worktree.map(|tree| tree.branch) };
    let unchanged = |branch: &str| match &own {
        Some(own) => format!("nothing has changed on {branch}, and the work is committed on {own}"),
        None => "nothing has changed".to_owned(),
    };
    let failed = |words: String| Err(Failure::new(Code::Failed, words));
    match landing {
        Landing::Landed { branch, commit, files, commits } => {
            let (commits, files) =
                (counted(commits as u64, "commit", "commits"), counted(files as u64, "file", "files"));
            Ok(match dry {
                true => format!("would land on {branch} without a conflict: {commits}, {files}"),
                false => format!("landed on {branch} ({}): {commits}, {files}", commit.get(..7).unwrap_or(&commit)),
            })
        }
        Landing::Nothing { branch } => Ok(format!("nothing to land; {branch} has all of it")),
        Landing::Conflict { branch, files } => {
            let named = files.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
            let more = if files.len() > NAMED { format!(" and {} more", files.len() - NAMED) } else { String::new() };
            let restore = if place.archived { format!("ostler restore {id}, then ") } else { String::new() };
            failed(format!(
                "{id} conflicts with {branch} in {named}{more}; {}. Let it bring {branch} in: {restore}ostler resume {id} \
                 \"merge {branch} and resolve the conflicts\", then land it again",
                unchanged(&branch)
            ))
        }
        Landing::CheckFailed { branch, commit, check } => {
            let at = commit.map(|commit| format!(" at the commit {commit:?}")).unwrap_or_default();
            let how = check.outcome.map(|outcome| format!(" ({})", outcome.cause)).unwrap_or_default();
            failed(format!("{id}: the check failed{at}{how}; {}. See ostler logs {}", unchanged(&branch), check.id))
        }
        Landing::InTheWay { branch, words } => failed(format!(
            "{branch} cannot be moved where it is checked out ({words}); {}. Finish, commit or stash what is there, then land \
             again",
            unchanged(&branch)
        )),
    }
}
