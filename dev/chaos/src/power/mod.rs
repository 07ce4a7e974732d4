//! Power loss: every prefix of what a session's processes did to the disk is opened again, without the data that was
//! not synced.
//!
//! strace records real sessions. [`disk`] replays the calls one by one and after each gives what may be found if the
//! power is cut there, in five ways. Everything that ostler reported must be in each of them: an accepted message, a
//! published outcome, a session whose launch has been synced. Nothing half-written may be read as complete.

pub mod disk;
pub mod trace;

use disk::{Disk, Survives};
use ostler_core::outcome::Kind;
use ostler_core::record::RequestKind;
use ostler_core::view::View;
use ostler_store::home::{Home, Place, SessionsDir};
use ostler_store::inbox;
use ostler_testkit::{Harness, Started};
use ostler_view::look;
use ostler_view::overview::Overview;
use std::collections::BTreeMap;
use std::path::Path;
use trace::Call;

const CALLS: &str = "trace=openat,mkdir,mkdirat,write,pwrite64,writev,pwritev,pwritev2,splice,sendfile,copy_file_range,\
                     ftruncate,fallocate,fsync,fdatasync,rename,renameat,renameat2,link,linkat,unlink,unlinkat,rmdir";

/// Every way in which a message is accepted and a run ends, once. What ostler reports goes to the standard output.
const LIFE: &str = r#"
id=$("$O" run -d --keep demo)
"$O" send $id "say one"
"$O" send $id "say two"
"$O" wait --until turn $id
"$O" stop $id
"$O" send $id "say three"
"$O" resume -d $id
"$O" wait $id
"#;

/// What ostler has reported so far.
#[derive(Clone, Debug, Default)]
struct Told {
    launched: bool,
    accepted: usize,
    ended: u32,
}

const MESSAGES: [&str; 3] = ["say one", "say two", "say three"];

/// How many cases were tried.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tried {
    /// Calls that changed the disk, or reported something.
    pub moments: usize,
    /// Different disks that were opened.
    pub disks: usize,
}

/// Whether strace is installed.
#[must_use]
pub fn can_record() -> bool {
    std::process::Command::new("strace").arg("-V").output().is_ok()
}

/// Records a session and cuts the power at every moment of it. Panics when something that was reported is missing
/// afterwards.
pub fn cut_everywhere(program: &Path) -> Tried {
    let harness = Harness::new(&program.to_string_lossy());
    let calls = record(&harness);
    let root = harness.root();
    let real = |path: &str| std::fs::read(path).unwrap_or_default();
    let mut disk = Disk::new(root);
    let (mut told, mut tried) = (Told::default(), Tried::default());
    let mut last = BTreeMap::new();
    let image = tempfile::tempdir().expect("a folder");
    for call in &calls {
        let heard = hear(call, &mut told);
        if !disk.apply(call, &real) && !heard {
            continue;
        }
        tried.moments += 1;
        for survives in Survives::ALL {
            let found = of_ostler(disk.after_the_cut(survives));
            if !heard && last.get(&survives) == Some(&found) {
                continue;
            }
            tried.disks += 1;
            lay_out(image.path(), &found);
            let after = format!("power cut after {} of {} ({survives:?} survives), told {told:?}", call.name, call.pid);
            check(image.path(), &told, &format!("{after}: {:?}", call.arguments.first()));
            last.insert(survives, found);
        }
    }
    assert!(told.launched && told.accepted == 3 && told.ended == 2, "not all of it was recorded: {told:?}");
    tried
}

fn record(harness: &Harness) -> Vec<Call> {
    let record = harness.root().join("calls");
    let mut command = harness.command("strace");
    command.args(["-f", "-qq", "-y", "-xx", "-s", "10000000", "-e", CALLS, "-e", "signal=none", "-o"]).arg(&record);
    command.args(["sh", "-c", LIFE]).env("O", harness.program());
    let output = Started::new(command, None).finish().exits(0);
    assert!(output.stdout.contains("status=succeeded"), "{output:?}");
    trace::parse(&std::fs::read_to_string(record).expect("strace's record"))
}

/// What a command reports on its standard output, or what a keeper promises by syncing a launch.
fn hear(call: &Call, told: &mut Told) -> bool {
    let text = String::from_utf8_lossy(&call.text(1)).into_owned();
    if call.name == "write" && call.descriptor(0) == Some(1) {
        if text.contains(": accepted") {
            told.accepted += 1;
            return true;
        }
        if text.contains(": stopped") || text.contains("status=succeeded") {
            told.ended += 1;
            return true;
        }
    }
    let synced = call.name == "fsync" && call.path_of(0).is_some_and(|path| path.ends_with("/ostler/sessions"));
    let first = synced && !told.launched;
    told.launched |= first;
    first
}

/// The files below `$OSTLER_HOME`; the rest is the agent's.
fn of_ostler(found: BTreeMap<String, Option<Vec<u8>>>) -> BTreeMap<String, Option<Vec<u8>>> {
    found.into_iter().filter(|(path, _)| path.starts_with("/ostler")).collect()
}

fn lay_out(folder: &Path, found: &BTreeMap<String, Option<Vec<u8>>>) {
    let home = folder.join("ostler");
    if home.exists() {
        std::fs::remove_dir_all(&home).expect("our own folder");
    }
    for (path, bytes) in found {
        let path = folder.join(path.trim_start_matches('/'));
        match bytes {
            None => std::fs::create_dir(path).expect("a folder"),
            Some(bytes) => std::fs::write(path, bytes).expect("a file"),
        }
    }
}

fn home(folder: &Path) -> Home {
    let root = folder.join("ostler").to_string_lossy().into_owned();
    Home::find(&move |name| (name == "OSTLER_HOME").then(|| root.clone())).expect("a home")
}

/// Opens the files as `ls` and `show` do.
fn check(folder: &Path, told: &Told, when: &str) {
    let places: Vec<Place> = home(folder).live_places().unwrap_or_else(|error| panic!("cannot list: {error}; {when}"));
    let promised = told.launched || told.accepted > 0 || told.ended > 0;
    assert!(!promised || places.len() == 1, "the session is gone; {when}");
    for place in places {
        match look::look(&place) {
            Err(error) if promised => panic!("damaged: {error}; {when}"),
            Err(_) => continue,
            Ok(view) => {
                assert!(view.ended || view.run == 0, "no process lives, and it is {:?}; {when}", view.state);
                let listed = SessionsDir::with(&place)
                    .and_then(|sessions_dir| Overview::over(&sessions_dir, None)?.look(place.id));
                let listed = listed.unwrap_or_else(|error| panic!("listed as damaged: {error}; {when}"));
                let told = |view: &View| (view.run, view.state, view.turns, view.queued);
                assert_eq!(told(&listed), told(&view), "a list says something else; {when}");
            }
        }
        let folder = place.open().expect("a folder");
        for number in 1..=folder.newest_run().expect("the runs") {
            let outcome = folder.run(number).and_then(|run| run.outcome());
            let outcome = outcome.unwrap_or_else(|error| panic!("outcome of run {number}: {error}; {when}"));
            let right = outcome.as_ref().is_none_or(|outcome| outcome.kind == Kind::Succeeded);
            assert!(right, "a wrong outcome: {outcome:?}; {when}");
            assert!(outcome.is_some() || number > told.ended, "the outcome of run {number} is gone; {when}");
        }
        let (requests, _) = inbox::read(folder.dir(), 0).unwrap_or_else(|error| panic!("inbox: {error}; {when}"));
        let kept = |text: &str| {
            requests
                .iter()
                .any(|placed| matches!(&placed.request.kind, RequestKind::Message { text: one, .. } if one == text))
        };
        for text in &MESSAGES[..told.accepted] {
            assert!(kept(text), "accepted {text:?} is gone; {when}");
        }
    }
}
