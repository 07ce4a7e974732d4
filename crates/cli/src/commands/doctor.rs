//! `ostler doctor`: looks for what is wrong or soon will be, and says for each what to do about it. It changes nothing,
//! unless `--fix` asks for what is safe to fix.

use crate::args::Doctor;
use crate::context::Context;
use crate::exit::{Code, Result};
use crate::say;
use crate::ui::style::Style;
use ostler_core::limits::counted;
use ostler_engine::doctor::{Finding, Level, fix};

pub fn run(context: &Context, args: &Doctor) -> Result<Code> {
    let findings = context.engine.doctor()?;
    let findings = if args.fix { fix(&context.engine, findings) } else { findings };
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
            Level::Fixed => style.green("+"),
        };
        text.push_str(&format!("{mark} {}", ostler_screen::printable(&finding.what)));
        if let Some(remedy) = &finding.remedy {
            text.push_str(&format!("; {}", style.bold(&ostler_screen::printable(remedy))));
        }
        text.push('\n');
    }
    let needed = findings.iter().filter(|finding| finding.level == Level::Problem).count();
    let fixable = findings.iter().filter(|finding| finding.fix.is_some()).count() as u64;
    let fix = style.bold("ostler doctor --fix");
    text.push_str(&match (needed, fixable) {
        (0, 0) => "No action needed.\n".to_owned(),
        // Only notes, which are harmless.
        (0, some) => {
            format!("No problem found; {} can be removed: {fix}\n", counted(some, "leftover", "leftovers"))
        }
        (1, _) => "1 problem needs attention.\n".to_owned(),
        (more, _) => format!("{more} problems need attention.\n"),
    });
    if needed > 0 && fixable > 0 {
        text.push_str(&format!("{} can be fixed: {fix}\n", counted(fixable, "finding", "findings")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_engine::doctor::Fix;

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
        let leftover = Finding::note("a socket", "").fixed_by(Fix::RemoveGroups(Vec::new()));
        let broken = Finding::problem("broken", "fix it").fixed_by(Fix::RemoveGroups(Vec::new()));
        let text = |findings: &[Finding]| as_text(findings, Style { colour: false });
        assert!(text(&[Finding::fine("well")]).ends_with("well\nNo action needed.\n"));
        let only_notes = text(std::slice::from_ref(&leftover));
        assert!(only_notes.ends_with("\nNo problem found; 1 leftover can be removed: ostler doctor --fix\n"));
        let both = text(&[leftover, broken]);
        assert!(both.ends_with("1 problem needs attention.\n2 findings can be fixed: ostler doctor --fix\n"), "{both}");
    }
}
