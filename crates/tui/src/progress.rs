//! Tells the terminal that something is in progress (OSC 9;4): it shows that in its tab or in the task bar.
//!
//! Terminals that do not know the sequence may show a notification with these numbers instead. So it is sent only to
//! terminals that are known to understand it, from the version on that does. Inside a multiplexer the variables are
//! those of another terminal.

/// Something is in progress; for how long is not known.
pub const WORKS: &str = "\x1b]9;4;3;0\x1b\\";
/// Nothing is in progress any more.
pub const RESTS: &str = "\x1b]9;4;0;0\x1b\\";

/// Whether the terminal understands the sequence, by the variables that it sets.
#[must_use]
pub fn is_understood(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    if is_set("TMUX") || is_set("STY") || is_set("ZELLIJ") {
        return false;
    }
    let version = variable("TERM_PROGRAM_VERSION").unwrap_or_default();
    let since = |first: &[u32]| numbers(&version).as_slice() >= first;
    match variable("TERM_PROGRAM").as_deref() {
        Some("ghostty") => since(&[1, 2]),
        Some("iTerm.app") => since(&[3, 6, 6]),
        // The date of its build.
        Some("WezTerm") => since(&[20_250_301]),
        Some(_) | None => {
            let vte = variable("VTE_VERSION").and_then(|version| version.parse::<u32>().ok());
            is_set("WT_SESSION")
                || variable("ConEmuANSI").as_deref() == Some("ON")
                || vte.is_some_and(|version| version >= 8000)
        }
    }
}

/// `1.2.3-dev` → 1, 2, 3; `20250301-1234-abc` → 20250301.
fn numbers(version: &str) -> Vec<u32> {
    let digits = version.split('-').next().unwrap_or_default();
    digits.split('.').map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn understood(variables: &[(&str, &str)]) -> bool {
        is_understood(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn only_terminals_that_are_known_to_understand_it_are_told() {
        let program = |name, version| understood(&[("TERM_PROGRAM", name), ("TERM_PROGRAM_VERSION", version)]);
        assert!(program("ghostty", "1.2.0") && program("ghostty", "1.10") && !program("ghostty", "1.1.3"));
        assert!(program("iTerm.app", "3.6.6") && !program("iTerm.app", "3.5.14"));
        assert!(program("WezTerm", "20260117-1-abc") && !program("WezTerm", "20240203-110809-5046fc22"));
        assert!(!program("Apple_Terminal", "453") && !program("vscode", "1.99"));
        assert!(understood(&[("WT_SESSION", "x")]) && understood(&[("VTE_VERSION", "8002")]));
        assert!(!understood(&[("VTE_VERSION", "7600")]) && !understood(&[("TERM", "xterm-256color")]));
        // The variable comes from the terminal in which the multiplexer was started.
        assert!(!understood(&[("WT_SESSION", "x"), ("TMUX", "/tmp/tmux-0/default,1,0")]));
    }
}
