//! Captures written by hand, and what is told of them.

mod away;
mod both;
mod flows;
mod info;
mod mutated;
mod packets;
mod turns;
