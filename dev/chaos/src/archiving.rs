//! A process that archives or restores a session is killed half-way. Then the session exists once and complete,
//! archived or not, and a second try brings it to the right place.

use ostler_sys::pause_points::{self, Point, Role};
use ostler_testkit::Harness;
use std::path::Path;

/// Whether this point is passed while a session is moved into the archive or out of it.
#[must_use]
pub fn passes(point: Point) -> bool {
    matches!(
        point,
        Point::ArchiveNoted
            | Point::ArchiveMoved
            | Point::PackWritten
            | Point::PackExchanged
            | Point::Unpacked
            | Point::UnpackExchanged
            | Point::RestoreMoved
    )
}

/// Whether a process was killed at the point, and how often the session was looked at.
pub fn live_through(program: &Path, role: Role, point: Point, nth: usize) -> (bool, u64) {
    let mut harness = Harness::new(&program.to_string_lossy());
    let pauses = harness.root().join("pauses");
    std::fs::create_dir(&pauses).expect("a folder");
    harness.set(pause_points::VARIABLE, &pauses);
    let session = harness.detach(&["--name", "kept", "--", "echo", "good morning"]);
    harness.run(&["wait", session.id()]).exits(0);
    let looks = || {
        let listed = harness.run(&["ls", "-a", "--json"]).exits(0).json();
        let ids: Vec<&str> =
            listed.as_array().into_iter().flatten().filter_map(|session| session["id"].as_str()).collect();
        assert_eq!(ids, [session.id()], "once, and not damaged: {listed}");
        assert_eq!(listed[0]["outcome"]["kind"], "succeeded", "{listed}");
        assert_eq!(harness.run(&["logs", session.id()]).exits(0).stdout, "good morning\n");
        assert_eq!(session.show().outcome().kind, "succeeded");
        listed[0]["archived"] == true
    };
    let token = pauses.join(format!("{}.kill", pause_points::token(role, point)));
    std::fs::write(&token, vec![b'x'; nth]).expect("a token");
    harness.run(&["archive", session.id()]);
    if !looks() {
        harness.run(&["archive", session.id()]).exits(0);
    }
    assert!(looks(), "archived");
    harness.run(&["restore", session.id()]);
    if looks() {
        harness.run(&["restore", session.id()]).exits(0);
    }
    assert!(!looks(), "restored");
    let injected = !token.exists();
    // What the killed processes have left is removed, and nothing else.
    harness.run(&["archive", session.id()]).exits(0);
    let other = harness.detach(&["--", "true"]);
    harness.run(&["wait", other.id()]).exits(0);
    harness.run(&["purge", other.id()]).exits(0);
    assert!(looks(), "archived again");
    let month = std::fs::read_dir(harness.home().join("archive")).expect("an archive").flatten();
    let month = month.map(|entry| entry.path()).find(|path| path.is_dir()).expect("a month");
    let left: Vec<_> = std::fs::read_dir(month).expect("a month").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, [session.id()], "nothing is left beside the session");
    (injected, 6)
}
