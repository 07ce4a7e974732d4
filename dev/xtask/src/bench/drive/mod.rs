//! How each tool is used: with a home, a socket and settings of its own, ended when its driver is dropped.

pub mod daemon;
pub mod dtach;
pub mod ostler;
pub mod pueue;
pub mod shpool;
pub mod tmux;
