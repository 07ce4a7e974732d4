//! The file format: text, one line for each event, made to be read in a diff.
//!
//! ```text
//! ostler recording 1
//! agent NAME 2.1.197
//! scene reply
//! conversation 00000001-0000-4000-8000-000000000000
//! run ["NAME","-p"]
//! transcript .NAME/projects/-recorded-work/00000001-0000-4000-8000-000000000000.jsonl
//!      0 < {"type":"user","message":{"role":"user","content":"say hello"}}
//!    500 > {"type":"system","subtype":"init"}
//!    100 + {"type":"user","uuid":"00000002-0000-4000-8000-000000000000"}
//!    200 .
//!     10 = exit 0
//! file proof "what a tool wrote\n"
//! ```
//!
//! A step is the pause before it in milliseconds, a mark, and its text. The marks: `<` a line that the agent was given,
//! `.` the end of its input, `^` a signal it was sent, `>` a line it printed, `!` one on its standard error, `+` one in
//! its transcript, `=` its end. A text without a line end has a `~` after its mark. Several processes of one
//! conversation follow one another, each beginning with its `run` line.

use std::fmt;

const TITLE: &str = "ostler recording 1";

/// What one agent did in one scene.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    pub agent: String,
    pub version: String,
    pub scene: String,
    /// The agent's own id of the conversation.
    pub conversation: String,
    /// Its processes, one after the other; at least one.
    pub runs: Vec<Run>,
}

/// One process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    pub argv: Vec<String>,
    /// Path below its home folder; `None` when it keeps no transcript that is text.
    pub transcript: Option<String>,
    pub steps: Vec<Step>,
    /// The files that its tools wrote to its working directory.
    pub files: Vec<(String, String)>,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Since the step before it.
    pub pause_ms: u64,
    pub action: Action,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The agent was given this input.
    Reads(Text),
    /// Its input ended.
    InputEnds,
    /// The agent was sent SIGINT, the one signal that agents handle as a request.
    Interrupted,
    Prints(Text),
    /// On its standard error.
    PrintsError(Text),
    /// Into its transcript.
    Saves(Text),
    Ends(End),
}

/// A line, or a text without a line end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    pub text: String,
    pub whole: bool,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exit(i32),
    Signal(i32),
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Unreadable {
    #[error("it does not begin with \"{TITLE}\"")]
    NoRecording,
    #[error("line {line} is not understood")]
    Line { line: usize },
    #[error("it ends before {0}")]
    Incomplete(&'static str),
}

impl Text {
    #[must_use]
    pub fn line(text: impl Into<String>) -> Text {
        Text { text: text.into(), whole: true }
    }

    /// The text, with its line end if it has one.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.text.clone().into_bytes();
        bytes.extend(self.whole.then_some(b'\n'));
        bytes
    }
}

impl Run {
    /// What it printed, line by line.
    pub fn printed(&self) -> impl Iterator<Item = &str> {
        self.steps
            .iter()
            .filter_map(|step| if let Action::Prints(text) = &step.action { Some(&*text.text) } else { None })
    }

    /// How it ended.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.steps.iter().find_map(|step| if let Action::Ends(end) = step.action { Some(end) } else { None })
    }
}

impl Recording {
    /// Reads a file's text.
    ///
    /// # Errors
    /// When it is not a recording, or not a complete one.
    pub fn read(text: &str) -> Result<Recording, Unreadable> {
        let mut lines = text.split('\n').enumerate().map(|(index, line)| (index + 1, line));
        if lines.next().is_none_or(|(_, line)| line != TITLE) {
            return Err(Unreadable::NoRecording);
        }
        let mut head = |name: &'static str| -> Result<String, Unreadable> {
            let (number, line) = lines.next().ok_or(Unreadable::Incomplete(name))?;
            let value = line.strip_prefix(name).and_then(|rest| rest.strip_prefix(' '));
            value.map(str::to_owned).ok_or(Unreadable::Line { line: number })
        };
        let (agent, scene, conversation) = (head("agent")?, head("scene")?, head("conversation")?);
        let (agent, version) = agent.split_once(' ').ok_or(Unreadable::Line { line: 2 })?;
        let mut runs: Vec<Run> = Vec::new();
        for (number, line) in lines.filter(|(_, line)| !line.is_empty()) {
            read_line(line, &mut runs).ok_or(Unreadable::Line { line: number })?;
        }
        if runs.is_empty() || runs.iter().any(|run| run.end().is_none()) {
            return Err(Unreadable::Incomplete("the end of a process"));
        }
        Ok(Recording { agent: agent.to_owned(), version: version.to_owned(), scene, conversation, runs })
    }
}

fn read_line(line: &str, runs: &mut Vec<Run>) -> Option<()> {
    let (word, rest) = line.trim_start().split_once(' ')?;
    if word == "run" {
        runs.push(Run { argv: serde_json::from_str(rest).ok()?, ..Run::default() });
        return Some(());
    }
    let run = runs.last_mut()?;
    match word {
        "transcript" => run.transcript = Some(rest.to_owned()),
        "file" => run.files.push(serde_json::from_str(rest).ok()?),
        pause => run.steps.push(Step { pause_ms: pause.parse().ok()?, action: read_action(rest)? }),
    }
    Some(())
}

fn read_action(marked: &str) -> Option<Action> {
    let (mark, text) = marked.split_once(' ').unwrap_or((marked, ""));
    let (kind, whole) = mark.strip_suffix('~').map_or((mark, true), |kind| (kind, false));
    let text = || Text { text: text.to_owned(), whole };
    Some(match kind {
        "<" => Action::Reads(text()),
        "." => Action::InputEnds,
        "^" => Action::Interrupted,
        ">" => Action::Prints(text()),
        "!" => Action::PrintsError(text()),
        "+" => Action::Saves(text()),
        "=" => Action::Ends(match text().text.split_once(' ')? {
            ("exit", code) => End::Exit(code.parse().ok()?),
            ("signal", number) => End::Signal(number.parse().ok()?),
            (_, _) => return None,
        }),
        _ => return None,
    })
}

impl fmt::Display for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{TITLE}\nagent {} {}\nscene {}", self.agent, self.version, self.scene)?;
        writeln!(f, "conversation {}", self.conversation)?;
        for run in &self.runs {
            writeln!(f, "run {}", serde_json::json!(run.argv))?;
            if let Some(transcript) = &run.transcript {
                writeln!(f, "transcript {transcript}")?;
            }
            for step in &run.steps {
                writeln!(f, "{:>6} {}", step.pause_ms, step.action)?;
            }
            for file in &run.files {
                writeln!(f, "file {}", serde_json::json!(file))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut marked = |mark: &str, text: &Text| {
            let open = if text.whole { "" } else { "~" };
            write!(f, "{mark}{open} {}", text.text)
        };
        match self {
            Action::Reads(text) => marked("<", text),
            Action::Prints(text) => marked(">", text),
            Action::PrintsError(text) => marked("!", text),
            Action::Saves(text) => marked("+", text),
            Action::InputEnds => write!(f, "."),
            Action::Interrupted => write!(f, "^ SIGINT"),
            Action::Ends(End::Exit(code)) => write!(f, "= exit {code}"),
            Action::Ends(End::Signal(number)) => write!(f, "= signal {number}"),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn actions() -> impl Strategy<Value = Action> {
        let text = || ("[^\n\r]{0,40}", any::<bool>()).prop_map(|(text, whole)| Text { text, whole });
        prop_oneof![
            text().prop_map(Action::Reads),
            text().prop_map(Action::Prints),
            text().prop_map(Action::PrintsError),
            text().prop_map(Action::Saves),
            Just(Action::InputEnds),
            Just(Action::Interrupted),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(actions in prop::collection::vec((0..100_000u64, actions()), 0..20), file in ".{0,20}") {
            let mut steps: Vec<Step> = actions.into_iter().map(|(pause_ms, action)| Step { pause_ms, action }).collect();
            steps.push(Step { pause_ms: 1, action: Action::Ends(End::Exit(3)) });
            let run = Run { argv: vec!["a b".to_owned()], transcript: None, steps, files: vec![("f".to_owned(), file)] };
            let recording = Recording {
                agent: "claude".to_owned(),
                version: "1 (x)".to_owned(),
                scene: "reply".to_owned(),
                conversation: "c".to_owned(),
                runs: vec![run.clone(), run],
            };
            prop_assert_eq!(Recording::read(&recording.to_string()), Ok(recording));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "(ostler recording 1\n)?(agent a 1\nscene s\nconversation c\nrun \\[\\]\n)?.{0,80}") {
            let _ = Recording::read(&text);
        }
    }

    #[test]
    fn a_recording_that_breaks_off_is_none() {
        let whole = "ostler recording 1\nagent a 1\nscene s\nconversation c\nrun []\n     0 = exit 0\n";
        assert_eq!(Recording::read(whole).unwrap().runs.len(), 1);
        assert_eq!(
            Recording::read(&whole.replace("     0 = exit 0\n", "")),
            Err(Unreadable::Incomplete("the end of a process"))
        );
        assert_eq!(Recording::read("hello"), Err(Unreadable::NoRecording));
        assert_eq!(Recording::read(&whole.replace("= exit 0", "? exit 0")), Err(Unreadable::Line { line: 6 }));
    }
}
