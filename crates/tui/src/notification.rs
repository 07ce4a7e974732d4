//! A notification by the terminal itself, which shows it as a desktop notification, also over ssh, or marks its tab.
//!
//! There are three sequences for this. Some terminals know several of them and would show several notifications. So one
//! sequence is chosen by what the terminal says about itself; the bell rings in any case. A terminal that does not know
//! a sequence ignores it.

use crate::{clean, cut};

/// At most this many columns of each part are shown.
const COLUMNS: usize = 200;

/// The bytes of a notification. `variable`: looks up a variable of the environment.
#[must_use]
pub fn sequence(title: &str, text: &str, variable: &dyn Fn(&str) -> Option<String>) -> String {
    // A semicolon ends a field, and a number before the first one would be a command.
    let field = |text: &str| cut(&clean::clean_line(text), COLUMNS).replace(';', ",");
    let (title, text) = (field(title), field(text));
    let is = |name: &str, value: &str| variable(name).is_some_and(|set| set.contains(value));
    let shown = if is("TERM", "kitty") || variable("KITTY_WINDOW_ID").is_some() {
        format!("\x1b]99;i=ostler:d=0;{title}\x1b\\\x1b]99;i=ostler:p=body;{text}\x1b\\")
    } else if ["iTerm.app", "WezTerm", "ghostty"].iter().any(|program| is("TERM_PROGRAM", program))
        || variable("WT_SESSION").is_some()
    {
        format!("\x1b]9;ostler: {title}: {text}\x1b\\")
    } else {
        format!("\x1b]777;notify;{title};{text}\x1b\\")
    };
    format!("{shown}\x07")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_terminal(name: &str, value: &str) -> String {
        sequence("tests asks", "Bash: rm -r build; ls", &|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn each_terminal_gets_the_one_sequence_that_it_knows() {
        let usual = "\x1b]777;notify;tests asks;Bash: rm -r build, ls\x1b\\\x07";
        assert_eq!(in_terminal("TERM", "xterm-256color"), usual);
        let kitty = "\x1b]99;i=ostler:d=0;tests asks\x1b\\\x1b]99;i=ostler:p=body;Bash: rm -r build, ls\x1b\\\x07";
        assert_eq!(in_terminal("TERM", "xterm-kitty"), kitty);
        let iterm = "\x1b]9;ostler: tests asks: Bash: rm -r build, ls\x1b\\\x07";
        assert_eq!(in_terminal("TERM_PROGRAM", "iTerm.app"), iterm);
    }

    #[test]
    fn words_of_an_agent_end_no_sequence_and_are_no_command() {
        let bytes = sequence("4;1;50\x1b\\\x1b]52;c;eA==\x07", "a\nb\x07\x1b[2J\u{9c}c", &|_| None);
        let inside = bytes.strip_prefix("\x1b]777;notify;").and_then(|rest| rest.strip_suffix("\x1b\\\x07"));
        let inside = inside.unwrap_or_default();
        assert!(!inside.is_empty() && inside.chars().all(|c| !c.is_control()), "{bytes:?}");
        assert_eq!(inside.matches(';').count(), 1, "{bytes:?}");
    }
}
