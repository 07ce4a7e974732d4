//! A copy of the program that identifies itself as another build, so that neither trusts the derived data of the other.
//! It is used in place of an older program where none was given.

use ostler_store::progress::BUILD;
use ostler_testkit::Harness;
use std::path::PathBuf;

/// Made by another process, see [`Harness::copied_program`].
const REPLACE: &str = r#"LC_ALL=C sed "s/$1/$2/g" "$3" > "$4" && chmod 755 "$4" && ! cmp -s "$3" "$4""#;

/// Makes the copy in the folder of this harness.
pub fn of(harness: &Harness) -> PathBuf {
    let copy = harness.root().join("ostler-another-build");
    let other: String = BUILD.chars().rev().collect();
    let mut replace = harness.command("sh");
    replace.args(["-c", REPLACE, "sh", BUILD, &other]).arg(harness.program()).arg(&copy);
    let made = replace.status().expect("sh");
    assert!(made.success(), "the program does not name its build");
    copy
}
