//! The sessions themselves: damaged folders, ends that were not recorded, agents without a keeper, keepers that die
//! repeatedly.

use super::fix::Fix;
use super::helpers::Helper;
use super::{Finding, quoted};
use crate::error::Result;
use ostler_core::id::SessionId;
use ostler_core::view::View;
use ostler_store::StoreError;
use ostler_store::archive_file;
use ostler_store::disk_reserve::is_nearly_full;
use ostler_store::home::{Home, Place};
use ostler_sys::dir::Dir;
use ostler_sys::process::Stat;
use ostler_sys::socket;
use ostler_sys::threads::parallel;
use ostler_view::live_views::Live;
use ostler_view::look::{Depth, look_to};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many sessions a thread takes at a time.
const BATCH: usize = 16;

/// More crashes in a row than this are not an accident, and are reported.
const LOOP: u32 = 3;

/// Also returns the helpers of healthy sessions, which then need not be searched for.
pub fn check(home: &Home) -> Result<(Vec<Finding>, Vec<Helper>)> {
    let mut places = home.live_places()?;
    places.extend(home.archived_places()?);
    places.sort_by_key(|place| (place.id, place.archived));
    let (mut findings, mut running, mut ended) = (Vec::new(), 0, 0);
    // On a full disk every session has to be examined, because it may be waiting for room.
    let room = Dir::open(home.sessions()).is_ok_and(|dir| is_nearly_full(&dir).is_ok_and(|full| !full));
    let live = room.then(|| Live::open(home, places.len())).flatten();
    let next = AtomicUsize::new(0);
    let look = || {
        let (mut looks, mut kept) = (Vec::new(), Vec::new());
        loop {
            let at = next.fetch_add(BATCH, Ordering::Relaxed);
            let handful = at..places.len().min(at + BATCH);
            if handful.is_empty() {
                return (looks, kept);
            }
            for place in &places[handful] {
                let healthy = live.as_ref().and_then(|live| live.look(place).ok()).filter(is_healthy);
                looks.push(match healthy {
                    Some(view) => {
                        let helpers = [("holder", view.holder_pid), ("keeper", view.keeper_pid)];
                        let helper = |(word, pid): (_, Option<i32>)| Some(Helper::of(pid?, word, &place.path));
                        kept.extend(helpers.into_iter().filter_map(helper));
                        (place, Ok((false, Vec::new())))
                    }
                    // The last line of the session is not needed.
                    None => {
                        let view = look_to(Depth::Standing, place);
                        match damaged_files(place) {
                            // Reported even when the session can be read without these files.
                            Some(finding) => (place, Ok((true, vec![finding]))),
                            None => (place, view.map(|view| (view.ended, look_closer(place, &view)))),
                        }
                    }
                });
            }
        }
    };
    let (looks, kept): (Vec<_>, Vec<_>) = parallel(super::AT_ONCE, look).into_iter().unzip();
    let mut looks: Vec<_> = looks.into_iter().flatten().collect();
    looks.sort_by_key(|(place, _)| place.id);
    if let Some(live) = live {
        live.save();
    }
    let twice: HashSet<SessionId> = copies(&places).map(|both| both[0].id).collect();
    for (place, look) in looks {
        match look {
            // What is in the archive under the id of another session is reported as that.
            Ok((..)) if place.archived && twice.contains(&place.id) => ended += 1,
            Ok((is_ended, found)) => {
                *(if is_ended { &mut ended } else { &mut running }) += 1;
                findings.extend(found);
            }
            // Purged or moved while we looked.
            Err(_) if !place.path.exists() => {}
            Err(error) => findings.push(damaged(home, place, &error)),
        }
    }
    findings.extend(copies(&places).map(two_with_one_id));
    findings.insert(0, Finding::fine(format!("sessions: {running} running, {ended} ended")));
    Ok((findings, kept.into_iter().flatten().collect()))
}

/// Sessions whose id another folder has as well. The places are sorted by their ids. A session that was archived while
/// the places were listed is in the list twice, and only once on the disk.
fn copies(places: &[Place]) -> impl Iterator<Item = &[Place]> {
    places.windows(2).filter(|both| both[0].id == both[1].id && both.iter().all(|place| place.path.exists()))
}

fn two_with_one_id(both: &[Place]) -> Finding {
    let paths = both.iter().map(|place| quoted(&place.path)).collect::<Vec<_>>().join(" and ");
    let what = format!("two sessions have the id {}: {paths}", both[0].id);
    Finding::problem(what, "one of the two is a copy; move it away")
}

/// The damaged files of a packed session. Every file is read, which lists do not do.
fn damaged_files(place: &Place) -> Option<Finding> {
    let files =
        place.is_packed().then(|| place.open().and_then(|folder| archive_file::damaged_files(&folder)))?.ok()?;
    let what = format!("{}: the archived file is damaged ({})", place.id, files.join(", "));
    let remedy = format!("restore the files that are not damaged: ostler restore {}", place.id);
    (!files.is_empty()).then(|| Finding::problem(what, remedy))
}

fn damaged(home: &Home, place: &Place, error: &StoreError) -> Finding {
    let id = place.id;
    match error {
        StoreError::Of { error, .. } => damaged(home, place, error),
        // Without the original this is not a copy: the folder was renamed, and has the only conversation.
        StoreError::Copy { id: original, .. } if matches!(home.place_of(*original), Ok(None)) => Finding::problem(
            format!("{id} is the folder of session {original} under another name"),
            format!("mv {} {}", quoted(&place.path), quoted(&place.path.with_file_name(original.as_str()))),
        ),
        StoreError::Damaged { .. } | StoreError::Missing { .. } | StoreError::Copy { .. } => Finding::problem(
            format!("{id} is damaged: {error}"),
            format!("check {}, then delete it: ostler purge {id}", quoted(&place.path)),
        ),
        StoreError::Newer { .. } => {
            Finding::problem(format!("{id}: {error}"), "use that version of ostler or a newer one")
        }
        StoreError::Io { .. } => {
            Finding::problem(format!("{id} cannot be read: {error}"), format!("ls -la {}", quoted(&place.path)))
        }
    }
}

/// Whether the session runs and nothing is wrong with it. Its holder is known to be alive, but may be stopped by a
/// signal.
fn is_healthy(view: &View) -> bool {
    let holder = view.holder_pid.and_then(|pid| Stat::read(pid).ok().flatten());
    let stopped = holder.is_none_or(|stat| matches!(stat.state, b'T' | b't'));
    view.alive && view.kept && view.alarm.is_none() && !stopped
}

fn look_closer(place: &Place, view: &View) -> Vec<Finding> {
    let id = place.id;
    let mut findings = Vec::new();
    let healthy = view.kept && view.alarm.is_none() && !view.ended;
    let Some(folder) = (!healthy).then(|| place.open().ok()).flatten() else {
        return findings;
    };
    if view.ended {
        let recorded = view.run > 0 && folder.run(view.run).and_then(|run| run.outcome()).is_ok_and(|o| o.is_some());
        let unrecorded = format!("{id} ended without a keeper, so its outcome is not recorded");
        match (recorded, place.archived) {
            (true, _) => {}
            (false, false) => {
                let finding = Finding::problem(unrecorded, format!("ostler wait {id}"));
                findings.push(finding.fixed_by(Fix::Record(place.clone())));
            }
            // Nothing is written into the archive.
            (false, true) => {
                findings.push(Finding::note(format!("{unrecorded}; it is archived"), format!("ostler restore {id}")));
            }
        }
        let listens = folder.dir().stat("sock").ok().flatten().is_some();
        if recorded && listens && matches!(socket::reach(folder.dir()), Ok(None)) {
            let finding = Finding::note(format!("{id} has ended and left its socket behind; this is harmless"), "");
            findings.push(finding.fixed_by(Fix::RemoveSocket(place.clone())));
        }
        if let Some(alarm) = view.alarm.as_ref().filter(|_| place.archived) {
            findings.push(Finding::note(format!("{id}: {alarm}"), format!("ostler show {id}")));
        }
        return findings;
    }
    let crashes = folder.holder().ok().flatten().filter(|_| !view.kept).map_or(0, |holder| holder.crashes);
    if view.alive && view.holder_pid.is_none() && view.keeper_pid.is_none() {
        findings.push(Finding::problem(
            format!("{id}: its agent (pid {}) is running without a keeper", view.pid.unwrap_or_default()),
            format!("ostler upgrade {id}"),
        ));
    } else if crashes > LOOP {
        findings.push(Finding::problem(
            format!("{id}: its keeper has died {crashes} times in a row"),
            format!("ostler upgrade {id} (reason: ostler show {id})"),
        ));
    } else if let Some(alarm) = &view.alarm {
        findings.push(Finding::problem(format!("{id}: {alarm}"), format!("ostler show {id}")));
    }
    findings
}
