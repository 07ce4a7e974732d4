//! `ostler show`: one session in full.

mod family;

use super::attach::longer;
use super::ls::{is_retrying, no_answer, retry_words, state_word, tilde, waits_words};
use crate::args::Show;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::say;
use crate::ui::asking::{how_to_answer, lines_in_full};
use crate::ui::called::called;
use crate::ui::money::spending;
use crate::ui::next_step::after_loss;
use crate::ui::style::Style;
use crate::ui::table::{Cell, lay_out, window};
use crate::ui::time::{age, duration, size};
use ostler_core::fact::{Ask, Verdict};
use ostler_core::limits::counted;
use ostler_core::outcome::{Kind, Outcome, Saved};
use ostler_core::record::{Adopted, Mode};
use ostler_core::spending::Spent;
use ostler_core::view::{LastTurn, Phase, View};
use ostler_core::visible::visible;
use ostler_core::worktree::Worktree;
use ostler_engine::Place;
use ostler_engine::process::now;
use ostler_engine::show::{Details, Total, Turns, Usage};
use ostler_engine::turns::{TurnsKept, ranges};
use ostler_engine::worktrees::Standing;
use serde_json::Value;

pub fn run(context: &Context, args: &Show) -> Result<Code> {
    let place = context.engine.select(&args.id)?;
    if args.json {
        let details = context.engine.show(&place, Turns::All)?;
        say!("{}", serde_json::to_string_pretty(&details).unwrap_or_default())?;
    } else {
        crate::say::text(&describe(context, &context.engine.show(&place, Turns::Newest)?))?;
    }
    Ok(Code::Succeeded)
}

/// The object of `--json`, for a caller that has the view already.
pub fn object(context: &Context, place: &Place, view: &View) -> Result<Value> {
    let details = context.engine.details(place, view.clone(), Turns::All)?;
    serde_json::to_value(&details).map_err(|error| Failure::ours(error.to_string()))
}

/// The newest turns are shown one by one, so many of them.
const TURNS_SHOWN: usize = 5;

fn in_words(usage: Usage) -> String {
    let memory = usage.memory.map(|bytes| format!("{} of memory", size(bytes)));
    let processes = usage.processes.map(|count| counted(count, "process", "processes"));
    let cpu = usage.cpu_s.map(|seconds| format!("CPU time {}", duration((seconds * 1e3) as u64)));
    memory.into_iter().chain(processes).chain(cpu).collect::<Vec<_>>().join(", ")
}

/// What the sessions of a job have done together.
fn total_words(total: &Total) -> String {
    let sessions = counted(total.sessions.into(), "session", "sessions");
    let used = spending(total.tokens, total.cost_usd).map(|used| format!(", {used}")).unwrap_or_default();
    format!("{} in {sessions}{used}", total.turns)
}

fn describe(context: &Context, details: &Details) -> String {
    let Details {
        view,
        spent,
        total,
        usage,
        in_force,
        adopted,
        changes,
        reviews,
        snapshots,
        family,
        folder,
        transcript_is_gone,
        ..
    } = details;
    let style = context.style;
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            rows.push(vec![Cell::painted(name, style, Style::dim), Cell::new(value)]);
        }
    };
    let or_none = |pid: Option<i32>| pid.map_or("none".to_owned(), |pid| pid.to_string());
    row("session", &called(view));
    let retrying = view.retrying.as_ref().filter(|_| is_retrying(view));
    let retrying = retrying.map(|now| format!(", {}", retry_words(now))).unwrap_or_default();
    let no_answer = no_answer(view).map(|words| format!(", {words}")).unwrap_or_default();
    row("state", &format!("{}{retrying}{no_answer}", state_word(view).1));
    row("", &waits_words(view).unwrap_or_default());
    row("alarm", view.alarm.as_deref().unwrap_or(""));
    if let Some(ask) = &view.asking {
        for (place, line) in describe_ask(ask).into_iter().enumerate() {
            row(if place == 0 { "asks" } else { "" }, &line);
        }
        row("answer with", &how_to_answer(view));
        if let Some(longer) = longer(view).filter(|_| view.mode == Mode::Headless) {
            row("with --always", &format!("for the rest of the run: {}", visible(&longer)));
        }
    }
    row("agent", &view.agent);
    row("command", &view.command.join(" "));
    let labels: Vec<String> = view.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    row("labels", &labels.join(", "));
    row("in force", in_force.unwrap_or(""));
    row("mode", if view.mode == Mode::Terminal { "terminal" } else { "headless" });
    row("where", &tilde(&view.cwd));
    if let Some(tree) = &view.worktree {
        row("worktree", &worktree_words(tree, *changes));
    }
    for review in reviews {
        for (place, line) in super::review::lines(review).into_iter().enumerate() {
            let by = format!("{} ({} by {})", line, review.id, review.by);
            row(if place == 0 { "review" } else { "" }, &visible(if place == 0 { &by } else { &line }));
        }
    }
    row("created", &format!("{} ago", age(now().as_second() - view.created.as_second())));
    row("adopted", &adopted.as_ref().map(origin).unwrap_or_default());
    if !view.ended {
        row(
            "processes",
            &format!(
                "{} {}, holder {}, keeper {}",
                // Its program is not running yet, and a small process of ostler waits in its place.
                if view.state == Phase::Queued { "waiting" } else { "agent" },
                or_none(view.pid),
                or_none(view.holder_pid),
                or_none(view.keeper_pid)
            ),
        );
        row("quiet", &duration(view.quiet_s * 1000));
        row("uses", &usage.map(in_words).unwrap_or_default());
    }
    row("limits", &view.limits.words());
    row("runs", &view.run.to_string());
    match total {
        None => row("turns", &view.turns.to_string()),
        Some(total) => row("turns", &total_words(total)),
    }
    row("snapshots", &snapshots.as_ref().map(snapshot_words).unwrap_or_default());
    row("last turn", &view.last_turn.as_ref().filter(|_| !view.ended).map(turn_words).unwrap_or_default());
    if view.queued > 0 {
        let messages = if view.queued == 1 { "message" } else { "messages" };
        row("waiting", &format!("{} {messages}; ostler send {} --list", view.queued, view.id));
        row("", &view.message_waits.as_ref().map(|why| format!("not delivered yet: {why}")).unwrap_or_default());
    }
    for n in &view.maybe_delivered {
        row("unclear", &unclear(view, *n));
    }
    row("conversation", view.native_id.as_deref().unwrap_or(""));
    row("transcript", &view.transcript.as_deref().map(tilde).unwrap_or_default());
    for (place, line) in family::lines(family, view).iter().enumerate() {
        row(if place == 0 { "family" } else { "" }, line);
    }
    row("folder", &tilde(&folder.to_string_lossy()));
    if let Some(outcome) = &view.outcome {
        describe_outcome(&mut row, outcome, *transcript_is_gone);
        row("next", &after_loss(view).unwrap_or_default());
    }
    describe_spending(&mut row, view, spent);
    row("last", view.last.as_deref().and_then(|last| last.lines().next()).unwrap_or(""));
    lay_out(&rows, None)
}

/// `ostler/fix from main (1a2b3c4): 2 commits ahead, 1 behind, 3 files changed`.
fn worktree_words(tree: &Worktree, changes: Option<Standing>) -> String {
    let base = tree.base.get(..7).unwrap_or(&tree.base);
    let from = tree.from.as_ref().map_or_else(|| base.to_owned(), |from| format!("{from} ({base})"));
    let now = match changes {
        Some(Standing { ahead, behind, changed }) => {
            let changed = counted(changed as u64, "file", "files");
            format!("{} ahead, {behind} behind, {changed} changed", counted(ahead as u64, "commit", "commits"))
        }
        None => "its folder is gone".to_owned(),
    };
    format!("{} from {from}: {now}", tree.branch)
}

/// `of turns 0–4; without big.bin (too large)`.
fn snapshot_words(kept: &TurnsKept) -> String {
    const NAMED: usize = 3;
    let turns = match &kept.turns[..] {
        [] => "none".to_owned(),
        [0] => "of the start".to_owned(),
        turns => format!("after turns {}", ranges(turns.to_vec())),
    };
    let turns = match &kept.mixed[..] {
        [] => turns,
        mixed => format!("{turns} (with changes of the next turn: {})", ranges(mixed.to_vec())),
    };
    let problem = match (&kept.gave_up, &kept.failed) {
        (Some(why), _) => format!("; no more are taken: {why}"),
        (None, Some(why)) => format!("; the newest was not taken: {why}"),
        (None, None) => String::new(),
    };
    let named = kept.skipped.iter().take(NAMED).map(|one| format!("{} ({})", visible(&one.path), one.why.words()));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = kept.skipped.len().saturating_sub(NAMED);
    match (named.is_empty(), more) {
        (true, _) => format!("{turns}{problem}"),
        (false, 0) => format!("{turns}{problem}; without {named}"),
        (false, _) => format!("{turns}{problem}; without {named} and {more} more"),
    }
}

/// Where an adopted session came from.
fn origin(adopted: &Adopted) -> String {
    let messages = counted(adopted.messages, "message", "messages");
    format!("started outside ostler, {messages} before; by {}", adopted.by)
}

/// What to do about a message that may have been delivered.
pub fn unclear(view: &View, n: u64) -> String {
    let id = view.id;
    format!(
        "message {n} may have been delivered already; send it again: ostler send {id} --again {n}, or drop it: ostler send {id} --withdraw {n}"
    )
}

/// What it asks, in full, beside the column of the labels.
fn describe_ask(ask: &Ask) -> Vec<String> {
    const LABELS: usize = 16;
    let columns = window().map_or(usize::MAX, |columns| columns.saturating_sub(LABELS).max(LABELS));
    lines_in_full(ask, Style { colour: false }, columns)
}

/// How the last turn of a session that goes on went; that it succeeded goes without saying.
fn turn_words(turn: &LastTurn) -> String {
    let word = Kind::from(turn.verdict).word();
    match (turn.verdict, &turn.reason) {
        (Verdict::Succeeded, _) => String::new(),
        (Verdict::Failed | Verdict::Interrupted, Some(reason)) => format!("{word}: {reason}"),
        (Verdict::Failed | Verdict::Interrupted, None) => word.to_owned(),
    }
}

/// `is_gone`: its transcript does not exist any more.
fn describe_outcome(row: &mut impl FnMut(&str, &str), outcome: &Outcome, is_gone: bool) {
    // Without a duration its program never began: the exit is that of the process that waited in its place.
    let exit = match (outcome.exit_code, outcome.signal) {
        _ if outcome.duration_ms.is_none() => String::new(),
        (Some(code), _) => format!(", exit code {code}"),
        (None, Some(signal)) => format!(", {}", ostler_core::outcome::signal_name(signal)),
        (None, None) => String::new(),
    };
    row("outcome", &format!("{}{exit}", outcome.kind.word()));
    row("cause", &outcome.cause);
    match outcome.saved {
        Saved::Verified if is_gone => row("saved", "the last turn was in the transcript, and that file is gone"),
        Saved::Verified => row("saved", "yes: the last turn is in the transcript"),
        Saved::Unverified => row("saved", "not proven: the last turn was not found in the transcript"),
        Saved::NotApplicable => {}
    }
    row("took", &outcome.duration_ms.map(duration).unwrap_or_default());
    for process in &outcome.left {
        row("ended after it", process);
    }
}

/// The session, its newest run where there were several, its newest turns where there were several.
fn describe_spending(row: &mut impl FnMut(&str, &str), view: &View, spent: &[Spent]) {
    row("used", &spending(view.tokens, view.cost_usd).unwrap_or_default());
    if let (true, Some(outcome)) = (view.run > 1, &view.outcome) {
        row(&format!("  run {}", view.run), &spending(outcome.tokens, outcome.cost_usd).unwrap_or_default());
    }
    if spent.len() > 1 {
        let shown = &spent[spent.len().saturating_sub(TURNS_SHOWN)..];
        let known = shown.iter().any(|turn| spending(turn.tokens, turn.cost_usd).is_some());
        let before = shown.first().filter(|_| known).map_or(0, |turn| turn.turn.saturating_sub(1));
        let all = format!("not shown here; see ostler show --json {}", view.id);
        match before {
            0 => {}
            1 => row("  turn 1", &all),
            last => row(&format!("  turns 1–{last}"), &all),
        }
        for turn in shown {
            row(&format!("  turn {}", turn.turn), &spending(turn.tokens, turn.cost_usd).unwrap_or_default());
        }
    }
}
