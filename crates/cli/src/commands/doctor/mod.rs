//! `ostler doctor`: looks for what is wrong or soon will be, and says for each what to do about it. It changes nothing,
//! unless `--fix` asks for what is safe to mend.
//!
//! One check per file, each a function from what it looks at to findings; where a check reads the machine's own files,
//! their root is an argument, so that tests can show it another machine.

mod agents;
mod config;
mod containment;
mod foreign;
mod helpers;
mod home;
mod kernel;
mod limits;
mod logout;
mod mending;
mod sessions;
mod strays;
mod tools;

use crate::args::Doctor;
use crate::context::{Context, variable};
use crate::exit::{Code, Result};
use crate::say;
use crate::ui::style::Style;
use mending::Fix;
use ostler_core::limits::counted;
use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Level {
    Fine,
    /// Worth knowing; nothing has to be done.
    Note,
    /// A person has to do something.
    Problem,
    /// Was one of these until now.
    Mended,
}

/// One thing that a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    level: Level,
    what: String,
    /// A command, where one helps.
    #[serde(rename = "do")]
    remedy: Option<String>,
    /// How `--fix` mends it.
    #[serde(skip)]
    fix: Option<Fix>,
}

impl Finding {
    fn fine(what: impl Into<String>) -> Finding {
        Finding { level: Level::Fine, what: what.into(), remedy: None, fix: None }
    }

    fn note(what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        let remedy = Some(remedy.into()).filter(|text| !text.is_empty());
        Finding { level: Level::Note, what: what.into(), remedy, fix: None }
    }

    fn problem(what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { level: Level::Problem, what: what.into(), remedy: Some(remedy.into()), fix: None }
    }

    fn mended_by(self, fix: Fix) -> Finding {
        Finding { fix: Some(fix), ..self }
    }
}

pub fn run(context: &Context, args: &Doctor) -> Result<Code> {
    let home = &context.engine.home;
    let mut findings = home::check(home, context.engine.config.min_free_space);
    findings.extend(sessions::check(home)?);
    findings.extend(strays::check(home)?);
    findings.extend(helpers::check(home)?);
    findings.extend(containment::check(home)?);
    findings.extend(kernel::check());
    findings.extend(limits::check());
    findings.extend(logout::check_this_machine());
    findings.extend(agents::check());
    findings.extend(config::check(&variable));
    findings.extend(foreign::check(home)?);
    findings.extend(tools::check(home)?);
    let findings = if args.fix { mending::mend(findings) } else { findings };
    let text = if args.json { as_json(&findings) } else { as_text(&findings, context.style) };
    say::text(&text)?;
    let needed = findings.iter().any(|finding| finding.level == Level::Problem);
    Ok(if needed { Code::Failed } else { Code::Succeeded })
}

/// Findings are plain data and always have a JSON form.
fn as_json(findings: &[Finding]) -> String {
    let lines: Vec<String> =
        findings.iter().map(|finding| serde_json::to_string(finding).unwrap_or_default()).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

/// One line for each: mark, what, what to do.
fn as_text(findings: &[Finding], style: Style) -> String {
    let mut text = String::new();
    for finding in findings {
        let mark = match finding.level {
            Level::Fine => style.green("✔"),
            Level::Note => style.dim("·"),
            Level::Problem => style.red("!"),
            Level::Mended => style.green("+"),
        };
        text.push_str(&format!("{mark} {}", ostler_screen::printable(&finding.what)));
        if let Some(remedy) = &finding.remedy {
            text.push_str(&format!("; {}", style.bold(&ostler_screen::printable(remedy))));
        }
        text.push('\n');
    }
    let needed = findings.iter().filter(|finding| finding.level == Level::Problem).count();
    let mendable = findings.iter().filter(|finding| finding.fix.is_some()).count() as u64;
    let fix = style.bold("ostler doctor --fix");
    text.push_str(&match (needed, mendable) {
        (0, 0) => "No action needed.\n".to_owned(),
        // Only notes, and those are harmless.
        (0, some) => {
            format!("No problem found; {} can be removed: {fix}\n", counted(some, "leftover", "leftovers"))
        }
        (1, _) => "1 problem needs attention.\n".to_owned(),
        (more, _) => format!("{more} problems need attention.\n"),
    });
    if needed > 0 && mendable > 0 {
        text.push_str(&format!("{} can be fixed: {fix}\n", counted(mendable, "finding", "findings")));
    }
    text
}

/// A path as one word of a shell command.
fn quoted(path: &std::path::Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if text.chars().all(plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_is_one_line_and_carries_no_escape_sequence() {
        let findings = [
            Finding::fine("all\nis well"),
            Finding::note("a\x1b[2Jb", ""),
            Finding::problem("broken", "ostler purge abc"),
        ];
        let text = as_text(&findings, Style { colour: false });
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        assert!(text.ends_with("! broken; ostler purge abc\n1 problem needs attention.\n"), "{text}");
    }

    #[test]
    fn the_last_words_do_not_contradict_each_other() {
        let leftover = Finding::note("a socket", "").mended_by(Fix::RemoveGroups(Vec::new()));
        let broken = Finding::problem("broken", "fix it").mended_by(Fix::RemoveGroups(Vec::new()));
        let text = |findings: &[Finding]| as_text(findings, Style { colour: false });
        assert!(text(&[Finding::fine("well")]).ends_with("well\nNo action needed.\n"));
        let only_notes = text(std::slice::from_ref(&leftover));
        assert!(only_notes.ends_with("\nNo problem found; 1 leftover can be removed: ostler doctor --fix\n"));
        let both = text(&[leftover, broken]);
        assert!(both.ends_with("1 problem needs attention.\n2 findings can be fixed: ostler doctor --fix\n"), "{both}");
    }

    #[test]
    fn a_path_survives_a_shell() {
        assert_eq!(quoted(std::path::Path::new("/a/b-c.d")), "/a/b-c.d");
        assert_eq!(quoted(std::path::Path::new("/a b/it's")), "'/a b/it'\\''s'");
    }
}
