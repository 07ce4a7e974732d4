//! How much memory it takes to keep a session that does nothing.

use anyhow::{Context, Result, bail};

use crate::bench::Bench;
use crate::bench::drive::dtach::Dtach;
use crate::bench::drive::ostler::Ostler;
use crate::bench::drive::pueue::Pueue;
use crate::bench::drive::shpool::Shpool;
use crate::bench::drive::tmux::Tmux;
use crate::bench::execute::run;
use crate::bench::measure::{Contender, Entry};
use crate::bench::rest::until_at_rest;
use crate::bench::row::{Goal, Row, Unit};

pub const NAME: &str = "memory";

const PROGRAM: &str = "sleep 600";

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let count = bench.choose(100, 5);
    let looks = bench.choose(5, 2);
    // One tool after the other: a page that two tools share would count half for each.
    let mut measured = Vec::new();
    let entry =
        Entry::new(Contender::Ostler, "holder and keeper of `ostler run -d -- sleep 600`", || ours(bench, count));
    measured.extend(bench.take_turns(vec![entry], looks)?);
    let entry = Entry::new(Contender::Dtach, "the process of `dtach -n SOCKET sleep 600`", || dtach(bench, count));
    measured.extend(bench.take_turns(vec![entry], looks)?);
    let entry =
        Entry::new(Contender::Tmux, "the server, with `tmux new-session -d 'sleep 600'`", || tmux(bench, count));
    measured.extend(bench.take_turns(vec![entry], looks)?);
    let command = "the daemon, with `shpool attach --background --cmd 'sleep 600' NAME`";
    let entry = Entry::new(Contender::Shpool, command, || shpool(bench, count));
    measured.extend(bench.take_turns(vec![entry], looks)?);
    let command = "the daemon, with `pueue add -- sleep 600`, all running";
    let entry = Entry::new(Contender::Pueue, command, || pueue(bench, count));
    measured.extend(bench.take_turns(vec![entry], looks)?);
    Ok(vec![Row {
        name: NAME,
        title: format!("memory per idle session ({count} sessions)"),
        how: "Proportional set size (Pss in /proc/PID/smaps_rollup) of the keeping processes, without the kept \
              program, once they are at rest, divided by the number of sessions. One tool after the other.",
        unit: Unit::Kibibytes,
        measured,
        goals: vec![Goal::AtMost(0.4 * 1024.0)],
    }])
}

fn ours(bench: &Bench, count: usize) -> Result<impl FnMut(usize) -> Result<f64>> {
    let ostler = Ostler::in_new_home(bench)?;
    for _ in 0..count {
        let id = ostler.launch(["--", "sleep", "600"])?;
        ostler.until_kept(&id)?;
    }
    let mut helpers = Vec::new();
    for session in ostler.sessions()? {
        let (Some(holder), Some(keeper), true) = (session.holder_pid, session.keeper_pid, session.kept) else {
            bail!("session {} has no holder or no keeper", session.id);
        };
        helpers.extend([holder, keeper]);
    }
    look_at(ostler, helpers, count)
}

fn dtach(bench: &Bench, count: usize) -> Result<impl FnMut(usize) -> Result<f64>> {
    let (sessions, _) = Dtach::new(bench)?.launch(count, &["sleep", "600"])?;
    let program = bench.tools.dtach.path()?.display().to_string();
    let keeping = sessions.processes.iter().filter(|process| process.command.starts_with(&program));
    let keeping: Vec<i32> = keeping.map(|process| process.identity.pid()).collect();
    if keeping.len() != count {
        bail!("{} dtach processes for {count} sessions", keeping.len());
    }
    look_at(sessions, keeping, count)
}

fn tmux(bench: &Bench, count: usize) -> Result<impl FnMut(usize) -> Result<f64>> {
    let tmux = Tmux::start(bench)?;
    for number in 0..count {
        tmux.launch(&format!("s{number}"), PROGRAM)?;
    }
    let server = tmux.server_pid()?;
    look_at(tmux, vec![server], count)
}

fn shpool(bench: &Bench, count: usize) -> Result<impl FnMut(usize) -> Result<f64>> {
    let shpool = Shpool::start(bench)?;
    for number in 0..count {
        run(&mut shpool.launch_command(&format!("s{number}"), PROGRAM))?;
    }
    let daemon = i32::try_from(shpool.daemon_pid())?;
    look_at(shpool, vec![daemon], count)
}

fn pueue(bench: &Bench, count: usize) -> Result<impl FnMut(usize) -> Result<f64>> {
    let pueue = Pueue::start(bench, count)?;
    pueue.add_running(count, PROGRAM)?;
    let daemon = i32::try_from(pueue.daemon_pid())?;
    look_at(pueue, vec![daemon], count)
}

/// Measures the memory of these processes while `alive_meanwhile`, which ends them when dropped, exists.
fn look_at<T>(alive_meanwhile: T, pids: Vec<i32>, sessions: usize) -> Result<impl FnMut(usize) -> Result<f64>> {
    until_at_rest(&pids)?;
    #[expect(clippy::cast_precision_loss, reason = "a hundred")]
    let sessions = sessions as f64;
    Ok(move |_| {
        let _ = &alive_meanwhile;
        Ok(pids.iter().map(|pid| proportional_kib(*pid)).sum::<Result<f64>>()? / sessions)
    })
}

pub fn proportional_kib(pid: i32) -> Result<f64> {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))
        .with_context(|| format!("cannot read the memory of process {pid}"))?;
    pss_kib(&rollup).with_context(|| format!("no Pss for process {pid}"))
}

fn pss_kib(rollup: &str) -> Option<f64> {
    rollup.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix("kB")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::pss_kib;

    #[test]
    fn the_whole_of_pss_is_taken_and_none_of_its_parts() {
        let rollup = "5614-7ffc ---p 00000000 00:00 0 [rollup]\nRss:  1764 kB\nPss:   360 kB\nPss_Dirty:  108 kB\n";
        assert_eq!(pss_kib(rollup), Some(360.0));
        assert_eq!(pss_kib("Pss_Dirty: 108 kB\n"), None);
    }
}
