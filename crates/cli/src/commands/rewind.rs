//! `ostler rewind`: files and conversation as they were at the end of a turn.

use super::diff::say_if_mixed;
use crate::args::Rewind;
use crate::context::Context;
use crate::exit::{Code, Result};
use crate::say::say;
use ostler_core::limits::counted;
use ostler_engine::turns;

pub fn run(context: &Context, args: &Rewind) -> Result<Code> {
    let place = context.engine.select(&args.id)?;
    let both = !args.files && !args.conversation;
    let request = turns::Rewind {
        turn: args.turn,
        files: args.files || both || args.undo,
        conversation: (args.conversation || both) && !args.undo,
    };
    let rewound = context.engine.rewind(&place, request)?;
    if let (Some(turn), Some(_)) = (args.turn, rewound.files) {
        say_if_mixed(context, &place, turn)?;
    }
    if let Some(files) = rewound.files {
        let changed = files > 0;
        let files = counted(files as u64, "file", "files");
        match args.turn {
            Some(turn) if !changed => {
                say!("{}: {files} put back to the end of turn {turn}: nothing differs", place.id)?
            }
            Some(turn) => {
                say!(
                    "{}: {files} put back to the end of turn {turn}; undo: ostler rewind {} --undo",
                    place.id,
                    place.id
                )?;
            }
            None => say!("{}: {files} put back to what they were before the last rewind", place.id)?,
        }
    }
    for repository in rewound.repositories {
        say!("{}: {repository} is a repository of its own, which stays as it is", place.id)?;
    }
    if let (Some(copy), Some(turn)) = (rewound.session, args.turn) {
        say!(
            "{}: a copy of the conversation up to turn {turn}; continue it: ostler resume {} MESSAGE",
            copy.place.id,
            copy.place.id
        )?;
    }
    Ok(Code::Succeeded)
}
