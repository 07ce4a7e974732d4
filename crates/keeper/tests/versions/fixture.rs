//! A session made by hand. The test itself is the holder.

use jiff::Timestamp;
use ostler_core::SCHEMA;
use ostler_core::event::StopHow;
use ostler_core::id::SessionId;
use ostler_core::outcome::Outcome;
use ostler_core::record::{Channel, Ending, Mode, Plan, Request, RequestKind, Session};
use ostler_keeper::launch::{self, Launch};
use ostler_keeper::launcher_process::Launcher;
use ostler_keeper::wire::{self, Call};
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::home::{Home, Place};
use ostler_store::{RunRecord, inbox};
use ostler_sys::clock::since_boot_ms;
use ostler_sys::dir::{Dir, Sync};
use ostler_sys::pipes::Pipe;
use ostler_sys::process::{Identity, Pidfd};
use ostler_sys::spawn::{self, Leads, Program, Start};
use ostler_sys::{descriptors, socket};
use ostler_testkit::patience;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::process::Signal;
use std::ffi::CString;
use std::path::PathBuf;

/// In the environment of a session, makes its keepers send what a later version might send.
pub const NEWER_KEEPER: &str = "OSTLER_TEST_NEWER_KEEPER";

const SCRIPT: [&str; 3] = ["sh", "-c", "echo hello; exec sleep 600"];

pub struct Fixture {
    home: tempfile::TempDir,
    pub folder: Folder,
    run: RunFolder,
    agent: Identity,
    pub handles: Vec<(String, OwnedFd)>,
    /// The holder's end of the line.
    pub line: OwnedFd,
    keepers: Vec<Identity>,
}

impl Fixture {
    /// Starts the program and opens what a holder of the present version opens.
    pub fn set() -> Fixture {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(Dir::open(home.path()).unwrap());
        folder.write_session(&session()).unwrap();
        let run = folder.make_run(1).unwrap();
        let file = |name: &str| run.dir().file(name, OFlags::RDWR | OFlags::CREATE).unwrap();
        let [out, passing, err] = std::array::from_fn(|_| Pipe::blocking().unwrap());
        let null = std::fs::File::open("/dev/null").unwrap();
        let started = Start {
            program: Program::Named("sh"),
            arguments: &SCRIPT.map(text),
            environment: &environment(),
            folder: None,
            descriptors: &[(null.as_raw_fd(), 0), (out.write.as_raw_fd(), 1), (err.write.as_raw_fd(), 2)],
            leads: Leads::Session,
            cgroup: None,
        }
        .start()
        .unwrap();
        let agent = Identity::of(started.pid).unwrap().unwrap();
        run.write_record(&RunRecord {
            agent: Some(agent.clone()),
            started: Some(Timestamp::now()),
            started_ms: since_boot_ms(),
            ..record()
        })
        .unwrap();
        let (line, keepers_line) = socket::pair().unwrap();
        let handles = [
            ("folder", folder.dir().duplicate().unwrap().try_into().unwrap()),
            ("door", socket::open(folder.dir()).unwrap()),
            ("binary", descriptors::own_binary().unwrap()),
            ("agent", started.pidfd),
            ("holder_line", keepers_line),
            ("out", file("out")),
            ("err", file("err")),
            ("in", file("in")),
            ("stdout_read", out.read),
            ("stdout_write", out.write),
            ("passing_read", passing.read),
            ("passing_write", passing.write),
            ("stderr_read", err.read),
            ("stderr_write", err.write),
        ];
        let handles = handles.into_iter().map(|(name, handle)| (name.to_owned(), handle)).collect();
        Fixture { home, folder, run, agent, handles, line, keepers: Vec::new() }
    }

    pub fn path(&self) -> PathBuf {
        self.home.path().to_owned()
    }

    /// holder.json as another version might write it; `"PROCESS"` is replaced by the identity of the test.
    pub fn write_holder(&self, json: &str) {
        let me = serde_json::to_string(&Identity::me().unwrap()).unwrap();
        let json = json.replace("\"PROCESS\"", me.trim_start_matches('{').trim_end_matches('}'));
        self.folder.dir().replace("holder.json", json.as_bytes(), Sync::No).unwrap();
    }

    pub fn start_keeper(&mut self, flags: &[&str]) -> Identity {
        let mut words: Vec<String> = ["ostler", ostler_keeper::KEEPER, "--run", "1"].map(str::to_owned).into();
        words.extend(flags.iter().map(|&flag| flag.to_owned()));
        words.extend((3..).zip(&self.handles).map(|(number, (name, _))| format!("{name}={number}")));
        let mut placed: Vec<_> =
            (3..).zip(&self.handles).map(|(number, (_, handle))| (handle.as_raw_fd(), number)).collect();
        let null = std::fs::File::options().read(true).write(true).open("/dev/null").unwrap();
        placed.extend((0..3).map(|number| (null.as_raw_fd(), number)));
        let binary = descriptors::own_binary().unwrap();
        let started = Start {
            program: Program::Open(binary.as_fd()),
            arguments: &words.iter().map(|word| text(word)).collect::<Vec<_>>(),
            environment: &environment(),
            folder: None,
            descriptors: &placed,
            leads: Leads::Session,
            cgroup: None,
        }
        .start()
        .unwrap();
        let keeper = Identity::of(started.pid).unwrap().unwrap();
        self.keepers.push(keeper.clone());
        keeper
    }

    pub fn kill(&self, process: &Identity) {
        kill(process);
        spawn::collect(process.pid());
    }

    pub fn until_printed(&self, text: &str) {
        patience::until("the program's output is in its file", &[&self.path().join("runs/1")], || {
            (self.run.dir().read("out").unwrap()? == text.as_bytes()).then_some(())
        });
    }

    /// Stops the session and does for it what its holder has to do.
    pub fn stop_as_its_holder(&self) {
        self.request_stop();
        self.collect_agent();
        self.run.dir().replace("exit.json", b"{\"code\":null,\"signal\":15,\"weather\":\"mild\"}", Sync::Yes).unwrap();
        socket::transmit(&self.line, b"e").unwrap();
        let keeper = self.keepers.last().unwrap();
        patience::ended(keeper);
        spawn::collect(keeper.pid());
        let mut letter = [0; 16];
        assert_eq!(socket::receive(&self.line, &mut letter).unwrap(), socket::Packet::Done(1));
        assert_eq!(letter[0], b'f', "the keeper says when its holder may leave");
    }

    pub fn request_stop(&self) {
        request_stop(&self.folder);
    }

    pub fn collect_agent(&self) {
        patience::ended(&self.agent);
        spawn::collect(self.agent.pid());
    }

    pub fn outcome(&self) -> Outcome {
        patience::until("it has ended", &[&self.path().join("runs/1")], || self.run.outcome().unwrap())
    }

    /// What /proc shows for a descriptor: both ends of a pipe show the same.
    pub fn file_behind(handle: BorrowedFd<'_>) -> String {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd())).unwrap();
        link.to_string_lossy().into_owned()
    }
}

impl Drop for Fixture {
    /// A test that failed leaves no process running.
    fn drop(&mut self) {
        for process in self.keepers.iter().chain([&self.agent]) {
            if process.may_live() {
                self.kill(process);
            }
        }
    }
}

pub fn kill(process: &Identity) {
    if let Some(pidfd) = Pidfd::open(process).unwrap() {
        pidfd.signal(Signal::KILL).unwrap();
    }
    patience::ended(process);
}

/// Puts the request into the inbox and tells the keeper of the session.
pub fn request_stop(folder: &Folder) {
    let kind = RequestKind::Stop { how: StopHow::Interrupt, grace_ms: 10_000, why: "test".to_owned() };
    let request = Request { id: "a-request".to_owned(), at: Timestamp::now(), by: "a test".to_owned(), run: 1, kind };
    inbox::append(folder, &request).unwrap();
    let keeper = socket::reach(folder.dir()).unwrap().unwrap();
    socket::transmit(&keeper, &wire::encode(&Call::Request { id: request.id })).unwrap();
    // Its answer, or the end of the connection: in both cases it has received the request.
    assert!(patience::readable(&[keeper.as_fd()], patience::LIMIT));
}

/// Starts a session as `ostler run` does, with keepers that send what a later version might send.
pub fn launch(home: &Home) -> Place {
    let mut environment = environment();
    environment.push(text(&format!("{NEWER_KEEPER}=1")));
    let (session, run) = (session(), record());
    launch::launch(
        home,
        Launch { session: &session, run: &run, prompts: &[], files: &[], piped: None, environment: &environment },
        &Launcher::ThisProgram,
    )
    .unwrap()
}

fn session() -> Session {
    Session {
        schema: SCHEMA,
        id: SessionId::from_random(since_boot_ms()),
        name: None,
        agent: "command".to_owned(),
        cwd: "/".to_owned(),
        mode: Mode::Headless,
        keep: false,
        labels: Default::default(),
        parent: None,
        fork: None,
        origin: None,
        read_only: false,
        adopted: None,
        model: None,
        arguments: SCRIPT.map(str::to_owned).into(),
        prompt: None,
        attended: false,
        limits: ostler_core::limits::Limits::default(),
        rules: ostler_core::rules::Rules::default(),
        worktree: None,
        job: None,
        driven: false,
        group: None,
        created: Timestamp::now(),
    }
}

fn record() -> RunRecord {
    let plan = Plan {
        channel: Channel::Command,
        keep: false,
        ending: Ending::Terminate,
        linger_ms: 2000,
        rules: ostler_core::rules::Rules::default(),
    };
    RunRecord::new(1, SCRIPT.map(str::to_owned).into(), plan)
}

fn environment() -> Vec<CString> {
    vec![text(&format!("PATH={}", std::env::var("PATH").unwrap()))]
}

fn text(text: &str) -> CString {
    CString::new(text).unwrap()
}
