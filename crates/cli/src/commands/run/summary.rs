//! The last lines of a followed session.

use crate::commands::ls::tilde;
use crate::exit::Code;
use crate::follow::err;
use crate::ui::called::called;
use crate::ui::money::dollars;
use crate::ui::style::Style;
use crate::ui::time::duration;
use ostler_core::fact::Tokens;
use ostler_core::life::OUTPUT_LOST;
use ostler_core::outcome::{Kind, Outcome, Saved, Source};
use ostler_core::view::View;

/// The last lines: what was achieved, what was kept and where, and what to do next. `told`: the text printed just above
/// them.
pub fn conclude(view: &View, style: Style, told: Option<&str>) -> Code {
    let Some(outcome) = &view.outcome else {
        return Code::Ours;
    };
    let code = Code::of(outcome);
    // After a command that succeeded, or explained its failure, a script gets only the command's own output. The
    // command cannot have explained what ostler has decided, for example that it never starts.
    let explained = outcome.exit_code.is_some() && outcome.source != Source::Ostler;
    let plain = outcome.kind == Kind::Succeeded || !style.colour && explained;
    let silent = !converses(view) && plain && !has_lost_output(outcome) && outcome.left.is_empty();
    if !silent {
        // Errors are ignored: when standard error is gone, there is no place to report them.
        let _ = err(summary(view, outcome, style, told).as_bytes());
    }
    code
}

/// A command has neither turns nor a conversation, also when it is an agent of config.toml.
fn converses(view: &View) -> bool {
    view.native_id.is_some()
        || ostler_engine::installed::find(&view.agent).is_some_and(|agent| agent.name() != "command")
}

fn has_lost_output(outcome: &Outcome) -> bool {
    outcome.cause.ends_with(OUTPUT_LOST)
}

fn used(tokens: Option<Tokens>, cost_usd: Option<f64>) -> Vec<String> {
    let tokens = tokens.map(|tokens| format!("{} tokens", tokens.input.saturating_add(tokens.output)));
    tokens.into_iter().chain(dollars(cost_usd)).collect()
}

fn summary(view: &View, outcome: &Outcome, style: Style, told: Option<&str>) -> String {
    let printable = |text: &str| ostler_screen::printable(text).into_owned();
    let verdict = match outcome.kind {
        Kind::Succeeded => style.green("✔ succeeded"),
        Kind::Failed => style.red("✘ failed"),
        Kind::Interrupted => style.yellow("■ interrupted"),
        Kind::Stopped => style.yellow("■ stopped"),
        Kind::Lost => style.red("✘ lost"),
    };
    let mut facts = vec![style.bold(&called(view))];
    // The turns of a job are those of its sessions.
    if converses(view) && view.job.is_none() {
        let turns = if outcome.turns == 1 { "1 turn".to_owned() } else { format!("{} turns", outcome.turns) };
        facts.push(turns);
    }
    facts.extend(outcome.duration_ms.map(duration));
    match outcome.saved {
        Saved::Verified => facts.push("saved".to_owned()),
        Saved::Unverified => facts.push(style.yellow("not proven saved")),
        Saved::NotApplicable => {}
    }
    facts.extend(used(outcome.tokens, outcome.cost_usd));
    if view.run > 1 {
        let session = used(view.tokens, view.cost_usd).join(", ");
        facts.extend((!session.is_empty()).then(|| format!("session: {session}")));
    }
    let mut text = format!("\n{verdict}  {}\n", facts.join(" · "));
    if (outcome.kind != Kind::Succeeded || has_lost_output(outcome)) && told != Some(outcome.cause.as_str()) {
        text.push_str(&format!("  {}\n", printable(&outcome.cause)));
    }
    for process in &outcome.left {
        text.push_str(&format!("  {} {}\n", style.dim("ended a process it left running:"), printable(process)));
    }
    if let Some(transcript) = &view.transcript {
        text.push_str(&format!("  {} {}\n", style.dim("transcript"), printable(&tilde(transcript))));
    }
    if converses(view) {
        let id = view.id;
        // A job takes no message.
        let message = if view.job.is_some() { "" } else { " \"…\"" };
        text.push_str(&format!(
            "  {} ostler logs {id} · ostler resume {id}{message} · ostler ls\n",
            style.dim("try next  ")
        ));
    }
    text
}
