//! Text of an agent made safe for a buffer of cells: no escape sequence, no control character, nothing that reverses
//! the direction of the following text, nothing without width that could hide something.

use ostler_screen::{printable, printable_lines, printable_text};

/// What a tab is shown as.
const TAB: &str = "    ";

/// Many lines of a message. A carriage return is a line break.
#[must_use]
pub fn clean(text: &str) -> String {
    without_hidden(&printable_text(&with_tabs(text)))
}

/// Many lines that a program printed. A carriage return starts the line again, as progress bars do it.
#[must_use]
pub fn clean_output(text: &str) -> String {
    without_hidden(&printable_lines(&with_tabs(text)))
}

fn with_tabs(text: &str) -> String {
    if text.contains('\t') { text.replace('\t', TAB) } else { text.to_owned() }
}

/// One line; line breaks become spaces.
#[must_use]
pub fn clean_line(text: &str) -> String {
    without_hidden(&printable(text))
}

fn without_hidden(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    text.chars().filter_map(shown).collect()
}

/// A space of any width is a space. Characters without width are left out, except those that join the parts of a
/// character.
fn shown(character: char) -> Option<char> {
    match character {
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' => {
            Some(' ')
        }
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => None,
        other => Some(other),
    }
}

/// Paths below the folder in which the session works are shown relative to it.
#[must_use]
pub fn relative(text: &str, folder: &str) -> String {
    let folder = folder.trim_end_matches('/');
    if folder.is_empty() || !text.contains(folder) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find(folder) {
        let (before, found) = rest.split_at(place);
        let after = &found[folder.len()..];
        shown.push_str(before);
        let begins = !before.chars().next_back().is_some_and(|c| c.is_alphanumeric() || "/._-~".contains(c));
        match after.strip_prefix('/') {
            Some(below) if begins => {
                // The folder itself, written with a slash at its end.
                if !below.starts_with(|c: char| !c.is_whitespace() && !"\"';:,)".contains(c)) {
                    shown.push_str("./");
                }
                rest = below;
            }
            Some(_) | None => {
                shown.push_str(folder);
                rest = after;
            }
        }
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_would_act_on_the_terminal_or_hide_is_gone() {
        assert_eq!(clean("a\x1b[31mb\x1b]0;t\x07c\tx\r\ny"), "abc    x\ny");
        assert_eq!(clean("l\u{200b}s\u{200f} \u{feff}-l\u{a0}x"), "ls -l x");
        assert_eq!(clean_line("one\ntwo"), "one two");
        assert_eq!(clean("one\rtwo"), "one\ntwo");
        assert_eq!(clean_output("10%\r20%"), "20%");
        assert_eq!(clean("👨‍👩‍👧 é e\u{301}"), "👨‍👩‍👧 é e\u{301}");
    }

    #[test]
    fn paths_are_shown_from_the_folder() {
        assert_eq!(relative("/w/p/src/x.rs", "/w/p"), "src/x.rs");
        assert_eq!(relative("cat /w/p/a '/w/p/b' /w/pp/c /x/w/p/d", "/w/p/"), "cat a 'b' /w/pp/c /x/w/p/d");
        assert_eq!(relative("ls /w/p/ && cd /w/p", "/w/p"), "ls ./ && cd /w/p");
        assert_eq!(relative("/etc/x", "/"), "/etc/x");
    }

    proptest! {
        #[test]
        fn no_control_character_passes(text in any::<String>()) {
            prop_assert!(clean(&text).split('\n').all(|line| !line.chars().any(char::is_control)));
            prop_assert!(clean_output(&text).split('\n').all(|line| !line.chars().any(char::is_control)));
            prop_assert!(!clean_line(&text).chars().any(char::is_control));
        }
    }
}
