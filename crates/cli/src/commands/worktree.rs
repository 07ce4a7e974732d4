//! `ostler worktree`: lists the git worktrees of sessions, and removes them.

use super::ls::{state_word, tilde};
use crate::args::{Worktree, WorktreeAction};
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::say;
use crate::ui::style::Style;
use crate::ui::table::{Cell, lay_out, window};
use ostler_engine::worktrees::{Collected, Kept, Repository, Tree};
use serde_json::json;

pub fn run(context: &Context, args: &Worktree) -> Result<Code> {
    let cannot = |error| Failure::ours(format!("cannot use the current folder: {error}"));
    let folder = context.engine.environment.folder().map_err(cannot)?;
    let repository = context.engine.repository(folder)?;
    match &args.action {
        WorktreeAction::Ls { json } => list(context, &repository, *json),
        WorktreeAction::Rm { name, force } => remove(context, &repository, name, *force),
        WorktreeAction::Gc { dry_run } => collect(context, &repository, *dry_run),
    }
}

fn list(context: &Context, repository: &Repository, json: bool) -> Result<Code> {
    let trees = context.engine.worktrees(repository)?;
    if json {
        let objects: Vec<String> = trees.iter().map(|tree| object(tree).to_string()).collect();
        crate::say::text(&format!("[\n{}\n]\n", objects.join(",\n")))?;
        return Ok(Code::Succeeded);
    }
    if trees.is_empty() {
        say!("No worktrees here. Start a session in one: ostler run --worktree AGENT \"…\"")?;
        return Ok(Code::Succeeded);
    }
    let style = context.style;
    let head = |text: &str| Cell::painted(text, style, Style::dim);
    let mut rows = vec![["NAME", "SESSION", "STATE", "BRANCH", "WORK"].map(head).into()];
    rows.extend(trees.iter().map(|tree| row(tree, style)));
    crate::say::text(&lay_out(&rows, window()))?;
    Ok(Code::Succeeded)
}

fn row(tree: &Tree, style: Style) -> Vec<Cell> {
    let (session, state) = match &tree.session {
        Some(view) => (view.id.to_string(), state_word(view).1),
        None => ("-".to_owned(), "-".to_owned()),
    };
    let work = match (tree.removing, tree.folder_is_gone) {
        (true, _) => "being removed; to finish that: ostler worktree gc".to_owned(),
        (false, false) => tree.loss.words(),
        (false, true) => format!("{}; its folder is gone", tree.loss.words()),
    };
    vec![
        Cell::painted(&tree.name, style, Style::bold),
        Cell::new(&session),
        Cell::new(&state),
        Cell::new(tree.branch.as_deref().unwrap_or("-")),
        Cell::new(work.strip_prefix("has ").unwrap_or(&work)),
    ]
}

fn object(tree: &Tree) -> serde_json::Value {
    json!({
        "name": tree.name,
        "path": tree.path,
        "branch": tree.branch,
        "session": tree.session.as_ref().map(|view| view.id),
        "ended": tree.session.as_ref().map(|view| view.ended),
        "uncommitted": tree.loss.uncommitted,
        "commits": tree.loss.commits,
        "in_progress": tree.loss.in_progress,
        "processes": tree.loss.processes,
        "unreadable": tree.loss.unreadable,
        "removing": tree.removing,
    })
}

fn remove(context: &Context, repository: &Repository, name: &str, force: bool) -> Result<Code> {
    match context.engine.remove_worktree(repository, name, force)? {
        Some(saved) => say!("{name}: removed; its work is saved, get it back with: git branch {name} {saved}")?,
        None => say!("{name}: removed")?,
    }
    Ok(Code::Succeeded)
}

fn collect(context: &Context, repository: &Repository, dry: bool) -> Result<Code> {
    let collected = context.engine.collect_worktrees(repository, dry)?;
    if collected.is_empty() {
        say!("No worktrees in {}.", tilde(&repository.root.to_string_lossy()))?;
    }
    for Collected { name, kept } in collected {
        match kept {
            None if dry => say!("{name}: would be removed")?,
            None => say!("{name}: removed")?,
            Some(Kept::Session(session)) => say!("{name}: kept, {session} works in it")?,
            Some(Kept::Loss(loss)) => say!("{name}: kept, it {}", loss.words())?,
            Some(Kept::Git(error)) => say!("{name}: kept, {error}")?,
        }
    }
    Ok(Code::Succeeded)
}
