//! Sessions of a user who may not create a cgroup are contained in a scope of the user's own systemd.
//!
//! Tested with a real systemd: in separate namespaces, where a user has a manager and logs in to a cgroup that belongs
//! to root, as on most machines.

use crate::{harness, root_for};
use ostler_testkit::Started;
use std::path::Path;

const SYSTEMD: &str = "/usr/lib/systemd/systemd";

/// A script; its arguments are the program, a home for the user and systemd. The user may move processes, as the
/// system's manager would do on request, and may create cgroups only below the manager's own.
const SETUP: &str = r#"
set -e
mount --make-rprivate /
umount -R /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
mount -t tmpfs none /run
mkdir -p /run/systemd/system /run/user/4242
chown 4242:4242 /run/user/4242
mkdir /sys/fs/cgroup/manager /sys/fs/cgroup/login.scope
chown -R 4242:4242 /sys/fs/cgroup/manager
chown 4242 /sys/fs/cgroup/cgroup.procs
as="setpriv --reuid=4242 --regid=4242 --clear-groups env -i PATH=$PATH HOME=$2 OSTLER_HOME=$2/ostler XDG_RUNTIME_DIR=/run/user/4242"
mkfifo /run/ready
chmod 666 /run/ready
(echo 0 > /sys/fs/cgroup/manager/cgroup.procs; exec $as NOTIFY_SOCKET= $3 --user --unit=basic.target >/dev/null 2>&1) &
while [ ! -S /run/user/4242/systemd/private ]; do read -r -t 0.05 line <> /run/ready || true; done
echo 0 > /sys/fs/cgroup/login.scope/cgroup.procs
cd "$2"
id=$($as "$1" run -d -- sh -c 'setsid sleep 600 & exec sleep 600')
group=$(sed 's/.*"cgroup":"\([^"]*\)".*/\1/' "$2/ostler/sessions/$id/runs/1/run.json")
case $group in /sys/fs/cgroup/manager/*/ostler-$id-*.scope) ;; *) echo "not contained: $group"; exit 1;; esac
$as "$1" doctor | grep -F 'a scope of the user'
while [ "$(wc -l < "$group/cgroup.procs")" != 2 ]; do read -r -t 0.05 line <> /run/ready || true; done
$as "$1" stop "$id"
if [ -s "$group/cgroup.procs" ]; then echo "left: $(cat "$group/cgroup.procs")"; exit 1; fi
if $as "$1" run --memory 1G -- touch started 2> refused; then echo "no limit can be in force here"; exit 1; fi
cat refused
test ! -e started
"#;

#[test]
fn a_user_without_a_cgroup_of_their_own_gets_a_scope_that_holds_everything() {
    if !root_for("another user and namespaces") {
        return;
    }
    let base = ostler_sys::cgroup::base().filter(|base| base.is_ours_to_write().is_ok());
    let (Some(base), true) = (base, Path::new(SYSTEMD).exists()) else {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "this needs systemd and a cgroup");
        return eprintln!("left out: no systemd here, or no cgroup");
    };
    let harness = harness();
    // The build folder may be closed to other users.
    let (program, home) = (harness.copied_program("ostler-for-all"), harness.root().join("user"));
    std::fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(4242), Some(4242)).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(harness.root(), open).unwrap();
    let fixture = base.path().join(format!("test-{}", std::process::id()));
    std::fs::create_dir(&fixture).unwrap();
    let enter = "echo 0 > \"$0/cgroup.procs\"; exec unshare -m -p -f -C --mount-proc --kill-child bash -c \"$@\"";
    let mut command = harness.command("sh");
    command.args(["-c", enter]).arg(&fixture).args([SETUP, "bash"]).arg(&program).arg(&home).arg(SYSTEMD);
    let output = Started::new(command, None).finish();
    remove_groups(&fixture);
    let output = output.exits(0);
    assert!(output.stdout.contains("each session gets a scope of the user's systemd"), "{output:?}");
    assert!(output.stdout.contains("a limit cannot be enforced"), "{output:?}");
}

/// Removes the cgroups. All processes in them have ended with the namespace.
fn remove_groups(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            remove_groups(&entry.path());
        }
    }
    // A process may take a moment to be gone, so this may fail; the folder's name tells where it comes from.
    let _ = std::fs::remove_dir(folder);
}
