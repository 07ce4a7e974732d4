//! A process that adopts a conversation is killed half-way. Then there is a whole session or none, never half of one,
//! and a second try results in one session and not two.

use ostler_sys::pause_points::{self, Point, Role};
use ostler_testkit::Harness;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const ID: &str = "3f8e0c1a-5a4e-4e53-9d0b-6a3f6c1f2b77";

/// Whether a process was killed at the point, and how often the list was looked at.
pub fn live_through(program: &Path, role: Role, point: Point, nth: usize) -> (bool, u64) {
    let mut harness = Harness::new(&program.to_string_lossy());
    let pauses = harness.root().join("pauses");
    std::fs::create_dir(&pauses).expect("a folder");
    harness.set(pause_points::VARIABLE, &pauses);
    keep_outside(&mut harness);
    let token = pauses.join(format!("{}.kill", pause_points::token(role, point)));
    std::fs::write(&token, vec![b'x'; nth]).expect("a token");
    harness.run(&["adopt", ID]);
    let injected = !token.exists();
    let before = listed(&harness);
    let shown_already = point == Point::EndedShown;
    assert_eq!(before, usize::from(!injected || shown_already), "a session or none");
    harness.run(&["adopt", ID]).exits(if before == 1 { 7 } else { 0 });
    assert_eq!(listed(&harness), 1, "one session and not two");
    let said = harness.run(&["logs", "@last"]).exits(0).stdout;
    assert!(said.contains("what was asked") && said.contains("what was said"), "{said}");
    (injected, 2)
}

fn listed(harness: &Harness) -> usize {
    harness.run(&["ls", "--json"]).exits(0).json().as_array().map_or(0, Vec::len)
}

/// A conversation of claude, and a program of that name, which is never started.
fn keep_outside(harness: &mut Harness) {
    let work = harness.root().join("work");
    std::fs::create_dir(&work).expect("a folder");
    let cwd = work.to_string_lossy().into_owned();
    let project = harness.root().join("home/.claude/projects").join(ostler_agents::stream_json::folder_name(&cwd));
    std::fs::create_dir_all(&project).expect("a folder");
    let line = |uuid: &str, parent: Option<&str>, kind: &str, content: serde_json::Value| {
        let message = json!({"role": kind, "content": content});
        json!({"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": ID, "cwd": cwd, "message": message})
    };
    let lines = [
        line("a", None, "user", json!("what was asked")),
        line("b", Some("a"), "assistant", json!([{"type": "text", "text": "what was said"}])),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(project.join(format!("{ID}.jsonl")), text).expect("a transcript");
    let bin = harness.root().join("bin");
    std::fs::create_dir(&bin).expect("a folder");
    let claude = bin.join("claude");
    std::fs::write(&claude, "#!/bin/sh\nexit 1\n").expect("a program");
    std::fs::set_permissions(&claude, std::fs::Permissions::from_mode(0o755)).expect("a program");
    let path = harness.variable("PATH").unwrap_or_default();
    harness.set("PATH", format!("{}:{}", bin.display(), path.to_string_lossy()));
}
