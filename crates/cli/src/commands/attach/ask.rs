//! A question of the agent, shown to the person. The line that answers a permission begins with `y` or `n`; text after
//! a no is sent with it. A question for text is answered with text. Where the agent proposes to allow more than this
//! once, `a` accepts that proposal. A single key never allows anything: it might have been meant for something else.

use crate::exit::Result;
use crate::ui::style::Style;
use ostler_core::fact::Ask;
use ostler_core::record::RequestKind;
use ostler_core::view::View;
use ostler_core::visible::visible;
use ostler_engine::request::{self, Answered};
use ostler_engine::session_watch::SessionWatch;
use ostler_engine::{Engine, Place};
use ostler_tui::terminal::{Lines, Signal, Signals};
use std::io::Write;
use std::os::fd::AsFd;

/// What a person answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub allow: bool,
    pub always: bool,
    pub text: Option<String>,
}

impl Answer {
    /// The answer that a line gives to this question; `None`: the line is not an answer. A question for text accepts
    /// any text, and `n` alone as a no.
    pub fn to(ask: &Ask, line: &str) -> Option<Answer> {
        let line = line.trim();
        if ask.questions().is_empty() || matches!(line, "n" | "no") {
            // A yes to a permission takes no text.
            return Answer::parse(line).filter(|answer| !answer.allow || answer.text.is_none());
        }
        (!line.is_empty()).then(|| Answer { allow: true, always: false, text: Some(line.to_owned()) })
    }

    /// Whether a line was meant as an answer to this question, even if it is not a valid answer: `y please` has a word
    /// too many.
    pub fn is_meant_for(ask: &Ask, line: &str) -> bool {
        Answer::to(ask, line).is_some() || Answer::parse(line).is_some()
    }

    fn parse(line: &str) -> Option<Answer> {
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let (allow, always) = match word.trim_end_matches(',').to_lowercase().as_str() {
            "y" | "yes" => (true, false),
            // Only alone: "a …" may be the beginning of a sentence.
            "a" | "always" if rest.is_empty() => (true, true),
            "n" | "no" => (false, false),
            _ => return None,
        };
        Some(Answer { allow, always, text: (!rest.is_empty()).then(|| rest.to_owned()) })
    }

    /// The request names the question that is answered, so that the answer never goes to the next question.
    pub fn kind(self, request: &str) -> RequestKind {
        RequestKind::Answer {
            request: Some(request.to_owned()),
            allow: self.allow,
            always: self.always,
            text: self.text,
        }
    }
}

/// The result of asking a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inline {
    Answered(Answer),
    /// The question was answered elsewhere, or the session goes on without an answer.
    Settled,
    /// The answer was refused, and the person was told why.
    Refused,
    /// A signal has arrived. It is not consumed: the caller reads it.
    Called,
}

/// Asks the person what the session asks, and passes the answer on. Returns without an answer when the question is
/// answered elsewhere, when the session goes on without an answer, or when a signal arrives. The signal is not
/// consumed: the caller reads it.
pub fn ask_inline(engine: &Engine, place: &Place, view: &View, style: Style) -> Result<Inline> {
    let Some(ask) = &view.asking else {
        return Ok(Inline::Settled);
    };
    let signals = Signals::take(&Signal::LEAVING)?;
    let mut watch = SessionWatch::new(place)?;
    // What was typed before the question was shown is not an answer to it.
    let mut typed = Lines::from_now();
    let longer = longer(view);
    prompt(style, ask, longer.as_deref());
    loop {
        let now = engine.view(place)?;
        if now.ended || now.asking.as_ref().map(|asked| &asked.request) != Some(&ask.request) {
            end_line();
            return Ok(Inline::Settled);
        }
        let others = [Some(signals.as_fd()), typed.fd()];
        let (_, ready) = watch.wait(&others.into_iter().flatten().collect::<Vec<_>>())?;
        match ready[..] {
            [true, ..] => {
                end_line();
                return Ok(Inline::Called);
            }
            [_, true] => {
                let Some(line) = typed.read()? else { continue };
                let Some(answer) = Answer::to(ask, &line) else {
                    prompt(style, ask, longer.as_deref());
                    continue;
                };
                return Ok(match request::make(engine, place, answer.clone().kind(&ask.request))? {
                    Answered::Accepted => Inline::Answered(answer),
                    Answered::Ended(_) => Inline::Settled,
                    Answered::Refused(why) => {
                        say(&format!("ostler: {}\n", ostler_screen::printable(&why)));
                        Inline::Refused
                    }
                });
            }
            _ => {}
        }
    }
}

/// What the agent proposes to allow for the rest of the run, in words.
pub fn longer(view: &View) -> Option<String> {
    Engine::proposal(view)
}

fn prompt(style: Style, ask: &Ask, longer: Option<&str>) {
    if !ask.questions().is_empty() {
        return say(&format!("{} ", style.bold("your answer (n: none)?")));
    }
    let choice = match longer {
        Some(longer) => format!("[y/n, n REASON to say why, a: always {}]", visible(longer)),
        None => "[y/n, n REASON to say why]".to_owned(),
    };
    say(&format!("{} {choice} ", style.bold("allow?")));
}

fn end_line() {
    say("\n");
}

/// Errors are ignored: the person may be gone.
fn say(text: &str) {
    let mut error = std::io::stderr().lock();
    let _ = error.write_all(text.as_bytes()).and_then(|()| error.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_word_is_an_answer() {
        let answer = |allow, text: Option<&str>| Some(Answer { allow, always: false, text: text.map(str::to_owned) });
        assert_eq!(Answer::parse("y"), answer(true, None));
        assert_eq!(Answer::parse(" Yes \n"), answer(true, None));
        assert_eq!(Answer::parse("n use the other folder"), answer(false, Some("use the other folder")));
        assert_eq!(Answer::parse("no, later"), answer(false, Some("later")));
        for always in ["a", " Always\n"] {
            assert_eq!(Answer::parse(always), Some(Answer { allow: true, always: true, text: None }), "{always}");
        }
        for other in ["", "a file of mine", "yesterday", "not now", "maybe y"] {
            assert_eq!(Answer::parse(other), None, "{other}");
        }
    }
}
