//! `ostler compare`: what the sessions of a group have done, side by side.

use crate::args::Compare;
use crate::context::Context;
use crate::exit::{Code, Result};
use crate::say::{say, tell};
use crate::ui::money::rounded;
use crate::ui::style::Style;
use crate::ui::table::{Cell, lay_out, window};
use crate::ui::time::duration;
use ostler_core::comparison::Compared;
use ostler_engine::Place;
use ostler_tui::terminal::{Signal, Signals};
use std::io::IsTerminal;
use std::os::fd::AsFd;

pub fn run(context: &Context, args: &Compare) -> Result<Code> {
    if let Some(command) = &args.check {
        context.engine.check_later_command(command)?;
    }
    let places = context.engine.group(&args.group)?;
    let compared = compare(context, &places, args.check.as_deref())?;
    if args.json {
        let objects = compared.iter().map(serde_json::to_string).collect::<std::result::Result<Vec<_>, _>>();
        let objects = objects.map_err(std::io::Error::from)?;
        crate::say::text(&format!("[\n{}\n]\n", objects.join(",\n")))?;
        return Ok(Code::Succeeded);
    }
    crate::say::text(&table(&compared, context.style))?;
    if std::io::stdout().is_terminal() && compared.iter().all(|one| one.ended) {
        say!("\n{}", context.style.dim("see one: ostler diff ID · take one: ostler pick ID"))?;
    }
    Ok(Code::Succeeded)
}

fn compare(context: &Context, places: &[Place], check: Option<&str>) -> Result<Vec<Compared>> {
    // Signals are handled only with a check: only a check takes long and has something to restore.
    let signals = check.map(|_| Signals::take(&Signal::LEAVING)).transpose()?;
    let mut compared = Vec::new();
    for (number, place) in places.iter().enumerate() {
        if check.is_some() && std::io::stderr().is_terminal() {
            tell!("ostler: checking {} of {}", number + 1, places.len());
        }
        compared.push(context.engine.compared(place, check, signals.as_ref().map(AsFd::as_fd))?);
    }
    Ok(compared)
}

fn table(compared: &[Compared], style: Style) -> String {
    let models = compared.iter().any(|one| one.model.is_some());
    let checks = compared.iter().any(|one| one.check.is_some());
    let mut head = vec!["ID", "AGENT"];
    head.extend(models.then_some("MODEL"));
    head.extend(["OUTCOME", "TIME", "COST", "TOKENS", "FILES", "LINES"]);
    head.extend(checks.then_some("CHECK"));
    head.push("LAST MESSAGE");
    let mut rows: Vec<Vec<Cell>> = vec![head.into_iter().map(|text| Cell::painted(text, style, Style::dim)).collect()];
    rows.extend(compared.iter().map(|one| row(one, models, checks, style)));
    lay_out(&rows, window())
}

fn row(one: &Compared, models: bool, checks: bool, style: Style) -> Vec<Cell> {
    let or_none = |text: Option<String>| Cell::new(&text.unwrap_or_else(|| "-".to_owned()));
    let mut cells = vec![Cell::painted(one.id.as_str(), style, Style::bold), Cell::new(&one.agent)];
    cells.extend(models.then(|| or_none(one.model.clone())));
    let paint: fn(Style, &str) -> String = match one.status.as_str() {
        "succeeded" => Style::green,
        "failed" | "lost" => Style::red,
        _ => Style::yellow,
    };
    cells.push(Cell::painted(&one.status, style, paint));
    cells.push(Cell::new(&duration(one.seconds * 1000)));
    cells.push(or_none(rounded(one.cost_usd)));
    cells.push(or_none(one.tokens.map(|tokens| (tokens.input + tokens.output).to_string())));
    cells.push(or_none(one.changes.map(|changes| changes.files.to_string())));
    cells.push(or_none(one.changes.map(|changes| format!("+{} -{}", changes.added, changes.deleted))));
    if checks {
        cells.push(match &one.check {
            Some(check) if check.passed => Cell::painted("passed", style, Style::green),
            Some(_) => Cell::painted("failed", style, Style::red),
            None => Cell::new("-"),
        });
    }
    let last = one.last.as_deref().and_then(|text| text.lines().map(str::trim).find(|line| !line.is_empty()));
    cells.push(Cell::new(&ostler_screen::printable(last.unwrap_or_default())));
    cells
}
