//! Which transcript is meant: a session of ours, a file, or the agent's own name for a conversation.

use crate::commands::session_of;
use crate::context::{Context, variable};
use crate::exit::{Code, Failure, Result};
use crate::foreign;
use ostler_core::view::View;
use ostler_store::proof::find_transcript;
use ostler_transcript::Format;
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
    pub fn find(context: &Context, word: &str) -> Result<Target> {
        let path = Path::new(word);
        if path.is_file() && (word.contains('/') || word.ends_with(".jsonl")) {
            return Target::file(context, path);
        }
        if let Some(view) = session_of(context, word)? {
            return Target::session(view);
        }
        for format in [Format::Claude, Format::Codex, Format::Gemini] {
            if let Some(file) = of_conversation(format, word) {
                return Ok(Target { file, format, native_id: Some(word.to_owned()), session: None });
            }
        }
        Err(Failure::new(
            Code::NoSession,
            format!("{word:?} is not a session, a transcript or a conversation; list sessions with: ostler ls -a"),
        ))
    }

    fn session(view: View) -> Result<Target> {
        let Some(format) = Format::of_agent(&view.agent) else {
            return Err(Failure::usage(format!("{} keeps no transcript that ostler can read", view.agent)));
        };
        let found = || {
            let agent = ostler_agents::find(&view.agent)?;
            find_transcript(agent, view.native_id.as_deref()?, &view.cwd)
        };
        let file = view.transcript.clone().or_else(found).map(PathBuf::from).filter(|file| file.is_file());
        let Some(file) = file else {
            if let Some(gone) = &view.transcript {
                let words =
                    format!("{gone} is gone; restore its last copy: ostler checkpoints restore {} last", view.id);
                return Err(Failure::new(Code::NoSession, words));
            }
            return Err(Failure::new(
                Code::NoSession,
                format!("{} has no transcript, because nothing was said", view.id),
            ));
        };
        Ok(Target { file, format, native_id: view.native_id.clone(), session: Some(Box::new(view)) })
    }

    fn file(context: &Context, path: &Path) -> Result<Target> {
        let cannot = |error| Failure::ours(format!("{} cannot be read: {error}", path.display()));
        let file = std::fs::canonicalize(path).map_err(cannot)?;
        let told = Format::detect(File::open(&file).map_err(cannot)?).map_err(cannot)?;
        let Some(format) = told.or_else(|| by_name(&file)) else {
            return Err(Failure::usage(format!("{} is not a transcript of claude, codex or gemini", path.display())));
        };
        let native_id = native_id(format, &file);
        let session = match &native_id {
            Some(id) => session_of(context, id)?.filter(|view| view.agent == format.agent()).map(Box::new),
            None => None,
        };
        Ok(Target { file, format, native_id, session })
    }
}

/// How an agent would have named it, for a file that tells nothing. One with something in it is believed to be an agent's
/// only where agents put theirs.
fn by_name(file: &Path) -> Option<Format> {
    let name = file.file_name()?.to_str()?;
    let empty = file.metadata().is_ok_and(|file| file.len() == 0);
    let folder = |name: &str| empty || file.ancestors().any(|folder| folder.file_name().is_some_and(|own| own == name));
    match name {
        _ if name.starts_with("rollout-") => Some(Format::Codex),
        _ if name.starts_with("session-") && folder("chats") => Some(Format::Gemini),
        _ if uuid::Uuid::try_parse(name.strip_suffix(".jsonl")?).is_ok() && folder("projects") => Some(Format::Claude),
        _ => None,
    }
}

fn native_id(format: Format, file: &Path) -> Option<String> {
    match format {
        Format::Claude => {
            let stem = file.file_stem()?.to_str()?;
            uuid::Uuid::try_parse(stem).is_ok().then(|| stem.to_owned())
        }
        Format::Codex | Format::Gemini => foreign::conversation_in(format.agent(), file),
    }
}

/// The transcript of a conversation that no session of ours has.
fn of_conversation(format: Format, id: &str) -> Option<PathBuf> {
    uuid::Uuid::try_parse(id).ok()?;
    let found = match format {
        Format::Claude => {
            let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
            let folder = set("CLAUDE_CONFIG_DIR").or_else(|| set("HOME").map(|home| home.join(".claude")))?;
            let projects = std::fs::read_dir(folder.join("projects")).ok()?.flatten();
            projects.map(|project| project.path().join(format!("{id}.jsonl"))).find(|file| file.is_file())
        }
        Format::Codex | Format::Gemini => {
            find_transcript(ostler_agents::find(format.agent())?, id, "").map(PathBuf::from)
        }
    };
    found.filter(|file| native_id(format, file).is_some_and(|found| found == id))
}
