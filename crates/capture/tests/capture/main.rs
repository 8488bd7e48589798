//! Captures written by hand, and what is told of them.

mod flows;
mod info;
mod mutated;
mod packets;
mod turns;
