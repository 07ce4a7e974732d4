//! Which transcript is meant: a session of ours, a file, or the agent's own id of a conversation.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::foreign::{self, stored};
use ostler_agents::repair::Format;
use ostler_core::view::View;
use ostler_view::proof::find_transcript_with;
use std::fs::File;
use std::path::{Path, PathBuf};

pub struct Target {
    pub file: PathBuf,
    pub format: Format,
    pub native_id: Option<String>,
    /// The session of ours that has this conversation.
    pub session: Option<Box<View>>,
}

impl Target {
    pub fn find(engine: &Engine, word: &str) -> Result<Target> {
        let path = Path::new(word);
        if path.is_file() && (word.contains('/') || word.ends_with(".jsonl")) {
            return Target::file(engine, path);
        }
        if let Some(view) = engine.session_of(word)? {
            return Target::session(engine, view);
        }
        if let Some((format, file)) = of_conversation(engine, word) {
            return Ok(Target { file, format, native_id: Some(word.to_owned()), session: None });
        }
        Err(Error::NoTranscript { word: word.to_owned() })
    }

    fn session(engine: &Engine, view: View) -> Result<Target> {
        let Some(format) = Format::of_agent(&view.agent) else {
            return Err(Error::NoRepair { agent: view.agent });
        };
        let found = || {
            let agent = ostler_agents::find(&view.agent)?;
            find_transcript_with(agent, view.native_id.as_deref()?, &view.cwd, &engine.environment.lookup())
        };
        let file = view.transcript.clone().or_else(found).map(PathBuf::from).filter(|file| file.is_file());
        let Some(file) = file else {
            if let Some(gone) = &view.transcript {
                return Err(Error::TranscriptGone { path: gone.clone(), id: view.id });
            }
            return Err(Error::NothingSaid { id: view.id });
        };
        Ok(Target { file, format, native_id: view.native_id.clone(), session: Some(Box::new(view)) })
    }

    fn file(engine: &Engine, path: &Path) -> Result<Target> {
        let cannot = |error: std::io::Error| Error::Unreadable { path: path.to_owned(), error: error.to_string() };
        let file = std::fs::canonicalize(path).map_err(cannot)?;
        let told = Format::detect(File::open(&file).map_err(cannot)?).map_err(cannot)?;
        let Some(format) = told.or_else(|| by_name(&file)) else {
            return Err(Error::NotATranscript { path: path.to_owned() });
        };
        let native_id = native_id(format, &file);
        let session = match &native_id {
            Some(id) => engine.session_of(id)?.filter(|view| view.agent == format.agent()).map(Box::new),
            None => None,
        };
        Ok(Target { file, format, native_id, session })
    }
}

/// The format according to the file's name, for a file whose content does not show it. A file that is not empty counts
/// as a transcript only in a folder where agents put theirs.
fn by_name(file: &Path) -> Option<Format> {
    let empty = file.metadata().is_ok_and(|file| file.len() == 0);
    Format::of_name(file, empty)
}

fn native_id(format: Format, file: &Path) -> Option<String> {
    foreign::conversation_in(ostler_agents::find(format.agent())?, file)
}

/// The transcript of a conversation that no session of ours has. Of several files of one conversation, the newest.
fn of_conversation(engine: &Engine, id: &str) -> Option<(Format, PathBuf)> {
    let variable = |name: &str| engine.environment.variable(name);
    let found = stored::in_files(&variable).into_iter().filter(|one| one.native_id == id);
    let newest = found.filter_map(|one| Some((Format::of_agent(one.agent)?, one))).max_by_key(|(_, one)| one.updated);
    newest.map(|(format, one)| (format, one.file))
}
