//! The project that the demo agent works on: two small shell scripts in a folder of the session's own, one of them with
//! a bug. Plain POSIX sh, so that nothing has to be installed and everybody can read what happened.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use uuid::Uuid;

const GREET: &str = r#"#!/bin/sh
# Greets the person who is named, or everybody.
name=${1:-world}
echo "Hello, $nmae!"
"#;

const TEST: &str = r#"#!/bin/sh
# Checks what greet.sh says.
failed=0

check() {
    wanted=$1
    shift
    got=$(sh greet.sh "$@")
    if [ "$got" = "$wanted" ]; then
        echo "ok    $wanted"
    else
        echo "FAIL  wanted '$wanted', got '$got'"
        failed=1
    fi
}

check "Hello, world!"
check "Hello, Ada!" Ada
exit $failed
"#;

/// One change to one file.
pub struct Change {
    pub old: &'static str,
    pub new: &'static str,
}

/// The change that repairs `greet.sh`.
pub const FIX: Change = Change { old: "$nmae", new: "$name" };

/// The change that adds a check to `test.sh`.
pub const ONE_MORE_CHECK: Change =
    Change { old: "exit $failed", new: "check \"Hello, Ada Lovelace!\" \"Ada Lovelace\"\nexit $failed" };

pub struct Scratch {
    pub folder: PathBuf,
}

/// The state of the work, as seen from the files.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    Broken,
    Repaired,
    WellTested,
}

impl Scratch {
    /// Opens the folder of `session`, and makes it when it is missing.
    pub fn open(home: &Path, session: Uuid) -> io::Result<Scratch> {
        let scratch = Scratch { folder: home.join("scratch").join(session.to_string()) };
        DirBuilder::new().recursive(true).mode(0o700).create(&scratch.folder)?;
        for (file, text) in [(scratch.program(), GREET), (scratch.test(), TEST)] {
            if !file.try_exists()? {
                std::fs::write(file, text)?;
            }
        }
        Ok(scratch)
    }

    pub fn program(&self) -> PathBuf {
        self.folder.join("greet.sh")
    }

    pub fn test(&self) -> PathBuf {
        self.folder.join("test.sh")
    }

    pub fn progress(&self) -> io::Result<Progress> {
        if std::fs::read_to_string(self.program())?.contains(FIX.old) {
            return Ok(Progress::Broken);
        }
        match std::fs::read_to_string(self.test())?.contains(ONE_MORE_CHECK.new) {
            true => Ok(Progress::WellTested),
            false => Ok(Progress::Repaired),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that finds no value has failed")]
mod tests {
    use super::*;
    use crate::tools;
    use std::process::Command;

    fn test_passes(scratch: &Scratch) -> bool {
        Command::new("sh").arg("test.sh").current_dir(&scratch.folder).output().unwrap().status.success()
    }

    #[test]
    fn the_bug_is_real_and_so_is_its_repair() {
        let home = tempfile::tempdir().unwrap();
        let scratch = Scratch::open(home.path(), Uuid::nil()).unwrap();
        assert_eq!(scratch.progress().unwrap(), Progress::Broken);
        assert!(!test_passes(&scratch));

        assert!(!tools::edit(&scratch.program(), FIX.old, FIX.new).is_error);
        assert_eq!(scratch.progress().unwrap(), Progress::Repaired);
        assert!(test_passes(&scratch));

        assert!(!tools::edit(&scratch.test(), ONE_MORE_CHECK.old, ONE_MORE_CHECK.new).is_error);
        assert_eq!(scratch.progress().unwrap(), Progress::WellTested);
        assert!(test_passes(&scratch));
    }

    #[test]
    fn opening_again_keeps_the_work() {
        let home = tempfile::tempdir().unwrap();
        let scratch = Scratch::open(home.path(), Uuid::nil()).unwrap();
        std::fs::write(scratch.program(), "echo mine\n").unwrap();
        let again = Scratch::open(home.path(), Uuid::nil()).unwrap();
        assert_eq!(std::fs::read_to_string(again.program()).unwrap(), "echo mine\n");
    }
}
