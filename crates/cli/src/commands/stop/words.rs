//! One line about how a session ended: that it did, how its last turn went, and whether that is saved.

use ostler_core::outcome::{Kind, Outcome, Saved, Source};

/// How a session ended that `stop` has stopped.
pub fn ended(outcome: &Outcome) -> String {
    if !by_request(outcome) {
        return format!("ended by itself: {}{} ({})", outcome.kind.word(), and_saved(outcome.saved), outcome.cause);
    }
    let turn = match (outcome.kind, outcome.saved) {
        (Kind::Stopped, Saved::NotApplicable) => String::new(),
        // Where the turns of an agent cannot be seen, it is also unknown whether a turn was running.
        (Kind::Stopped, Saved::Verified) if outcome.source != Source::Agent => "; its conversation is saved".to_owned(),
        (Kind::Stopped, Saved::Unverified) if outcome.source != Source::Agent => {
            "; it is not proven that its conversation is saved".to_owned()
        }
        (Kind::Stopped, Saved::Verified) => "; the running turn was interrupted, and what it said is saved".to_owned(),
        (Kind::Stopped, Saved::Unverified) => {
            "; the running turn was interrupted, and it is not proven that what it said is saved".to_owned()
        }
        (kind @ (Kind::Succeeded | Kind::Failed | Kind::Lost), saved) => {
            format!("; last turn {}{}", kind.word(), and_saved(saved))
        }
        (Kind::Interrupted, saved) => format!("; last turn was interrupted{}", and_saved(saved)),
    };
    format!("stopped{turn}{}", remarks(&outcome.cause))
}

/// How a session ended that had ended before the request.
pub fn had_ended(outcome: &Outcome) -> String {
    match by_request(outcome) {
        true => format!("had already been {}", ended(outcome)),
        false => format!("had already ended: {}{} ({})", outcome.kind.word(), and_saved(outcome.saved), outcome.cause),
    }
}

fn by_request(outcome: &Outcome) -> bool {
    outcome.kind == Kind::Stopped || outcome.cause.starts_with("stopped by ")
}

fn and_saved(saved: Saved) -> &'static str {
    match saved {
        Saved::Verified => " and is saved",
        Saved::Unverified => ", but it is not proven saved",
        Saved::NotApplicable => "",
    }
}

/// What a cause says in addition to who stopped the session: that it had to be killed, or that a limit was reached.
fn remarks(cause: &str) -> String {
    cause.split_once("; ").map(|(_, rest)| format!("; {rest}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(kind: Kind, saved: Saved, cause: &str) -> Outcome {
        Outcome {
            kind,
            source: Source::Agent,
            exit_code: None,
            signal: None,
            saved,
            cause: cause.to_owned(),
            text: None,
            tokens: None,
            cost_usd: None,
            turns: 1,
            duration_ms: None,
            left: Vec::new(),
            closing: None,
        }
    }

    #[test]
    fn every_end_is_one_plain_line() {
        let by_ann = "stopped by ann (pid 3): stop";
        let killed = "stopped by ann (pid 3): stop; killed at the end of the grace period";
        let ends = [
            (Kind::Succeeded, Saved::Verified, by_ann),
            (Kind::Succeeded, Saved::Unverified, by_ann),
            (Kind::Failed, Saved::Verified, by_ann),
            (Kind::Interrupted, Saved::Verified, by_ann),
            (Kind::Stopped, Saved::Verified, by_ann),
            (Kind::Stopped, Saved::Unverified, killed),
            (Kind::Stopped, Saved::NotApplicable, by_ann),
            (Kind::Stopped, Saved::NotApplicable, killed),
            (Kind::Succeeded, Saved::NotApplicable, "the program exited with 0"),
            (Kind::Lost, Saved::NotApplicable, "the program is gone; how it ended is unknown"),
        ];
        let mut lines: Vec<String> = ends.map(|(kind, saved, cause)| ended(&outcome(kind, saved, cause))).into();
        for saved in [Saved::Verified, Saved::Unverified] {
            let unseen = Outcome { source: Source::Ostler, ..outcome(Kind::Stopped, saved, by_ann) };
            lines.push(ended(&unseen));
        }
        lines.extend([by_ann].map(|cause| had_ended(&outcome(Kind::Succeeded, Saved::Verified, cause))));
        lines.push(had_ended(&outcome(Kind::Stopped, Saved::NotApplicable, by_ann)));
        lines.push(had_ended(&outcome(Kind::Failed, Saved::NotApplicable, "the program exited with 1")));
        insta::assert_snapshot!(lines.join("\n"));
    }
}
