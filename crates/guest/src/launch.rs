//! The interface by which the host side makes this crate's program start a kernel.

/// The first argument, followed by the folder of the kernel's memory, and the paths that its
/// programs may read.
pub const WORD: &str = "launch";

/// The end of these paths, followed by the kernel's path and arguments.
pub const END_OF_READS: &str = "--";
