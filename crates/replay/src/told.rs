//! What people sent to the recorded agent, and when: a test that plays a recording through ostler has to do the same.

use crate::recording::{Action, Recording, Run, Text};
use serde_json::Value;

/// An action of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cue {
    /// How many lines the agent had printed before it.
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
    /// What was sent to this process, in order.
    #[must_use]
    pub fn cues(&self) -> Vec<Cue> {
        let (mut cues, mut printed, mut message) = (Vec::new(), 0, Vec::new());
        for step in &self.steps {
            match &step.action {
                Action::Reads(text) if self.takes_one_message() => message.extend(text.bytes()),
                Action::Reads(text) => cues.extend(in_line(&text.text).map(|told| Cue { printed, told })),
                Action::InputEnds if self.takes_one_message() => {
                    let text = String::from_utf8_lossy(&std::mem::take(&mut message)).into_owned();
                    cues.push(Cue { printed, told: Told::Message(text) });
                }
                Action::Interrupted => cues.push(Cue { printed, told: Told::Interrupt }),
                Action::Prints(_) => printed += 1,
                Action::InputEnds | Action::PrintsError(_) | Action::Saves(_) | Action::Ends(_) => {}
            }
        }
        cues
    }

    /// Only the messages.
    #[must_use]
    pub fn messages(&self) -> Vec<String> {
        let messages = self.cues().into_iter().filter_map(|cue| match cue.told {
            Told::Message(text) => Some(text),
            Told::Answer { .. } | Told::Interrupt => None,
        });
        messages.collect()
    }

    /// Whether its input is the message itself; other agents read lines, of which many can come.
    #[must_use]
    pub fn takes_one_message(&self) -> bool {
        self.steps.iter().any(|step| matches!(&step.action, Action::Reads(Text { whole: false, .. })))
    }
}

impl Recording {
    /// Whether a person interrupts a turn in it: then the player waits for the interrupt.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.runs.iter().flat_map(Run::cues).any(|cue| cue.told == Told::Interrupt)
    }

    /// The messages that are sent without a resume of the conversation: all messages of an agent with one process per
    /// message, else those to its first process.
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
