//! `ostler ls`, and `ostler` alone: the list of sessions, as a table for people on a terminal and for scripts on a
//! pipe.
//!
//! * `table`: how they are shown. `watch`: shows them again whenever something changes.

mod table;
mod watch;

pub use table::{Doing, agent_name, doing, is_retrying, no_answer, place, retry_words, state_word, waits_words};

use super::run::nearest_agent;
use crate::args::{Ls, Sort};
use crate::context::{Context, variable};
use crate::exit::{Code, Failure, Result};
use crate::say::{not_written, say, tell};
use crate::ui::table::window;
use ostler_engine::list::{self, Filter, STATES, Wanted};
use std::io::{BufWriter, IsTerminal, Write};
use table::Look;

pub fn run(context: &Context, args: &Ls) -> Result<Code> {
    if args.foreign {
        super::foreign::list(context, args.json)?;
        return Ok(Code::Succeeded);
    }
    let wanted = wanted(context, args)?;
    if args.watch {
        if args.json || !std::io::stdout().is_terminal() {
            return Err(Failure::usage("--watch needs a terminal; for scripts use: ostler events -f"));
        }
        watch::run(context, &wanted)?;
    } else if args.json {
        print_json(context, &wanted)?;
    } else {
        let look = look(context);
        let found = table::find(&context.engine, &wanted, look)?;
        let none = found.listed.is_empty();
        table::print(found, look)?;
        if none {
            suggest_agents(context, &args.agents);
        }
    }
    Ok(Code::Succeeded)
}

/// Not an error: there may be sessions of an agent that is no longer configured.
pub fn suggest_agents(context: &Context, typed: &[String]) {
    for word in typed {
        if let Some(meant) = nearest_agent(context, word).filter(|meant| *meant != word) {
            tell!("ostler: {word:?} is not an agent; did you mean {meant}?");
        }
    }
}

/// `ostler` alone: the list, or on a fresh machine the three commands to start with.
pub fn bare(context: &Context) -> Result<Code> {
    let look = look(context);
    let found = table::find(&context.engine, &Wanted::default(), look)?;
    let attended = ostler_tui::terminal::is_there();
    let any = !found.listed.is_empty() || found.older > 0;
    if any && attended && context.engine.config.opens_dashboard {
        return super::dashboard::run(context);
    }
    let style = context.style;
    if !found.listed.is_empty() {
        table::print(found, look)?;
        if attended {
            say!("{}", style.dim("see them live: ostler ui"))?;
        }
        return Ok(Code::Succeeded);
    }
    say!("ostler keeps coding-agent sessions. Start with:\n")?;
    for (command, what) in [
        ("ostler run demo \"fix the failing test\"", "see an agent work; no key, no network"),
        ("ostler run -d -- make test", "keep any command in the background"),
        ("ostler ls", "see what runs"),
    ] {
        say!("  {}{}{}", style.bold(command), " ".repeat(42 - command.len()), style.dim(what))?;
    }
    say!("\nAll commands: ostler --help")?;
    Ok(Code::Succeeded)
}

/// How the list is shown on standard output.
fn look(context: &Context) -> Look {
    Look { style: context.style, width: window().filter(|&columns| columns > 0) }
}

/// What was asked for.
fn wanted(context: &Context, args: &Ls) -> Result<Wanted> {
    let below = match args.here {
        true => {
            let cannot = |error| Failure::ours(format!("cannot use the current folder: {error}"));
            Some(context.engine.environment.folder().map_err(cannot)?.to_owned())
        }
        false => None,
    };
    if let Some(unknown) = args.states.iter().find(|state| !STATES.contains(&state.as_str())) {
        return Err(Failure::usage(format!("{unknown:?} is not a state; use one of: {}", STATES.join(", "))));
    }
    let labels = args.labels.iter().map(|label| match label.split_once('=') {
        Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
        None => (label.clone(), None),
    });
    let filter = Filter { below, states: args.states.clone(), agents: args.agents.clone(), labels: labels.collect() };
    let sort = match args.sort {
        Sort::Need => list::Sort::Need,
        Sort::Created => list::Sort::Created,
        Sort::Updated => list::Sort::Updated,
        Sort::Name => list::Sort::Name,
        Sort::Cost => list::Sort::Cost,
    };
    Ok(Wanted { all: args.all, filter, sort, most: args.most, rest_later: false })
}

fn print_json(context: &Context, wanted: &Wanted) -> Result<()> {
    let mut out = BufWriter::with_capacity(64 * 1024, std::io::stdout().lock());
    let mut before: &[u8] = b"[\n";
    list::json(&context.engine, wanted, |one| {
        out.write_all(std::mem::replace(&mut before, b",\n"))?;
        out.write_all(one)
    })?;
    let rest: &[u8] = if before == b"[\n" { b"[\n]\n" } else { b"\n]\n" };
    out.write_all(rest).and_then(|()| out.flush()).map_err(not_written)
}

/// Home as `~`.
pub fn tilde(path: &str) -> String {
    match variable("HOME").filter(|home| home.len() > 1) {
        Some(home) => match path.strip_prefix(&home) {
            Some("") => "~".to_owned(),
            Some(rest) if rest.starts_with('/') => format!("~{rest}"),
            Some(_) | None => path.to_owned(),
        },
        None => path.to_owned(),
    }
}
