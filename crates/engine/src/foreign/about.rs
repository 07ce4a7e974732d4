//! What is in a conversation that the agent keeps: where it works, what it was asked first, how it ends.

use super::stored::Stored;
use ostler_agents::lines::{Line, Lines};
use ostler_agents::recorded::{Reading, Recorded, What};
use ostler_core::fact::{Fact, Tokens};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

/// What is known about one conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// Where it works.
    pub cwd: Option<String>,
    /// What it was asked first.
    pub prompt: Option<String>,
    /// What the agent said last.
    pub last: Option<String>,
    /// How many messages it has, of people and of the agent.
    pub messages: u64,
    /// Whether it ends with a message of the agent. An interrupted conversation ends with a prompt or a tool.
    pub answered: bool,
    /// Whether its end refers to a line that is missing: some agents may write an answer before its prompt.
    pub torn: bool,
    /// The tokens that it has used, where the agent counts them from its beginning.
    pub tokens: Tokens,
}

/// How many bytes of the beginning are read to find where it works and what it was asked.
const BEGINNING: u64 = 1 << 20;

/// Reads the whole conversation.
pub fn whole(stored: &Stored) -> io::Result<About> {
    let mut about = said(stored)?;
    let first = if stored.cwd.is_some() { None } else { folder(stored)? };
    about.cwd = stored.cwd.clone().or(first);
    Ok(about)
}

/// The same without where it works.
pub fn said(stored: &Stored) -> io::Result<About> {
    match stored.queries() {
        Some(_) => {
            let mut record = Vec::new();
            stored.write_record(&mut record)?;
            read(stored, record.as_slice())
        }
        None => read(stored, File::open(&stored.file)?),
    }
}

/// Reads only the beginning, as much as a list needs. `None` for a file without a prompt: it is not a person's
/// conversation.
pub fn beginning(stored: &Stored) -> io::Result<Option<About>> {
    let mut about = match stored.queries() {
        Some(_) => return whole(stored).map(Some),
        None => read(stored, File::open(&stored.file)?.take(BEGINNING))?,
    };
    about.cwd = match &stored.cwd {
        Some(cwd) => Some(cwd.clone()),
        None => folder(stored)?,
    };
    Ok(about.prompt.is_some().then_some(about))
}

fn read(stored: &Stored, mut source: impl Read) -> io::Result<About> {
    let mut about = About::default();
    let Some(agent) = stored.kept_by() else {
        return Ok(about);
    };
    let Some(recording) = agent.recording() else {
        return Ok(about);
    };
    let mut reading = Reading::new(recording);
    let mut buffer = vec![0; 256 * 1024];
    let mut lines = Lines::from(0);
    loop {
        let count = source.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        reading.feed(&buffer[..count], |recorded| about.add(recorded));
        lines.feed(&buffer[..count], |line, _| match line {
            Line::Whole(line) => about.tokens = agent.used_up_to(line).unwrap_or(about.tokens),
            Line::TooLong { .. } => {}
        });
    }
    about.torn = reading.waits();
    reading.finish(|recorded| about.add(recorded));
    Ok(about)
}

impl About {
    fn add(&mut self, recorded: Recorded) {
        self.answered = matches!(recorded.what, What::Agent(Fact::Said { .. }));
        match recorded.what {
            What::Told { text } => {
                self.messages += 1;
                self.prompt.get_or_insert(text);
            }
            What::Agent(Fact::Said { text }) => {
                self.messages += 1;
                self.last = text.lines().rev().find(|line| !line.trim().is_empty()).map(str::to_owned);
            }
            What::Agent(_) => {}
        }
    }
}

/// Where it works: of the folders that its lines name, the first in which it was begun, else the first of all.
fn folder(stored: &Stored) -> io::Result<Option<String>> {
    let Some(agent) = stored.kept_by() else {
        return Ok(None);
    };
    let mut first = None;
    for line in BufReader::new(File::open(&stored.file)?).split(b'\n') {
        let Some(cwd) = agent.cwd_in(&line?) else { continue };
        if agent.was_begun_in(&stored.file, &cwd) {
            return Ok(Some(cwd));
        }
        first.get_or_insert(cwd);
    }
    Ok(first)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::time::SystemTime;

    fn about(agent: &'static str, folder: &str, text: &str) -> About {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(folder);
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("x.jsonl");
        std::fs::write(&file, text).unwrap();
        let stored = Stored { agent, native_id: "x".to_owned(), file, updated: SystemTime::now(), cwd: None };
        whole(&stored).unwrap()
    }

    #[test]
    fn a_claude_works_where_its_conversation_was_begun() {
        let text = r#"{"type":"user","cwd":"/elsewhere","message":{"content":"go"}}
{"type":"assistant","cwd":"/a/work","message":{"content":[{"type":"text","text":"gone\n"}]}}
{"type":"user","cwd":"/a/work/deep","message":{"content":"on"}}
"#;
        let found = about("claude", "-a-work", text);
        assert_eq!((found.cwd.as_deref(), found.prompt.as_deref()), (Some("/a/work"), Some("go")));
        assert_eq!((found.last.as_deref(), found.messages, found.answered), (Some("gone"), 3, false));
        assert_eq!(about("claude", "-renamed", text).cwd.as_deref(), Some("/elsewhere"), "the best that is known");
    }

    #[test]
    fn codex_tells_in_its_first_line_where_it_works_and_at_last_what_it_used() {
        let text = r#"{"type":"session_meta","payload":{"cwd":"/w"}}
{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":10,"output_tokens":1}}}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"text":"done"}]}}
{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":30,"output_tokens":2}}}}
"#;
        let found = about("codex", "s", text);
        assert_eq!((found.cwd.as_deref(), found.answered), (Some("/w"), true));
        assert_eq!(found.tokens, Tokens { input: 30, output: 2 });
    }
}
