//! The demo agent alone, as its tests and its developers start it; users get it as part of `ostler`.

fn main() {
    std::process::exit(ostler_demo::main(std::env::args_os().skip(1)));
}
