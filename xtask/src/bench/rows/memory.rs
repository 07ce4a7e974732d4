//! What it costs in memory to keep a session that does nothing.

use anyhow::{Context, Result, bail};

use crate::bench::Bench;
use crate::bench::drive::dtach::Dtach;
use crate::bench::drive::ostler::Ostler;
use crate::bench::drive::pueue::Pueue;
use crate::bench::drive::shpool::Shpool;
use crate::bench::drive::tmux::Tmux;
use crate::bench::execute::run;
use crate::bench::measure::{Contender, Entry};
use crate::bench::row::{Goal, Row, Unit};

pub const NAME: &str = "memory";

const PROGRAM: &str = "sleep 600";

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let count = bench.choose(100, 5);
    let per_session = |pids: &[i32]| -> Result<f64> {
        let total = pids.iter().map(|pid| proportional_kib(*pid)).sum::<Result<f64>>()?;
        #[expect(clippy::cast_precision_loss, reason = "a hundred")]
        let count = count as f64;
        Ok(total / count)
    };
    let entries = vec![
        Entry::new(Contender::Ostler, "holder and keeper of `ostler run -d -- sleep 600`", || {
            let ostler = Ostler::in_new_home(bench)?;
            for _ in 0..count {
                ostler.launch(["--", "sleep", "600"])?;
            }
            let mut helpers = Vec::new();
            for session in ostler.sessions()? {
                let (Some(holder), Some(keeper), true) = (session.holder_pid, session.keeper_pid, session.kept) else {
                    bail!("session {} has no holder or no keeper", session.id);
                };
                helpers.extend([holder, keeper]);
            }
            Ok(move |_| {
                let _alive_meanwhile = &ostler;
                per_session(&helpers)
            })
        }),
        Entry::new(Contender::Dtach, "the dtach process of `dtach -n SOCKET sleep 600`", || {
            let dtach = Dtach::new(bench)?;
            let (sessions, _) = dtach.launch(count, &["sleep", "600"])?;
            let ours = |command: &str| command.starts_with(&*bench.tools.dtach.path().unwrap_or("".as_ref()).to_string_lossy());
            let masters: Vec<i32> =
                sessions.processes.iter().filter(|process| ours(&process.command)).map(|p| p.identity.pid()).collect();
            if masters.len() != count {
                bail!("{} dtach processes for {count} sessions", masters.len());
            }
            Ok(move |_| {
                let _alive_meanwhile = &sessions;
                per_session(&masters)
            })
        }),
        Entry::new(Contender::Tmux, "the server, with `tmux new-session -d 'sleep 600'`", || {
            let tmux = Tmux::start(bench)?;
            for number in 0..count {
                tmux.launch(&format!("s{number}"), PROGRAM)?;
            }
            let server = [tmux.server_pid()?];
            Ok(move |_| {
                let _alive_meanwhile = &tmux;
                per_session(&server)
            })
        }),
        Entry::new(Contender::Shpool, "the daemon, with `shpool attach --background --cmd 'sleep 600' NAME`", || {
            let shpool = Shpool::start(bench)?;
            for number in 0..count {
                run(&mut shpool.launch_command(&format!("s{number}"), PROGRAM))?;
            }
            let daemon = [i32::try_from(shpool.daemon_pid())?];
            Ok(move |_| {
                let _alive_meanwhile = &shpool;
                per_session(&daemon)
            })
        }),
        Entry::new(Contender::Pueue, "the daemon, with `pueue add -- sleep 600`, all running", || {
            let pueue = Pueue::start(bench, count)?;
            pueue.add_running(count, PROGRAM)?;
            let daemon = [i32::try_from(pueue.daemon_pid())?];
            Ok(move |_| {
                let _alive_meanwhile = &pueue;
                per_session(&daemon)
            })
        }),
    ];
    Ok(vec![Row {
        name: NAME,
        title: format!("memory per idle session ({count} sessions)"),
        how: "Proportional set size (Pss in /proc/PID/smaps_rollup) of the keeping processes, without the kept program, divided by the number of sessions.",
        unit: Unit::Kibibytes,
        measured: bench.take_turns(entries, bench.choose(5, 2))?,
        goals: vec![Goal::AtMost(0.4 * 1024.0)],
    }])
}

fn proportional_kib(pid: i32) -> Result<f64> {
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
