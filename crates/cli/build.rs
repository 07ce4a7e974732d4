//! Makes `target/<profile>/ostler` lead to the binary, where everybody looks for it: with a named build target
//! (see .cargo/config.toml) cargo puts it one folder deeper. And has the linker put the functions that frequent commands
//! call next to each other (see `cargo xtask link-order`).

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    order_functions();
    let (Ok(out), Ok(triple)) = (std::env::var("OUT_DIR"), std::env::var("TARGET")) else {
        return;
    };
    // OUT_DIR is target/<triple>/<profile>/build/<package>/out.
    let Some(profile) = Path::new(&out).ancestors().nth(3) else {
        return;
    };
    let Some(target) = profile.ancestors().nth(1).filter(|dir| dir.ends_with(&triple)).and_then(Path::parent) else {
        return;
    };
    let Some(name) = profile.file_name() else {
        return;
    };
    let link = target.join(name).join("ostler");
    let binary = Path::new("..").join(&triple).join(name).join("ostler");
    if std::fs::read_link(&link).is_ok_and(|old| old == binary) {
        return;
    }
    // A convenience: a build without the link is still a good build, but it should say so.
    let made = std::fs::create_dir_all(target.join(name))
        .and_then(|()| match std::fs::remove_file(&link) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        })
        .and_then(|()| std::os::unix::fs::symlink(&binary, &link));
    if let Err(error) = made {
        println!("cargo::warning=no link at {}: {error}", link.display());
    }
}

/// Only for a release, and only where rustc links with its own lld: other linkers do not know the option.
fn order_functions() {
    const ORDER: &str = "link_order.txt";
    println!("cargo::rerun-if-changed={ORDER}");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|is| is == value);
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let other_linker =
        std::env::var_os("RUSTC_LINKER").is_some() || flags.contains("linker") || flags.contains("fuse-ld");
    if !is("PROFILE", "release") || !is("TARGET", "x86_64-unknown-linux-gnu") || other_linker {
        return;
    }
    // A comma would end the argument.
    if let Some(order) = std::env::current_dir().ok().map(|folder| folder.join(ORDER).display().to_string())
        && !order.contains(',')
    {
        println!("cargo::rustc-link-arg-bin=ostler=-Wl,--symbol-ordering-file={order}");
        println!("cargo::rustc-link-arg-bin=ostler=-Wl,--no-warn-symbol-ordering");
    }
}
