//! What the demo agent does with an ordinary prompt: some ten seconds of real work on its scratch project. It checks
//! how far that project is, so a second prompt (or a resumed conversation) continues where the first one stopped.

use std::io;

use crate::face::Ending;
use crate::leave::Cut;
use crate::scratch::{FIX, ONE_MORE_CHECK, Progress, Scratch};
use crate::script::answer;
use crate::turn::{Edited, Turn};

const TEST_COMMAND: &str = "sh test.sh";

pub fn play(turn: &mut Turn<'_>, prompt: &str) -> Result<Ending, Cut> {
    let traits = turn.traits();
    let found = Scratch::open(&traits.home, traits.session).and_then(|scratch| Ok((scratch.progress()?, scratch)));
    match found {
        Ok((Progress::Broken, scratch)) => repair(turn, &scratch, prompt),
        Ok((Progress::Repaired, scratch)) => add_a_check(turn, &scratch, prompt),
        Ok((Progress::WellTested, scratch)) => look_again(turn, &scratch, prompt),
        Err(error) => give_up(turn, &error),
    }
}

fn repair(turn: &mut Turn<'_>, scratch: &Scratch, prompt: &str) -> Result<Ending, Cut> {
    turn.think()?;
    turn.say(&format!(
        "{}I am the demo agent: no model, but real tools. I have a small project with a bug in {}. First I run its test.",
        remembered(turn.turns_before()),
        scratch.folder.display()
    ))?;
    turn.bash(&scratch.folder, TEST_COMMAND, "Run the test")?;

    turn.think()?;
    turn.say("It fails: the name is missing in the greeting. I look at the program.")?;
    turn.read(&scratch.program())?;

    turn.think()?;
    turn.say("The variable is misspelt, `$nmae` for `$name`. I fix it.")?;
    match turn.edit(&scratch.program(), FIX.old, FIX.new)? {
        Edited::Done => {}
        Edited::Denied { reason } => return stay_out(turn, &reason),
        Edited::Failed { why } => return answer(turn, &format!("I could not change the file: {why}")),
    }

    turn.think()?;
    let passed = turn.bash(&scratch.folder, TEST_COMMAND, "Run the test again")?;
    answer(
        turn,
        &format!(
            "{} You asked for “{}”. What I did instead was small but real: I changed one line of {}. Look for yourself.",
            verdict(passed.is_error),
            gist(prompt),
            scratch.program().display()
        ),
    )
}

fn add_a_check(turn: &mut Turn<'_>, scratch: &Scratch, prompt: &str) -> Result<Ending, Cut> {
    turn.think()?;
    turn.say(&format!(
        "{}The bug is fixed. I add a check with a longer name and run the test.",
        remembered(turn.turns_before())
    ))?;
    match turn.edit(&scratch.test(), ONE_MORE_CHECK.old, ONE_MORE_CHECK.new)? {
        Edited::Done => {}
        Edited::Denied { reason } => return stay_out(turn, &reason),
        Edited::Failed { why } => return answer(turn, &format!("I could not change the file: {why}")),
    }
    turn.think()?;
    let passed = turn.bash(&scratch.folder, TEST_COMMAND, "Run the test with the new check")?;
    answer(
        turn,
        &format!(
            "{} You asked for “{}”; I added one check to {}.",
            verdict(passed.is_error),
            gist(prompt),
            scratch.test().display()
        ),
    )
}

fn look_again(turn: &mut Turn<'_>, scratch: &Scratch, prompt: &str) -> Result<Ending, Cut> {
    turn.think()?;
    turn.say(&format!(
        "{}Program and test are as I left them. I run the test once more.",
        remembered(turn.turns_before())
    ))?;
    let passed = turn.bash(&scratch.folder, TEST_COMMAND, "Run the test")?;
    answer(
        turn,
        &format!("{} You asked for “{}”; there was nothing left to change.", verdict(passed.is_error), gist(prompt)),
    )
}

fn stay_out(turn: &mut Turn<'_>, reason: &str) -> Result<Ending, Cut> {
    answer(turn, &format!("You said no ({reason}), so I changed nothing. The test still waits; ask me again any time."))
}

fn give_up(turn: &mut Turn<'_>, error: &io::Error) -> Result<Ending, Cut> {
    turn.think()?;
    let text = format!("I cannot use my scratch folder: {error}");
    turn.say(&text)?;
    Ok(Ending::Failed { text, api_status: None })
}

fn verdict(failed: bool) -> &'static str {
    if failed { "The test fails." } else { "The test passes." }
}

fn remembered(turns_before: usize) -> String {
    match turns_before {
        0 => String::new(),
        1 => "I remember one turn before this. ".to_owned(),
        turns => format!("I remember {turns} turns before this. "),
    }
}

/// The beginning of a prompt, short enough to quote.
pub fn gist(prompt: &str) -> String {
    const LONGEST: usize = 60;
    // Only the beginning is looked at: a prompt may be megabytes long.
    let mut characters = prompt.trim_start().chars();
    let beginning: String = characters.by_ref().take(4 * LONGEST).collect();
    let words: Vec<&str> = beginning.split_whitespace().collect();
    let text: String = words.join(" ").chars().filter(|character| !character.is_control()).collect();
    match text.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", text[..cut].trim_end()),
        None if characters.next().is_some() => format!("{text}…"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_quoted_in_one_short_line() {
        assert_eq!(gist("  fix the\n\n login bug "), "fix the login bug");
        assert_eq!(gist(&"word ".repeat(1000)), format!("{}…", "word ".repeat(12).trim_end()));
        assert_eq!(gist("red \u{1b}[31malert"), "red [31malert");
        assert_eq!(gist(""), "");
    }
}
