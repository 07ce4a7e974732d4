//! How each tool is driven: in a home, with a socket and with settings of its own, ended when its driver goes.

pub mod daemon;
pub mod dtach;
pub mod ostler;
pub mod pueue;
pub mod shpool;
pub mod tmux;
