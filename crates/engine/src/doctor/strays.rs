//! What is in the folder of sessions and is not a session: interrupted launches and deletions, and files of other
//! programs.

use super::fix::Fix;
use super::helpers::Helper;
use super::{Finding, quoted};
use crate::error::Result;
use crate::purge::{GONE, leftovers};
use ostler_store::folder::Folder;
use ostler_store::home::{Home, hidden_name};
use ostler_sys::dir::Dir;
use std::path::Path;
use std::time::Duration;

/// A launch takes milliseconds. One that is older than this and has no holder will not be completed.
const ABANDONED: Duration = Duration::from_secs(60);

pub fn check(home: &Home, helpers: &[Helper]) -> Result<Vec<Finding>> {
    let mut findings: Vec<Finding> = leftovers(home)?
        .iter()
        .map(|folder| {
            Finding::problem(
                format!("{} is left over from a purge that was cut off", folder.display()),
                format!("rm -r {}", quoted(folder)),
            )
            .fixed_by(Fix::RemoveHidden(folder.clone()))
        })
        .collect();
    for path in home.archive_strays()? {
        findings.push(Finding::problem(
            format!("{} is not a folder, so nothing can be archived there", path.display()),
            format!("move it elsewhere: mv {0} {0}.moved", quoted(&path)),
        ));
    }
    let launching = hidden_name("");
    let mut strays = home.strays()?;
    strays.sort();
    for name in strays {
        let path = home.sessions().join(&name);
        if name.starts_with(&launching) {
            if is_abandoned(&path, helpers) {
                let what = format!("{} is left over from a launch that was cut off", path.display());
                let finding = Finding::problem(what, format!("rm -r {}", quoted(&path)));
                findings.push(finding.fixed_by(Fix::RemoveHidden(path)));
            }
        } else if !name.starts_with(GONE) {
            findings.push(Finding::note(format!("{} is not a session; ostler ignores it", path.display()), ""));
        }
    }
    Ok(findings)
}

/// Whether the launch that made this folder is dead: the folder is old enough, no helper works in it, and the holder
/// that it names is dead.
fn is_abandoned(folder: &Path, helpers: &[Helper]) -> bool {
    let old = std::fs::metadata(folder)
        .and_then(|stat| stat.modified())
        .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > ABANDONED));
    let worked_in = helpers.iter().any(|helper| helper.folder == folder);
    let held = Dir::open(folder)
        .is_ok_and(|dir| matches!(Folder::new(dir).holder(), Ok(Some(holder)) if holder.process.may_live()));
    old && !worked_in && !held
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::doctor::Level;

    #[test]
    fn a_launch_under_way_is_left_alone_and_one_that_was_cut_off_is_named() {
        let root = tempfile::tempdir().unwrap();
        let home =
            Home::find(&|name| (name == "OSTLER_HOME").then(|| root.path().to_string_lossy().into_owned())).unwrap();
        let sessions = home.open_or_make(&home.sessions()).unwrap();
        for name in [".new-abcdefgh", ".gone-hgfedcba", "notes"] {
            sessions.make_dir(name).unwrap();
        }
        let problems = |findings: Vec<Finding>| {
            findings.iter().filter(|f| f.level == Level::Problem).map(|f| f.what.clone()).collect::<Vec<_>>()
        };
        let found = problems(check(&home, &[]).unwrap());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(".gone-hgfedcba"));

        let long_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
        std::fs::File::open(home.sessions().join(".new-abcdefgh")).unwrap().set_modified(long_ago).unwrap();
        let found = problems(check(&home, &[]).unwrap());
        assert!(found.len() == 2 && found[1].contains(".new-abcdefgh"), "{found:?}");
    }
}
