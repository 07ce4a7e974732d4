//! `ostler repair` of a file: the old content stays in a backup next to it, the new file has the same owner and mode,
//! and a file without damage is not touched. No agent is needed.

use ostler_testkit::Harness;
use std::fs::{Permissions, read, read_dir, set_permissions, write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

const WHOLE: &str = concat!(
    r#"{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":"hi"},"uuid":"a","#,
    r#""timestamp":"2026-11-15T07:00:00.000Z","sessionId":"s"}"#,
    "\n"
);

fn file(harness: &Harness, text: &str) -> PathBuf {
    let path = harness.root().join("talk.jsonl");
    write(&path, text).unwrap();
    path
}

fn backups(harness: &Harness) -> Vec<PathBuf> {
    let entries = read_dir(harness.root()).unwrap().flatten().map(|entry| entry.path());
    entries.filter(|path| path.to_string_lossy().contains("talk.jsonl.ostler-")).collect()
}

#[test]
fn a_repaired_file_has_a_backup_and_the_same_mode() {
    let harness = Harness::new(env!("CARGO_BIN_EXE_ostler"));
    let torn = format!("{WHOLE}{{\"parentUuid\":\"a\",\"ty");
    let path = file(&harness, &torn);
    set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let word = path.to_str().unwrap();

    let dry = harness.run(&["repair", "--dry-run", word]).exits(1);
    assert!(dry.stdout.starts_with("to repair: the last line is torn: 21 bytes"), "{dry:?}");
    assert_eq!((read(&path).unwrap(), backups(&harness).len()), (torn.clone().into_bytes(), 0), "a dry run");

    let output = harness.run(&["repair", word]).exits(0);
    assert!(output.stdout.starts_with("repaired: the last line is torn"), "{output:?}");
    assert_eq!(read(&path).unwrap(), WHOLE.as_bytes());
    assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o640);
    let [backup] = &backups(&harness)[..] else { panic!("{:?}", backups(&harness)) };
    assert_eq!(read(backup).unwrap(), torn.as_bytes());

    let inode = path.metadata().unwrap().ino();
    let again = harness.run(&["repair", word]).exits(0);
    assert!(again.stdout.starts_with("nothing to repair: 1 message"), "{again:?}");
    assert_eq!((path.metadata().unwrap().ino(), backups(&harness).len()), (inode, 1), "not touched");
}

#[test]
fn an_empty_file_and_one_of_no_known_agent_are_refused() {
    let harness = Harness::new(env!("CARGO_BIN_EXE_ostler"));
    let path = file(&harness, "");
    harness.run(&["repair", path.to_str().unwrap()]).exits(2);
    let folder = harness.root().join("kept elsewhere");
    std::fs::create_dir_all(&folder).unwrap();
    let names = [
        "3f8e7a52-9d5b-4c1e-8a37-2b6d90e1c4f5.jsonl",
        "rollout-2026-11-15T07-00-00-3f8e7a52-9d5b-4c1e-8a37-2b6d90e1c4f5.jsonl",
        "session-2026-11-15T07-00-3f8e7a52.jsonl",
    ];
    for name in names {
        let empty = folder.join(name);
        write(&empty, "").unwrap();
        let output = harness.run(&["repair", empty.to_str().unwrap()]).exits(1);
        assert!(output.stdout.starts_with("cannot be repaired: the file is empty"), "{output:?}");
    }
    let other = folder.join(names[0]);
    write(&other, "no record\n").unwrap();
    harness.run(&["repair", other.to_str().unwrap()]).exits(2);
    harness.run(&["repair", "nothing-of-that-name"]).exits(3);
}

#[test]
fn records_on_one_line_are_separated_and_no_loss_is_reported() {
    let harness = Harness::new(env!("CARGO_BIN_EXE_ostler"));
    let next = |own: &str, parent: &str| {
        let hung = WHOLE.replace(r#""parentUuid":null"#, &format!(r#""parentUuid":"{parent}""#));
        hung.replace(r#""uuid":"a""#, &format!(r#""uuid":"{own}""#))
    };
    let (second, third) = (next("b", "a"), next("c", "b"));
    let path = file(&harness, &format!("{WHOLE}{}{third}", second.trim_end()));
    let output = harness.run(&["repair", path.to_str().unwrap()]).exits(0);
    assert!(output.stdout.starts_with("repaired: line 2 holds 2 records: put on separate lines\n"), "{output:?}");
    assert!(!output.stdout.contains("bytes removed"), "{output:?}");
    assert_eq!(read(&path).unwrap(), format!("{WHOLE}{second}{third}").into_bytes());
}
