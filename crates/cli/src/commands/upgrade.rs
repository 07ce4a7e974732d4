//! `ostler upgrade`: replaces the keepers of running sessions with keepers of this binary.

use super::each_session;
use crate::args::Upgrade;
use crate::context::Context;
use crate::exit::{Code, Result};
use crate::say::say;
use ostler_engine::upgrade::Upgraded;

pub fn run(context: &Context, args: &Upgrade) -> Result<Code> {
    let named = !args.ids.is_empty();
    let mut places = if named { context.engine.select_all(&args.ids)? } else { context.engine.home.live_places()? };
    places.sort_by_key(|place| place.id);
    Ok(each_session::each(places, |place| {
        let (session, upgraded) = context.engine.upgrade(&place)?;
        match upgraded {
            Upgraded::Replaced { before, after } => {
                say!("{session}: {before} → {} (pid {})", after.version, after.process.pid())?;
            }
            Upgraded::HasEnded if named => say!("{session}: has ended; nothing to upgrade")?,
            Upgraded::EndedMeanwhile | Upgraded::Gone => say!("{session}: has ended meanwhile")?,
            Upgraded::HasEnded => {}
        }
        Ok(Code::Succeeded)
    }))
}
