//! Another user can neither read a session, nor connect to it, nor send it requests.

use crate::{harness, root_for};
use ostler_testkit::{Output, ProcessKind, Session, Started};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

fn everything_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    let mut next = 0;
    while let Some(path) = found.get(next).cloned() {
        next += 1;
        if path.is_dir() {
            match std::fs::read_dir(path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                other => found.extend(other.unwrap().map(|entry| entry.unwrap().path())),
            }
        }
    }
    found
}

#[test]
fn folders_and_files_are_for_their_owner_alone() {
    let harness = harness();
    for arguments in [&["--keep", "demo", "say x"][..], &["-t", "--", "sleep", "600"]] {
        let session = harness.detach(arguments);
        session.living(ProcessKind::Keeper);
        session.kill(ProcessKind::Keeper);
        session.stop();
    }
    for path in everything_below(&harness.home()) {
        let meta = match std::fs::symlink_metadata(&path) {
            // A helper removes files when it exits.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            other => other.unwrap(),
        };
        let mode = meta.mode() & 0o777;
        // The mode of a socket does not matter: its folder is closed.
        let right = if meta.is_dir() { mode == 0o700 } else { mode & 0o077 == 0 || meta.file_type().is_socket() };
        assert!(right, "{} has mode {mode:o}", path.display());
    }
}

use std::os::unix::fs::FileTypeExt;

/// Runs a program as the user `nobody`, from a folder that this user may enter.
fn as_other_user(harness: &ostler_testkit::Harness, program: &Path, arguments: &[&str]) -> Output {
    let mut command = harness.command("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program).args(arguments).current_dir("/");
    Started::new(command, None).finish()
}

fn open_for_all(session: &Session<'_>, home: &Path) {
    for path in everything_below(home).into_iter().filter(|path| path.starts_with(session.path()) || path.is_dir()) {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
}

#[test]
fn another_user_cannot_read_and_is_refused_at_the_socket() {
    if !root_for("becoming another user") {
        return;
    }
    let harness = harness();
    std::fs::set_permissions(harness.root(), std::fs::Permissions::from_mode(0o755)).unwrap();
    // The build folder may be closed to other users; the promise is about the session, not about the program.
    let (ostler, misbehave) =
        (harness.copied_program("ostler-copy"), harness.copied(Path::new(&harness.misbehave()), "misbehave"));
    let session = harness.detach(&["--", "sleep", "600"]);
    let folder = session.path();
    let knock = format!("knock={}", folder.display());
    let own = Started::new(
        {
            let mut command = harness.command(&misbehave);
            command.arg(&knock);
            command
        },
        None,
    )
    .finish();
    assert_eq!(own.stdout, "answered\n");

    for arguments in [&["ls"][..], &["show", session.id()], &["logs", session.id()], &["stop", session.id()]] {
        let output = as_other_user(&harness, &ostler, arguments);
        assert!(output.code != Some(0), "{output:?}");
        output.complaint();
    }
    let output = as_other_user(&harness, &misbehave, &[&knock]);
    assert!(output.stdout.starts_with("cannot knock: Permission denied"), "{output:?}");

    // Even when the folders were opened to all, the socket answers only its own user.
    open_for_all(&session, &harness.home());
    let output = as_other_user(&harness, &misbehave, &[&knock]);
    assert_eq!(output.stdout, "turned away\n", "{output:?}");
    assert!(session.show().alive);
    session.stop();
}

#[test]
fn root_does_not_write_into_a_session_of_another_user() {
    if !root_for("giving a folder away") {
        return;
    }
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    session.living(ProcessKind::Keeper);
    std::os::unix::fs::chown(session.path(), Some(65534), None).unwrap();
    let output = harness.run(&["stop", session.id()]).exits(125);
    assert!(output.complaint().contains("another user"), "{output:?}");
    assert!(!session.path().join("inbox.jsonl").exists());
    std::os::unix::fs::chown(session.path(), Some(0), None).unwrap();
    session.stop();
}

#[test]
fn sessions_of_another_user_are_neither_moved_nor_changed_by_root() {
    if !root_for("giving a home away") {
        return;
    }
    let harness = harness();
    let [ended, archived, lost] = ["ended", "archived", "lost"].map(|name| {
        let session = harness.detach(&["--name", name, "--", "sleep", if name == "lost" { "600" } else { "0" }]);
        if name == "lost" {
            session.living(ProcessKind::Keeper);
            session.orphan();
            session.kill(ProcessKind::Agent);
        } else {
            harness.run(&["wait", session.id()]).exits(0);
            session.until("only records are left", || (!session.path().join("holder.json").exists()).then_some(()));
        }
        session
    });
    harness.run(&["archive", archived.id()]).exits(0);
    for path in everything_below(&harness.home()) {
        std::os::unix::fs::lchown(path, Some(65534), Some(65534)).unwrap();
    }
    for arguments in [
        ["archive", ended.id()],
        ["purge", ended.id()],
        ["restore", archived.id()],
        ["purge", archived.id()],
        ["archive", lost.id()],
    ] {
        let output = harness.run(&arguments).exits(125);
        assert!(output.complaint().contains("belongs to another user"), "{output:?}");
    }
    for arguments in [&["ls", "-a"][..], &["show", lost.id()], &["show", archived.id()], &["logs", ended.id()]] {
        harness.run(arguments).exits(0);
    }
    let roots = everything_below(&harness.home()).into_iter();
    let roots = roots.filter(|path| std::fs::symlink_metadata(path).unwrap().uid() == 0).collect::<Vec<_>>();
    assert!(roots.is_empty(), "{roots:?}");
}
