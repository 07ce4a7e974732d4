//! A session's folder in which one file has foreign contents: looking at it results in an answer or an error, never in
//! anything worse.

use crate::first;
use ostler_store::feed::Feed;
use ostler_store::folder::Folder;
use ostler_store::{StoreError, inbox};
use ostler_sys::dir::Dir;
use ostler_view::conversation::Reader;
use ostler_view::{look, terminal};
use rustix::fs::OFlags;
use std::fs::File;
use tempfile::TempDir;

const SESSION: &str =
    r#"{"schema":1,"id":"abcd2345","agent":"claude","cwd":"/","mode":"headless","created":"2026-01-01T00:00:00Z"}"#;
const PLAN: &str = r#"{"mode":"headless","keep":true,"speaks":"turns","ending":"end_of_input","linger_ms":1}"#;

/// The files of a session, with their contents before one of them is replaced.
fn files() -> [(&'static str, Option<String>); 14] {
    let run = format!(r#"{{"run":1,"argv":["x"],"plan":{PLAN},"agent":null}}"#);
    let started = format!(r#"{{"at":"2026-01-01T00:00:00Z","ms":1,"run":1,"what":"started","plan":{PLAN}}}"#);
    [
        ("session.json", Some(SESSION.to_owned())),
        ("holder.json", None),
        ("keeper.json", None),
        ("inbox.jsonl", None),
        ("journal.jsonl", Some(format!("{started}\n"))),
        ("runs/1/run.json", Some(run)),
        ("runs/1/out", Some("{\"type\":\"system\"}\n".to_owned())),
        ("runs/1/err", None),
        ("runs/1/size", None),
        ("runs/1/screen", None),
        ("runs/1/fed.jsonl", None),
        ("runs/1/exit.json", None),
        ("runs/1/outcome.json", None),
        ("runs/1/screen.scrollback", None),
    ]
}

fn folder_with(which: usize, bytes: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("runs/1")).unwrap();
    for (index, (name, usual)) in files().into_iter().enumerate() {
        let content = if index == which { Some(bytes) } else { usual.as_ref().map(String::as_bytes) };
        if let Some(content) = content {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
    }
    folder
}

pub fn folder(bytes: &[u8]) {
    let (which, bytes) = first(bytes);
    let which = which % files().len();
    let home = folder_with(which, bytes);
    let folder = Folder::new(Dir::open(home.path()).unwrap());
    if let Ok(view) = look::look_at(look::Depth::Everything, &folder, false) {
        serde_json::to_vec(&view).unwrap();
    }
    let read = Reader::new(&folder, 1).read_on(|_| Ok::<(), StoreError>(()));
    // A file that cannot be parsed is named in the error; garbage in a stream is skipped.
    assert!(read.is_ok() || matches!(files()[which].0, "session.json" | "runs/1/run.json"), "{read:?}");
    let run = folder.run(1).unwrap();
    let _ = terminal::now(run.dir()).unwrap();
    let _ = terminal::now_with_scrollback(run.dir()).unwrap().0.lines();
}

/// Every request is found again at its own position.
pub fn inbox(bytes: &[u8]) {
    let home = folder_with(3, bytes);
    let dir = Dir::open(home.path()).unwrap();
    let (requests, end) = inbox::read(&dir, 0).unwrap();
    assert!(end <= bytes.len() as u64);
    for placed in requests {
        assert!(placed.at < placed.end && placed.end <= end);
        assert_eq!(inbox::read_one(&dir, placed.at).unwrap(), Some(placed.request));
    }
}

/// The size is that of the input file, whatever the notes say, and bytes that are fed next are counted.
pub fn feed(bytes: &[u8]) {
    let (size, bytes) = first(bytes);
    let home = folder_with(10, bytes);
    let run = Dir::open(home.path().join("runs/1")).unwrap();
    std::fs::write(home.path().join("runs/1/in"), vec![b'x'; size]).unwrap();
    let open = || {
        let input = File::from(run.file("in", OFlags::RDWR).unwrap());
        Feed::open(&run, input).unwrap()
    };
    let mut feed = open();
    let before = feed.received("a");
    assert_eq!(feed.size(), size as u64);
    feed.put("a", b"more").unwrap();
    assert_eq!((feed.received("a"), feed.size()), (before + 4, size as u64 + 4));
}
