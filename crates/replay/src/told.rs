//! What people told the recorded agent, and when: a test that plays a recording through ostler has to do the same.

use crate::recording::{Deed, Recording, Run, Text};
use serde_json::Value;

/// Something that a person did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cue {
    /// How many lines the agent had printed by then.
    pub printed: usize,
    pub told: Told,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    Message(String),
    Answer { allow: bool },
    Interrupt,
}

impl Run {
    /// What was told to this process, in order.
    #[must_use]
    pub fn cues(&self) -> Vec<Cue> {
        let (mut cues, mut printed, mut message) = (Vec::new(), 0, Vec::new());
        for step in &self.steps {
            match &step.deed {
                Deed::Reads(text) if self.takes_one_message() => message.extend(text.bytes()),
                Deed::Reads(text) => cues.extend(in_line(&text.text).map(|told| Cue { printed, told })),
                Deed::InputEnds if self.takes_one_message() => {
                    let text = String::from_utf8_lossy(&std::mem::take(&mut message)).into_owned();
                    cues.push(Cue { printed, told: Told::Message(text) });
                }
                Deed::Interrupted => cues.push(Cue { printed, told: Told::Interrupt }),
                Deed::Prints(_) => printed += 1,
                Deed::InputEnds | Deed::Complains(_) | Deed::Saves(_) | Deed::Ends(_) => {}
            }
        }
        cues
    }

    /// The messages among it.
    #[must_use]
    pub fn messages(&self) -> Vec<String> {
        let messages = self.cues().into_iter().filter_map(|cue| match cue.told {
            Told::Message(text) => Some(text),
            Told::Answer { .. } | Told::Interrupt => None,
        });
        messages.collect()
    }

    /// Whether its input is the message itself; others read lines, of which many can come.
    #[must_use]
    pub fn takes_one_message(&self) -> bool {
        self.steps.iter().any(|step| matches!(&step.deed, Deed::Reads(Text { whole: false, .. })))
    }
}

impl Recording {
    /// Whether somebody breaks a turn off in it, for which the player waits.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.runs.iter().flat_map(Run::cues).any(|cue| cue.told == Told::Interrupt)
    }

    /// What is told without anybody resuming the conversation: of an agent with a process for each message everything,
    /// else what its first process is told.
    #[must_use]
    pub fn messages(&self) -> Vec<String> {
        let one_each = self.runs.iter().all(Run::takes_one_message);
        let runs = if one_each { self.runs.len() } else { 1 };
        self.runs.iter().take(runs).flat_map(Run::messages).collect()
    }
}

fn in_line(line: &str) -> Option<Told> {
    let line: Value = serde_json::from_str(line).ok()?;
    let at = |place: &str| line.pointer(place).and_then(Value::as_str);
    if let Some(text) = at("/message/content") {
        return Some(Told::Message(text.to_owned()));
    }
    if let Some(behavior) = at("/response/response/behavior") {
        return Some(Told::Answer { allow: behavior == "allow" });
    }
    (at("/request/subtype") == Some("interrupt")).then_some(Told::Interrupt)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn recording(steps: &str) -> Recording {
        let head = "ostler recording 1\nagent a 1\nscene s\nconversation c\nrun []\n";
        Recording::read(&format!("{head}{steps}     0 = exit 0\n")).unwrap()
    }

    #[test]
    fn a_message_may_be_a_line_of_json_or_all_of_the_input() {
        let json = recording(
            "     0 < {\"message\":{\"content\":\"one\"}}\n     0 > x\n     0 < {\"request\":{\"subtype\":\"interrupt\"}}\n",
        );
        assert_eq!(
            json.runs[0].cues(),
            [Cue { printed: 0, told: Told::Message("one".to_owned()) }, Cue { printed: 1, told: Told::Interrupt }]
        );
        let plain =
            recording("     0 < one\n     0 <~ two\n     0 .\n     0 = exit 0\nrun []\n     0 <~ three\n     0 .\n");
        assert_eq!(plain.messages(), ["one\ntwo", "three"]);
    }
}
