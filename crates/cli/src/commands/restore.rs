//! `ostler restore`: bring archived sessions back, as they were.

use super::each_session;
use crate::args::Many;
use crate::context::Context;
use crate::exit::{Code, Result};
use crate::say::{say, tell};
use crate::ui::called::called_at;
use ostler_engine::archive::Restored;

pub fn run(context: &Context, args: &Many) -> Result<Code> {
    let places = context.engine.select_archived(&args.ids)?;
    Ok(each_session::each(places, |place| {
        let name = called_at(&place);
        let Restored { alarm, damaged } = context.engine.restore(&place)?;
        say!("{name}: restored")?;
        for file in damaged {
            tell!("ostler: {name}: {file} was damaged in the archive; the other files are restored");
        }
        if let Some(words) = alarm {
            tell!("ostler: {name}: {words}");
        }
        Ok(Code::Succeeded)
    }))
}
