//! Hand-written captures and their analyses.

mod away;
mod both;
mod flows;
mod info;
mod mutated;
mod packets;
mod turns;
