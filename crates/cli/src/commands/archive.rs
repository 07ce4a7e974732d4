//! `ostler archive`: put sessions away. A session that still runs is stopped first, as `stop` does it. `ls` no longer
//! lists an archived session; `show` and `logs` read it as before, and `restore` brings it back.

use super::each_session;
use super::stop::say_whether_saved;
use crate::args::Archive;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::{self, say};
use crate::ui::called::called;
use crate::ui::time::parse_duration;

pub fn run(context: &Context, args: &Archive) -> Result<Code> {
    let engine = &context.engine;
    let idle = args.idle.as_deref().map(parse_duration).transpose().map_err(Failure::usage)?;
    let places = match idle {
        Some(age) => engine.idle_for(age)?,
        None => engine.select_all(&args.ids)?,
    };
    // All sessions are asked to stop before the first is waited for.
    Ok(each_session::each(engine.stop_to_archive(places), |archiving| {
        let end = engine.archive(archiving, &mut say::notice)?;
        let waiting = match end.view.queued {
            0 => String::new(),
            1 => "; 1 message was not delivered and waits for the next resume".to_owned(),
            more => format!("; {more} messages were not delivered and wait for the next resume"),
        };
        say!("{}: archived{waiting}", called(&end.view))?;
        Ok(if end.was_over || say_whether_saved(&end.view) { Code::Succeeded } else { Code::NotSaved })
    }))
}
