//! `ostler purge`: delete sessions permanently.

use super::each_session;
use crate::args::Purge;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::{self, say};
use crate::ui::called::called_at;
use crate::ui::time::{age, parse_duration};
use ostler_engine::purge::{self, Purged};

pub fn run(context: &Context, args: &Purge) -> Result<Code> {
    let engine = &context.engine;
    let older_than = args.older_than.as_deref().map(parse_duration).transpose().map_err(Failure::usage)?;
    let mut places = if args.archived { engine.home.archived_places()? } else { engine.select_exactly(&args.ids)? };
    places.sort_by_key(|place| place.id);
    let purge = purge::Purge { older_than, unnamed: args.archived, dry_run: args.dry_run };
    let code = each_session::each(places, |place| {
        let name = called_at(&place);
        match engine.purge(&place, &purge, &mut say::notice)? {
            Purged::Yes => say!("{name}: purged")?,
            Purged::Would => say!("{name}: would be purged")?,
            Purged::TooYoung(_) if args.archived => {}
            Purged::TooYoung(seconds) => say!("{name}: kept; it ended only {} ago", age(seconds))?,
        }
        Ok(Code::Succeeded)
    });
    if !args.dry_run {
        engine.finish_purges()?;
    }
    Ok(code)
}
