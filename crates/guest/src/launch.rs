//! How the host side asks this crate's program to start a kernel.

/// The first argument; after it the folder of the kernel's memory, and what programs in it may read.
pub const WORD: &str = "launch";

/// The end of these; after it the kernel's path and arguments.
pub const END_OF_READS: &str = "--";
