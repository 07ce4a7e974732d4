//! The parts of a turn: text that comes word by word, tools, questions, pauses. Stories and scripts are sequences of
//! these. This file makes sure that they can be cut off at any point.

use std::path::Path;
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::agent::{Agent, Traits};
use crate::face::{Block, Content, Ending, Prompt, Question, Report, Scene, ToolCall, Usage, Verdict};
use crate::leave::{Cut, LastTurn, Leave};
use crate::script;
use crate::tools::{self, Given, Running};

/// The pause after a word.
const WORD: Duration = Duration::from_millis(50);
/// The time before an answer of the model begins.
const THOUGHT: Duration = Duration::from_millis(900);
/// The pause before a change to a file, so that people can follow.
const LOOK: Duration = Duration::from_millis(300);
/// A text comes in at most this many pieces.
const MOST_PIECES: usize = 200;

/// Invented prices in millionths of a dollar, so that the cost grows as with a real model.
const PRICE_OF_INPUT_TOKEN: u64 = 1;
const PRICE_OF_OUTPUT_TOKEN: u64 = 5;

/// Plays the whole turn for a prompt.
pub fn play(agent: &mut Agent, prompt: &Prompt) -> Result<LastTurn, Leave> {
    let started = Instant::now();
    agent.begin_turn(prompt)?;
    let mut turn = Turn::new(agent, &prompt.text);
    let ending = match script::play(&mut turn, &prompt.text) {
        Ok(ending) => ending,
        Err(Cut::Interrupted) => {
            turn.agent.tell(Content::Interruption)?;
            Ending::Interrupted
        }
        Err(Cut::Leave(leave)) => return Err(leave),
    };
    let last_turn = match ending {
        Ending::Failed { .. } | Ending::Limited { .. } => LastTurn::Failed,
        Ending::Done { .. } | Ending::Interrupted => LastTurn::WithoutError,
    };
    let Turn { agent, rounds, usage, denied, .. } = turn;
    let total_cost_usd = agent.spent_micro_usd as f64 / 1e6;
    agent.end_turn();
    agent.show(Scene::TurnEnds(&Report {
        ending,
        duration: started.elapsed(),
        rounds,
        usage,
        total_cost_usd,
        denied,
    }))?;
    Ok(last_turn)
}

/// A running turn.
pub struct Turn<'a> {
    agent: &'a mut Agent,
    /// The id of the model's current answer.
    answer_id: String,
    rounds: u64,
    /// The usage of the whole turn.
    usage: Usage,
    /// The tokens that the model would read before its next answer.
    context_tokens: u64,
    denied: Vec<Question>,
}

/// The result of an edit.
pub enum Edited {
    Done,
    Denied { reason: String },
    Failed { why: String },
}

impl<'a> Turn<'a> {
    fn new(agent: &'a mut Agent, prompt: &str) -> Turn<'a> {
        Turn {
            agent,
            answer_id: String::new(),
            rounds: 0,
            usage: Usage::default(),
            context_tokens: tokens(prompt),
            denied: Vec::new(),
        }
    }

    pub fn traits(&self) -> &Traits {
        &self.agent.traits
    }

    pub fn turns_before(&self) -> usize {
        self.agent.turns_before()
    }

    /// Begins another answer of the model; text and tool calls up to the next one belong to it.
    pub fn think(&mut self) -> Result<(), Cut> {
        self.rounds += 1;
        self.answer_id = format!("msg_demo_{}", Uuid::new_v4().simple());
        self.usage.input_tokens += self.context_tokens;
        self.agent.spent_micro_usd += self.context_tokens * PRICE_OF_INPUT_TOKEN;
        self.pause(THOUGHT)
    }

    /// Adds to the cost of the model.
    pub fn spend(&mut self, micro_usd: u64) {
        self.agent.spent_micro_usd = self.agent.spent_micro_usd.saturating_add(micro_usd);
    }

    /// Says `text` word by word. Words that were said before an interruption stay in the conversation.
    pub fn say(&mut self, text: &str) -> Result<(), Cut> {
        let mut said = 0;
        for piece in pieces(text) {
            self.agent.show(Scene::Words(piece))?;
            said += piece.len();
            match self.pause(WORD) {
                Ok(()) => {}
                Err(Cut::Interrupted) => {
                    self.tell(Block::Text(text[..said].to_owned()), tokens(&text[..said]))?;
                    return Err(Cut::Interrupted);
                }
                Err(Cut::Leave(leave)) => return Err(Cut::Leave(leave)),
            }
        }
        self.tell(Block::Text(text.to_owned()), tokens(text))?;
        Ok(())
    }

    /// Says `text` at once, as one block.
    pub fn state(&mut self, text: &str) -> Result<(), Cut> {
        self.tell(Block::Text(text.to_owned()), tokens(text))?;
        self.pause(WORD)
    }

    /// Runs a shell command to its end.
    pub fn bash(&mut self, folder: &Path, command: &str, description: &str) -> Result<Given, Cut> {
        let call = ToolCall::Bash { command: command.to_owned(), description: description.to_owned() };
        let id = self.call(&call)?;
        if self.traits().read_only {
            let given = Given::bad("Only reading is allowed.");
            self.tool_result(id, &given)?;
            return Ok(given);
        }
        let given = match self.run(folder, command) {
            Ok(given) => given,
            Err(Cut::Interrupted) => {
                self.tool_result(id, &Given::bad("Interrupted; the command was killed."))?;
                return Err(Cut::Interrupted);
            }
            Err(Cut::Leave(leave)) => return Err(Cut::Leave(leave)),
        };
        self.tool_result(id, &given)?;
        Ok(given)
    }

    pub fn read(&mut self, file: &Path) -> Result<Given, Cut> {
        let id = self.call(&ToolCall::Read { file: file.to_owned() })?;
        let given = tools::read(file);
        self.tool_result(id, &given)?;
        Ok(given)
    }

    /// Changes a file, if that is allowed.
    pub fn edit(&mut self, file: &Path, old: &str, new: &str) -> Result<Edited, Cut> {
        let call = ToolCall::Edit { file: file.to_owned(), old: old.to_owned(), new: new.to_owned() };
        let id = self.call(&call)?;
        if self.traits().read_only {
            let reason = "Only reading is allowed.".to_owned();
            self.tool_result(id, &Given::bad(reason.clone()))?;
            return Ok(Edited::Denied { reason });
        }
        let verdict = if self.traits().ask { self.ask(&call, &id)? } else { Verdict::Allowed };
        match verdict {
            Verdict::Allowed => {
                self.pause(LOOK)?;
                let given = tools::edit(file, old, new);
                self.tool_result(id, &given)?;
                Ok(if given.is_error { Edited::Failed { why: given.text } } else { Edited::Done })
            }
            Verdict::Denied { reason } => {
                self.tool_result(id, &Given::bad(format!("Permission denied: {reason}")))?;
                Ok(Edited::Denied { reason })
            }
        }
    }

    /// Asks for a permission without doing anything with it.
    pub fn ask_only(&mut self, text: &str) -> Result<Verdict, Cut> {
        let call = ToolCall::Ask { text: text.to_owned() };
        let id = self.call(&call)?;
        let verdict = self.ask(&call, &id)?;
        let given = match &verdict {
            Verdict::Allowed => Given::good("allowed"),
            Verdict::Denied { reason } => Given::bad(format!("Permission denied: {reason}")),
        };
        self.tool_result(id, &given)?;
        Ok(verdict)
    }

    /// A pause for people who watch; ends early when the turn is cut off.
    pub fn pause(&mut self, length: Duration) -> Result<(), Cut> {
        let until = Instant::now() + self.traits().pace.of(length);
        loop {
            self.agent.wait(Some(until), &[])?;
            if self.agent.interrupted() {
                return Err(Cut::Interrupted);
            }
            if Instant::now() >= until {
                return Ok(());
            }
        }
    }

    fn run(&mut self, folder: &Path, command: &str) -> Result<Given, Cut> {
        let mut running = match Running::start(command, folder) {
            Ok(running) => running,
            Err(error) => return Ok(Given::bad(format!("cannot run a shell in {}: {error}", folder.display()))),
        };
        loop {
            match running.go_on() {
                Ok(Some(given)) => return Ok(given),
                Ok(None) => {}
                Err(error) => return Ok(Given::bad(format!("lost sight of the command: {error}"))),
            }
            self.agent.wait(None, &running.watched())?;
            if self.agent.interrupted() {
                return Err(Cut::Interrupted);
            }
        }
    }

    /// Announces a tool call and returns its id.
    fn call(&mut self, call: &ToolCall) -> Result<String, Cut> {
        let id = format!("toolu_demo_{}", Uuid::new_v4().simple());
        self.tell(Block::ToolUse { id: id.clone(), call: call.clone() }, tokens(&call.gist()))?;
        Ok(id)
    }

    fn tool_result(&mut self, tool_use_id: String, given: &Given) -> Result<(), Cut> {
        self.context_tokens += tokens(&given.text);
        let (text, is_error) = (given.text.clone(), given.is_error);
        self.agent.tell(Content::ToolResult { tool_use_id, text, is_error })?;
        Ok(())
    }

    fn ask(&mut self, call: &ToolCall, tool_use_id: &str) -> Result<Verdict, Cut> {
        let question = Question {
            request_id: Uuid::new_v4().to_string(),
            tool_use_id: tool_use_id.to_owned(),
            call: call.clone(),
        };
        match self.agent.ask(&question)? {
            Some(Verdict::Allowed) => Ok(Verdict::Allowed),
            Some(Verdict::Denied { reason }) => {
                self.denied.push(question);
                Ok(Verdict::Denied { reason })
            }
            None => {
                self.tool_result(tool_use_id.to_owned(), &Given::bad("Interrupted before an answer came."))?;
                Err(Cut::Interrupted)
            }
        }
    }

    fn tell(&mut self, block: Block, output_tokens: u64) -> Result<(), Leave> {
        self.usage.output_tokens += output_tokens;
        self.agent.spent_micro_usd += output_tokens * PRICE_OF_OUTPUT_TOKEN;
        let usage = Usage { input_tokens: self.context_tokens, output_tokens };
        self.context_tokens += output_tokens;
        self.agent.tell(Content::Agent { id: self.answer_id.clone(), block, usage })
    }
}

/// An estimate that is good enough: the number is only shown.
fn tokens(text: &str) -> u64 {
    u64::try_from(text.len() / 4 + 1).unwrap_or(u64::MAX)
}

/// `text` cut after white space, into words or, when there are very many, into groups of words.
fn pieces(text: &str) -> Vec<&str> {
    let least = text.len() / MOST_PIECES;
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut end = 0;
    for word in text.split_inclusive(char::is_whitespace) {
        end += word.len();
        if end - start > least {
            pieces.push(&text[start..end]);
            start = end;
        }
    }
    if start < end {
        pieces.push(&text[start..]);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_word_by_word_and_whole() {
        assert_eq!(pieces("I run it.\nThen I look."), ["I ", "run ", "it.\n", "Then ", "I ", "look."]);
        assert!(pieces("").is_empty());
    }

    #[test]
    fn a_long_text_comes_in_few_pieces_and_whole() {
        for text in ["a ".repeat(1_000_000), "é".repeat(1_000_000), "word another\n".repeat(777)] {
            let pieces = pieces(&text);
            assert!(pieces.len() <= MOST_PIECES);
            assert_eq!(pieces.concat(), text);
        }
    }
}
