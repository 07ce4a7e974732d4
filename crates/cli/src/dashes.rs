//! Prompts and messages that begin with a dash, such as a Markdown list: `ostler run AGENT "- fix this"`.
//!
//! For clap every word that begins with "-" is a flag. The rule here: a word that begins with "-" and contains white
//! space is text, except `--flag=some value`. A flag never contains white space, so no flag changes its meaning. For
//! text of one word there is `-p TEXT`.
//!
//! Such a word is marked before clap sees it, with the one character that no argument can contain. The mark is removed
//! after clap has assigned the word.

use crate::args::Cli;
use clap::{Command, CommandFactory};
use std::convert::Infallible;
use std::ffi::OsString;

/// Arguments come from the kernel as strings that end with this, so no argument contains it.
const MARK: char = '\0';

/// The commands that take a prompt or a message.
const COMMANDS: [&str; 5] = ["run", "loop", "send", "resume", "fork"];

/// The command whose words may each begin with a dash: words that must not occur. Its only short flag is the one for
/// help.
const SEARCH: &str = "search";

/// Marks the words that are text. Everything after `--` and the values of options stay as they are.
pub fn mark(arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_some_and(|word| word == SEARCH) {
        return mark_excluded(arguments);
    }
    let takes_text = arguments.get(1).and_then(|word| word.to_str()).filter(|name| COMMANDS.contains(name));
    // Nearly always there is no such word, and then the definitions of the options are not needed.
    let Some(name) = takes_text.filter(|_| arguments.iter().any(|word| word.to_str().is_some_and(is_text))) else {
        return arguments;
    };
    let whole = Cli::command();
    let Some(command) = whole.find_subcommand(name) else {
        return arguments;
    };
    let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    let marked = |(index, word): (usize, &OsString)| match word.to_str().filter(|word| is_text(word)) {
        Some(text) if index < end && !is_value(command, &arguments[index - 1]) => format!("{MARK}{text}").into(),
        Some(_) | None => word.clone(),
    };
    arguments.iter().enumerate().map(marked).collect()
}

/// Marks `-word` and `-"two words"`, which exclude words from a search.
fn mark_excluded(arguments: Vec<OsString>) -> Vec<OsString> {
    let is_word = |text: &str| text.starts_with('-') && !text.starts_with("--") && text != "-h" && text != "-";
    // Nearly always there is no such word, and then the definitions of the options are not needed.
    if !arguments.iter().any(|word| word.to_str().is_some_and(is_word)) {
        return arguments;
    }
    let whole = Cli::command();
    let Some(command) = whole.find_subcommand(SEARCH) else {
        return arguments;
    };
    let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    let marked = |(index, word): (usize, &OsString)| match word.to_str().filter(|text| is_word(text)) {
        Some(text) if index < end && !is_value(command, &arguments[index - 1]) => format!("{MARK}{text}").into(),
        Some(_) | None => word.clone(),
    };
    arguments.iter().enumerate().map(marked).collect()
}

/// A marked word without its mark.
#[expect(clippy::unnecessary_wraps, reason = "clap expects a result")]
pub fn unmarked(word: &str) -> Result<String, Infallible> {
    Ok(word.strip_prefix(MARK).unwrap_or(word).to_owned())
}

/// Whether this is text, although it begins with a dash.
fn is_text(word: &str) -> bool {
    word.starts_with('-') && word.contains(char::is_whitespace) && !is_flag(word)
}

/// Whether this has the form of a flag: `-x`, `--flag`, `--flag=some value`.
pub fn is_flag(word: &str) -> bool {
    let name = match word.strip_prefix("--") {
        Some(long) => long.split('=').next().unwrap_or(long),
        None => match word.strip_prefix('-') {
            Some(short) => short,
            None => return false,
        },
    };
    !name.is_empty() && !name.contains(char::is_whitespace)
}

fn is_value(command: &Command, before: &OsString) -> bool {
    before.to_str().is_some_and(|before| takes_value(command, before))
}

/// Whether the next word is the value of this one.
pub fn takes_value(command: &Command, word: &str) -> bool {
    let option = |matches: &dyn Fn(&clap::Arg) -> bool| {
        command.get_arguments().any(|option| option.get_action().takes_values() && matches(option))
    };
    if let Some(long) = word.strip_prefix("--") {
        return option(&|one| {
            one.get_long() == Some(long) || one.get_all_aliases().is_some_and(|names| names.contains(&long))
        });
    }
    // Of several letters only the last can take a value.
    match word.strip_prefix('-').and_then(|letters| letters.chars().last()) {
        Some(letter) => option(&|one| {
            one.get_short() == Some(letter)
                || one.get_all_short_aliases().is_some_and(|letters| letters.contains(&letter))
        }),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(words: &[&str]) -> Vec<String> {
        let words: Vec<OsString> = ["ostler"].iter().chain(words).map(OsString::from).collect();
        mark(words).into_iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn text_that_begins_with_a_dash_is_marked_and_nothing_else() {
        assert_eq!(marked(&["run", "-d", "claude", "- fix this"]), ["run", "-d", "claude", "\0- fix this"]);
        assert_eq!(marked(&["send", "x", "--now", "-fix\nit"]), ["send", "x", "--now", "\0-fix\nit"]);
        assert_eq!(marked(&["fork", "x", "--- a/file b"]), ["fork", "x", "\0--- a/file b"]);
        for same in [
            &["run", "claude", "-v"][..],
            &["run", "--label=task=fix it", "demo", "x"],
            &["run", "--name", "- x", "demo"],
            &["run", "-dp", "- x", "demo"],
            &["resume", "x", "-m", "- x"],
            &["send", "x", "--prompt", "- x"],
            &["run", "demo", "x", "--", "- y"],
            &["run", "--", "sh", "-c", "- y"],
            &["show", "- y"],
        ] {
            assert_eq!(marked(same), same);
        }
    }

    #[test]
    fn every_word_with_one_dash_is_excluded_from_a_search() {
        let marked = marked(&["search", "a", "-not", "--json", "-h", "-\"x y\""]);
        assert_eq!(marked, ["search", "a", "\0-not", "--json", "-h", "\0-\"x y\""]);
        let values = ["search", "a", "--since", "-5d", "--in", "-folder", "--", "-not"];
        assert_eq!(self::marked(&values), values);
    }

    #[test]
    fn a_mark_is_taken_off_again() {
        assert_eq!(unmarked("\0- x"), Ok("- x".to_owned()));
        assert_eq!(unmarked("x"), Ok("x".to_owned()));
    }
}
