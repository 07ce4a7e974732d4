//! How long it takes to start a session.

use anyhow::Result;

use crate::bench::Bench;
use crate::bench::drive::dtach::Dtach;
use crate::bench::drive::ostler::{Ostler, printed_id};
use crate::bench::drive::shpool::Shpool;
use crate::bench::drive::tmux::{self, Tmux};
use crate::bench::execute::run;
use crate::bench::measure::{Contender, Entry};
use crate::bench::row::{Goal, Row, Unit};

pub const NAME: &str = "launch";

pub fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let entries = vec![
        Entry::new(Contender::Ostler, "ostler run -d -- true", || {
            let ostler = Ostler::in_new_home(bench)?;
            Ok(move |_| {
                let launched = run(&mut ostler.command(["run", "-d", "--", "true"]))?;
                // To be certain that it was started: its end must be known, and be that of `true`.
                run(&mut ostler.command(["wait", printed_id(&launched.stdout)?]))?;
                Ok(launched.ms)
            })
        }),
        Entry::new(Contender::Dtach, "dtach -n SOCKET true", || {
            let dtach = Dtach::new(bench)?;
            Ok(move |_| Ok(run(dtach.command("-n", &dtach.socket()).arg("true"))?.ms))
        }),
        Entry::new(Contender::Tmux, "tmux new-session -d true", || {
            let tmux = Tmux::start(bench)?;
            Ok(move |_| Ok(run(tmux.command().args(["new-session", "-d", "true"]))?.ms))
        }),
        Entry::new(Contender::TmuxCold, "the same, no server running yet", || {
            Ok(|_| Ok(run(tmux::cold_command(bench)?.args(["new-session", "-d", "true"]))?.ms))
        }),
        Entry::new(Contender::Shpool, "shpool attach --background --cmd true NAME", || {
            let shpool = Shpool::start(bench)?;
            Ok(move |round| Ok(run(&mut shpool.launch_command(&format!("s{round}"), "true"))?.ms))
        }),
    ];
    Ok(vec![Row {
        name: NAME,
        title: "start a session".to_owned(),
        how: "From before the command is spawned until it has exited; before the next sample \
              everything it started has ended. Ours is a copy of the built program, as an installation makes it; ours and \
              dtach's files have folders of their own, which ext4 keeps apart from what was deleted lately.",
        unit: Unit::Milliseconds,
        measured: bench.take_turns(entries, bench.choose(200, 5))?,
        goals: vec![
            Goal::AtMostTimes(1.5, Contender::Dtach),
            Goal::LessThan(Contender::Tmux),
            Goal::LessThan(Contender::TmuxCold),
        ],
    }])
}
