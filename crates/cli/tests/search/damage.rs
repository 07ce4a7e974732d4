//! No file among the agents' conversations makes a search fail or hides other conversations.

use crate::transcripts::{CLAUDE, CODEX, append, claude, claude_agent, claude_file, codex, opencode};
use crate::{as_other_user, belongs_to_other_user, harness, texts};
use rustix::fs::{CWD, FileType, Mode};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

#[test]
fn damaged_odd_and_huge_files_hide_nothing() {
    let harness = harness();
    let good = claude(&harness, CLAUDE, ["first zebra", "out", "done"]);
    append(&good, "{\"type\":\"user\",\"message\":{\"content\":\"torn\n\u{0}\u{1}\u{2}garbage\n[1,2\n\n");
    append(&good, &claude_agent("zebra behind the damage", "2026-11-10T09:00:00Z"));
    let other = |name: u32| claude_file(&harness, &format!("{name:08}-408d-4262-88d9-97e7e2d532f0"));
    let rubbish: Vec<u8> = (0..3_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    fs::write(other(1), &rubbish).unwrap();
    fs::write(other(2), "[".repeat(200_000)).unwrap();
    fs::write(other(3), "").unwrap();
    rustix::fs::mknodat(CWD, other(4), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    symlink(other(5), other(5)).unwrap();
    symlink("/dev/zero", other(6)).unwrap();
    symlink("..", good.parent().unwrap().join("loop")).unwrap();
    symlink("..", good.parent().unwrap().parent().unwrap().join("loop")).unwrap();
    fs::create_dir(other(7)).unwrap();
    // A gigabyte without a newline, and a file without read permission.
    fs::File::create(other(8)).unwrap().set_len(1 << 30).unwrap();
    fs::write(other(9), claude_agent("zebra in secret", "2026-11-10T09:00:00Z")).unwrap();
    fs::set_permissions(other(9), fs::Permissions::from_mode(0o0)).unwrap();
    // An invalid time, and one far in the future.
    fs::write(other(10), claude_agent("zebra without time", "yesterday")).unwrap();
    fs::write(other(11), claude_agent("zebra of the future", "9999-12-30T00:00:00Z")).unwrap();
    // A chat whose id would be an option in the command that a user copies, and a pipe in place of a chat.
    let chats = harness.root().join("home/.gemini/tmp/p/chats");
    fs::create_dir_all(&chats).unwrap();
    fs::write(
        chats.join("session-1.jsonl"),
        "{\"sessionId\":\"--takeover\"}\n{\"type\":\"user\",\"content\":\"zebra\"}\n",
    )
    .unwrap();
    rustix::fs::mknodat(CWD, chats.join("session-2.jsonl"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();

    let mut found = texts(&harness, &["zebra"]);
    found.retain(|text| text != "zebra in secret"); // Root reads everything.
    assert_eq!(found[0], "zebra of the future");
    found.sort();
    assert_eq!(found, ["first zebra", "zebra behind the damage", "zebra of the future", "zebra without time"]);
    // A second search works, too: a phrase is matched as a whole, words separately.
    assert_eq!(texts(&harness, &["behind damage"]), [""; 0]);
    assert_eq!(texts(&harness, &["behind", "damage"]).len(), 1);
    // What a search finds can be read, whatever other files are there.
    harness.run(&["logs", "--foreign", CLAUDE]).exits(0);
}

#[test]
fn a_foreign_log_says_how_many_lines_it_could_not_understand() {
    let harness = harness();
    let transcript = claude(&harness, CLAUDE, ["first zebra", "out", "done"]);
    let whole = harness.run(&["logs", "--foreign", CLAUDE]).exits(0);
    assert_eq!(whole.stderr, "");
    let mut text = fs::read(&transcript).unwrap();
    text.extend(b"{\"type\":\"user\",\"mess\n\n\0\0\0\0\n[1, 2]\n{\"type\":\"not known\"}\n");
    fs::write(&transcript, text).unwrap();
    let damaged = harness.run(&["logs", "--foreign", CLAUDE]).exits(0);
    assert_eq!(damaged.stdout, whole.stdout);
    assert_eq!(damaged.stderr, "ostler: 3 lines of the transcript could not be understood, and may have more\n");
}

#[test]
fn a_damaged_database_hides_nothing_but_itself() {
    let harness = harness();
    claude(&harness, CLAUDE, ["first zebra", "out", "done"]);
    codex(&harness, "draw a zebra", "no");
    drop(opencode(&harness, "feed the zebra", "fed"));
    assert_eq!(texts(&harness, &["zebra"]).len(), 3);
    let database = harness.root().join("data/opencode/opencode.db");
    fs::write(&database, [b'x'; 5000]).unwrap();
    let _ = fs::remove_file(database.with_extension("db-wal"));
    let found = texts(&harness, &["zebra"]);
    assert_eq!(found.len(), 2, "{found:?}");
    harness.run(&["logs", "--foreign", CODEX]).exits(0);
    fs::remove_file(&database).unwrap();
    assert_eq!(texts(&harness, &["zebra"]).len(), 2);
}

#[test]
fn what_could_not_be_read_is_reported() {
    let harness = harness();
    let secret = claude(&harness, CLAUDE, ["first zebra", "out", "done"]);
    codex(&harness, "draw a zebra", "no");
    let Some(program) = belongs_to_other_user(&harness) else { return };
    let search = |words: &[&str]| as_other_user(&harness, &program, &[&["search"], words].concat());
    let close = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o0)).unwrap();
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
    let missing = |path: &Path| {
        let path = path.strip_prefix(harness.root().join("home")).unwrap();
        let cause = "Permission denied (os error 13)";
        let file = format!("~/{}: {cause}", path.display());
        format!("ostler: 1 file or folder of conversations could not be read, and may have more: {file}\n")
    };
    // A file that was never read before, its folder, and a file that was read before.
    close(&secret);
    let found = search(&["first", "zebra"]).exits(1);
    assert!(found.stderr.starts_with(&missing(&secret)) && found.stderr.contains("nothing found"), "{found:?}");
    let found = search(&["--json", "zebra"]).exits(0);
    assert_eq!((found.json().as_array().unwrap().len(), &found.stderr), (1, &missing(&secret)), "{found:?}");
    open(&secret);
    let folder = secret.parent().unwrap();
    close(folder);
    assert_eq!(search(&["zebra"]).exits(0).stderr, missing(folder));
    open(folder);
    let found = search(&["first", "zebra"]).exits(0);
    assert_eq!(found.stderr, "");
    close(&secret);
    let found = search(&["first", "zebra"]).exits(1);
    assert!(found.stderr.starts_with(&missing(&secret)), "{found:?}");
}
