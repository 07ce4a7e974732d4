//! Why a program ended, from what it printed on its standard error. The reason is often hidden: under a trace, an
//! excerpt of the source, the name of the runtime, or a page of help. Pure: text in, one line out.

/// What is reported when a program printed its help and nothing else.
const ONLY_HELP: &str = "it printed its help and no error; check its arguments";

/// Lines that begin a part of a help text.
const HEADINGS: [&str; 8] =
    ["usage", "options", "commands", "positionals", "arguments", "flags", "examples", "subcommands"];

/// Words that mark a line beside a help text as the reason for it.
const FAILURES: [&str; 12] = [
    "unknown",
    "unexpected",
    "invalid",
    "missing",
    "cannot",
    "can't",
    "could not",
    "required",
    "failed",
    "no such",
    "not ",
    "unrecognized",
];

/// The line that says what went wrong; `None` when there is none. A warning is not a reason.
pub fn complaint(text: &str) -> Option<String> {
    let lines: Vec<&str> =
        text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !begins(line.trim(), "warning")).collect();
    if let Some(last) = lines.iter().rposition(|line| says_error(line.trim())) {
        let place = first_of_burst(&lines, last);
        let line = lines[place].trim();
        // Some programs print only the place, and the error in the next line.
        return Some(match lines.get(place + 1).filter(|_| line.ends_with(':')) {
            Some(next) => format!("{line} {}", next.trim()),
            None => line.to_owned(),
        });
    }
    let is_help = |line: &&str| is_heading(line) || line.trim_start().starts_with('-');
    if lines.iter().any(|line| is_heading(line)) {
        let reason = lines.iter().rfind(|line| !is_help(line) && is_plain(line) && says_failure(line));
        return Some(reason.map_or(ONLY_HELP, |line| line.trim()).to_owned());
    }
    let plain = lines.iter().rfind(|line| is_plain(line));
    plain.or_else(|| lines.iter().rfind(|line| !is_runtime(line))).map(|line| line.trim().to_owned())
}

/// Where the group of error lines begins that ends with this one. The lines after the first are mostly about its
/// consequences: a program prints why it gives up, and the program that started it prints that it did.
fn first_of_burst(lines: &[&str], last: usize) -> usize {
    let complains = |line: &str| says_error(line.trim()) || is_plain(line) && says_failure(line);
    // Traces, and objects that are printed over several lines.
    let belongs = |line: &str| !is_plain(line) || line.starts_with(['}', ']', ')']) || complains(line);
    let before = lines[..last].iter().rev().take_while(|line| belongs(line)).count();
    let burst = last - before;
    lines[burst..last].iter().position(|line| complains(line)).map_or(last, |place| burst + place)
}

fn begins(line: &str, word: &str) -> bool {
    line.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// `error: …`, `Error loading …`, `fatal: …`, `TypeError: …`.
fn says_error(line: &str) -> bool {
    let first = line.split([':', ' ']).next().unwrap_or_default();
    let named = line.contains(':') && (first.ends_with("Error") || first.ends_with("Exception"));
    named || ["error", "fatal", "panic"].iter().any(|word| begins(line, word))
}

fn says_failure(line: &str) -> bool {
    let line = line.to_lowercase();
    FAILURES.iter().any(|word| line.contains(word))
}

fn is_heading(line: &str) -> bool {
    let first = line.split_once(':').map(|(first, _)| first.to_lowercase());
    first.is_some_and(|first| HEADINGS.contains(&first.as_str()))
}

/// Neither a part of a list or a trace, which are indented, nor the name of the runtime.
fn is_plain(line: &str) -> bool {
    !line.starts_with(char::is_whitespace) && !is_runtime(line)
}

/// The last line of a crash under Bun or Node.
fn is_runtime(line: &str) -> bool {
    ["Bun v", "Node.js v"].iter().any(|word| line.trim().starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(text: &str) -> Option<String> {
        complaint(text)
    }

    #[test]
    fn a_complaint_is_the_line_that_says_so_and_no_warning() {
        let traced = "WARNING: PATH\nError: too large\n\nStack backtrace:\n   0: <unknown>\n";
        assert_eq!(reason(traced).as_deref(), Some("Error: too large"));
        assert_eq!(reason("usage: x\nno such option\nwarning: old\n").as_deref(), Some("no such option"));
        assert_eq!(reason("WARNING: PATH\n"), None);
        assert_eq!(reason("é\n").as_deref(), Some("é"));
    }

    #[test]
    fn of_several_complaints_in_a_row_the_first_is_the_reason() {
        let wrapped = "starting\n--skip-permissions cannot be used with root privileges\nError handling request {\n  id: 1,\n\
                       } { code: -32000 }\nError: the process exited with code 1\n    at main (a.js:1)\n";
        assert_eq!(reason(wrapped).as_deref(), Some("--skip-permissions cannot be used with root privileges"));
        let two = "Error: no key\nError: giving up\n";
        assert_eq!(reason(two).as_deref(), Some("Error: no key"));
        let earlier = "error: no update server\nworking\nfatal: disk full\n";
        assert_eq!(reason(earlier).as_deref(), Some("fatal: disk full"), "what it lived through is not the reason");
    }

    #[test]
    fn neither_help_nor_a_trace_nor_the_name_of_the_runtime_is_a_reason() {
        let gemini = "Unknown arguments: such-flag\nUsage: gemini [options]\n\nGemini CLI - Defaults to interactive\n\n\
                      Options:\n  -d, --debug  Run in debug mode  [boolean]\n  -h, --help  Show help\n";
        assert_eq!(reason(gemini).as_deref(), Some("Unknown arguments: such-flag"));
        let opencode = "opencode run [message..]\n\nrun opencode with a message\n\nOptions:\n  -h, --help  show help\n";
        assert_eq!(reason(opencode).as_deref(), Some(ONLY_HELP));
        let bun =
            "12 | throw x\n        ^\nTypeError: x is not a function\n      at main (a.js:1)\n\nBun v1.3.14 (Linux)\n";
        assert_eq!(reason(bun).as_deref(), Some("TypeError: x is not a function"));
        assert_eq!(reason("it broke\n    at main\nNode.js v22.1.0\n").as_deref(), Some("it broke"));
        assert_eq!(reason("Bun v1.3.14 (Linux)\n"), None);
    }

    #[test]
    fn an_error_that_ends_with_a_colon_goes_on_in_the_next_line() {
        let codex = "Error loading config.toml:\n/home/a/config.toml:13:6: unclosed array\n   |\n13 | x = [\n";
        assert_eq!(
            reason(codex).as_deref(),
            Some("Error loading config.toml: /home/a/config.toml:13:6: unclosed array")
        );
    }
}
