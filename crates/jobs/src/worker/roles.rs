//! The agents of a worker: one Markdown file each, named like the agent. Above the prompt there may be settings:
//!
//! ```text
//! ---
//! agent: demo
//! model: large
//! ---
//! Look at TODO.md and do the first thing that is open.
//! ```

use ostler_engine::Engine;
use ostler_engine::launch::{prompt_files, read_prompt};
use ostler_engine::suggest::{did_you_mean, nearest};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// One agent of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    /// Its name, with which other agents hand over to it.
    pub name: String,
    /// The agent's program.
    pub agent: String,
    /// Its model.
    pub model: Option<String>,
    /// Its prompt.
    pub prompt: String,
}

/// A mistake in a file: the position and what is wrong.
#[derive(Debug, thiserror::Error)]
#[error("{}: {words}", .place)]
pub struct Mistake {
    place: String,
    words: String,
}

/// Reads the files. The first one is the agent that begins.
///
/// # Errors
/// With the first mistake. Nothing was started.
pub fn load(engine: &Engine, files: &[PathBuf]) -> Result<Vec<Role>, Mistake> {
    let mut roles: Vec<Role> = Vec::new();
    for file in files {
        let place = file.display().to_string();
        let wrong = |words: String| Mistake { place: place.clone(), words };
        let whole = engine.environment.folder().map_or_else(|_| file.clone(), |folder| folder.join(file));
        let bytes = read_prompt(&whole).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.ok_or_else(|| wrong("is too long, or is not valid UTF-8".to_owned()))?;
        let name = file.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (settings, prompt) = parse(&text, &place)?;
        let agent = match settings.agent {
            Some(agent) => agent,
            None => engine.default_agent().map_err(|error| wrong(error.to_string()))?.name().to_owned(),
        };
        engine.check_agent(&agent).map_err(|error| wrong(error.to_string()))?;
        if roles.iter().any(|role| role.name == name) {
            return Err(wrong(format!("there are two agents {name:?}")));
        }
        roles.push(Role { name, agent, model: settings.model, prompt });
    }
    Ok(roles)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Settings {
    agent: Option<String>,
    model: Option<String>,
}

fn parse(text: &str, place: &str) -> Result<(Settings, String), Mistake> {
    let wrong = |line: usize, words: String| Mistake { place: format!("{place}:{line}"), words };
    let mut settings = Settings::default();
    let mut prompt = text;
    if let Some(rest) = text.strip_prefix("---\n") {
        let (head, body) = rest
            .split_once("\n---\n")
            .or_else(|| rest.strip_prefix("---\n").map(|body| ("", body)))
            .ok_or_else(|| wrong(1, "the settings have no end; add a line ---".to_owned()))?;
        for (number, line) in (2..).zip(head.lines()) {
            let (key, value) = line.split_once(':').unwrap_or((line, ""));
            let value = Some(value.trim().to_owned()).filter(|value| !value.is_empty());
            match key.trim() {
                "agent" => settings.agent = value,
                "model" => settings.model = value,
                "" => {}
                other => {
                    let meant = did_you_mean(nearest(other, ["agent", "model"]));
                    return Err(wrong(number, format!("there is no setting {other:?}{meant}")));
                }
            }
        }
        prompt = body;
    }
    if prompt.trim().is_empty() {
        return Err(wrong(1, "the prompt is empty".to_owned()));
    }
    Ok((settings, prompt.trim().to_owned()))
}

/// The files of a folder, when none are named: `.ostler/agents/*.md`, in the order of their names.
#[must_use]
pub fn usual(folder: &Path) -> Vec<PathBuf> {
    prompt_files(&folder.join(".ostler/agents"))
}

/// To which agent an answer hands over: the last `<next agent="NAME"/>` in it.
#[must_use]
pub fn next(text: &str) -> Option<&str> {
    let (_, rest) = text.rsplit_once("<next agent=\"")?;
    let (name, rest) = rest.split_once('"')?;
    rest.trim_start().starts_with("/>").then_some(name)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn settings_stand_above_the_prompt() {
        let (settings, prompt) = parse("---\nagent: demo\nmodel: large\n---\n\nDo it.\n", "a.md").unwrap();
        assert_eq!(
            (settings.agent.as_deref(), settings.model.as_deref(), prompt.as_str()),
            (Some("demo"), Some("large"), "Do it.")
        );
        assert_eq!(parse("Do it.", "a.md").unwrap().0, Settings::default());
        assert_eq!(parse("---\n---\nDo it.", "a.md").unwrap().1, "Do it.");
        for (text, said) in [
            ("---\nagnt: demo\n---\nx", "a.md:2: there is no setting \"agnt\"; did you mean agent?"),
            ("---\nagent: demo\nx", "a.md:1: the settings have no end; add a line ---"),
            ("  \n", "a.md:1: the prompt is empty"),
        ] {
            assert_eq!(parse(text, "a.md").unwrap_err().to_string(), said);
        }
    }

    #[test]
    fn the_last_hand_over_counts() {
        assert_eq!(next("first <next agent=\"a\"/>, no: <next agent=\"b\" />"), Some("b"));
        assert_eq!(next("<next agent=\"a\">"), None);
        assert_eq!(next("done"), None);
    }
}
