//! The agent gets the caller's environment, without the marks of another agent, and the environment is never written to
//! disk. The agent inherits nothing else from ostler: no descriptor except its own, no signal mask.

use crate::harness;
use std::collections::BTreeSet;

#[test]
fn the_agent_gets_the_callers_environment_and_no_nesting_marks() {
    let mut harness = harness();
    harness.set("SECRET_OF_THE_CALLER", "s3cr3t-value-7f");
    let marks = [
        "CLAUDECODE",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_ENV_FILE",
        "CLAUDE_PROJECT_DIR",
    ];
    for mark in marks {
        harness.set(mark, "x");
    }
    harness.set("CLAUDE_CODE_OAUTH_TOKEN", "kept");
    let seen = harness.root().join("seen");
    let script = format!("env > '{}'; exec sleep 600", seen.display());
    let session = harness.detach(&["--", "sh", "-c", &script]);
    let text = session
        .until("it has looked", || std::fs::read_to_string(&seen).ok().filter(|text| text.contains("OSTLER_SESSION")));
    let lines: BTreeSet<&str> = text.lines().collect();
    assert!(lines.contains("SECRET_OF_THE_CALLER=s3cr3t-value-7f"));
    assert!(lines.contains("CLAUDE_CODE_OAUTH_TOKEN=kept"));
    assert!(lines.contains(format!("OSTLER_SESSION={}", session.id()).as_str()));
    for mark in marks {
        assert!(!lines.iter().any(|line| line.starts_with(&format!("{mark}="))), "{mark} reached the agent");
    }
    let found = harness.command("grep").args(["-r", "-l", "s3cr3t-value-7f"]).arg(harness.home()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "", "on disk");
}

#[test]
fn the_agent_inherits_its_own_three_descriptors_and_its_lock() {
    let harness = harness();
    for terminal in [&[][..], &["-t"]] {
        let script = "for fd in /proc/self/fd/*; do echo \"fd ${fd##*/} $(readlink $fd)\"; done; grep -E 'Sig(Blk|Ign)' /proc/self/status";
        let session = harness.detach(&[terminal, &["--", "bash", "-c", script]].concat());
        harness.run(&["wait", session.id()]).exits(0);
        let out = std::fs::read_to_string(session.run_file("out")).unwrap();
        // bash keeps a copy of a descriptor at 255; the descriptor of the listed folder is closed by then.
        let open: Vec<&str> = out
            .lines()
            .filter_map(|line| line.strip_prefix("fd "))
            .filter(|line| line.split(' ').nth(1).is_some_and(|target| !target.is_empty()))
            .map(|line| line.split(' ').next().unwrap())
            .filter(|&number| number != "255")
            .collect();
        assert_eq!(open, ["0", "1", "2", "31"], "{out}");
        assert!(out.contains("agent.lock"), "{out}");
        // The C library reserves signals 32 and 33, and no program can change them.
        for (line, own) in [("SigBlk:\t", 0), ("SigIgn:\t", 3 << 31)] {
            let mask = out.lines().find_map(|text| text.strip_prefix(line)).unwrap();
            assert_eq!(u64::from_str_radix(mask.trim(), 16).unwrap() & !own, 0, "{out}");
        }
    }
}
