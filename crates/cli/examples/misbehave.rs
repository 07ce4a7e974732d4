//! The fake agent of the tests. It is an example of this package because cargo builds those along with its tests, into a
//! known place, and never installs them.

fn main() {
    std::process::exit(ostler_testkit::misbehave::main(std::env::args().skip(1)));
}
