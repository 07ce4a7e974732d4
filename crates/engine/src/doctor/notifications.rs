//! Notifications that did not arrive, or that wait while no process sends them.

use super::{Finding, Fix};
use crate::error::Result;
use ostler_core::limits::counted;
use ostler_notify::sender;
use ostler_notify::settings::Way;
use ostler_notify::spool::{Record, Spool, Standing};
use ostler_store::home::Home;

pub fn check(home: &Home) -> Result<Vec<Finding>> {
    let Some(spool) = Spool::find(home)? else {
        return Ok(Vec::new());
    };
    let records = spool.records();
    let mut findings = given_up(&records);
    let waiting = records.iter().filter(|record| record.waits()).count() as u64;
    if waiting > 0 {
        let waits = format!("{} to be sent", counted(waiting, "notification waits", "notifications wait"));
        findings.push(match sender::is_at_work(home.root())? {
            true => Finding::note(format!("{waits}{}", last_error(&records)), "ostler notify clear"),
            false => Finding::problem(format!("{waits}, and nothing sends them"), "ostler notify test")
                .fixed_by(Fix::Send(waiting)),
        });
    }
    Ok(findings)
}

/// One finding for each way, about its newest lost notification.
fn given_up(records: &[Record]) -> Vec<Finding> {
    let of_way = |way: Way| {
        let lost: Vec<&Record> =
            records.iter().filter(|record| record.given_up().any(|(word, _)| word == way.word())).collect();
        let newest = lost.last()?;
        let error = newest.delivery(way).and_then(|delivery| delivery.error.as_deref()).unwrap_or("no answer");
        Some(Finding::problem(
            format!(
                "{} by {} within an hour, the last about session {} ({}): {error}",
                counted(lost.len() as u64, "notification did not arrive", "notifications did not arrive"),
                way.word(),
                newest.message.session,
                newest.message.moment.word(),
            ),
            "ostler notify test && ostler notify clear",
        ))
    };
    Way::ALL.into_iter().filter_map(of_way).collect()
}

/// Why sending the newest of the waiting notifications failed.
fn last_error(records: &[Record]) -> String {
    let errors = records.iter().rev().flat_map(|record| &record.ways);
    let mut waiting = errors.filter(|(_, delivery)| delivery.state == Standing::Waiting);
    let error = waiting.find_map(|(way, delivery)| Some(format!("; {way}: {}", delivery.error.as_ref()?)));
    error.unwrap_or_default()
}
