//! The demo agent alone, for its tests and its developers. For users it is a part of `ostler`.

fn main() {
    std::process::exit(ostler_demo::main(std::env::args_os().skip(1)));
}
