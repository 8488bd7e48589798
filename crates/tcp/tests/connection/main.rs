//! Whole connections over a wire that the test controls.

mod acks;
mod classics;
mod closing;
mod corners;
mod flow_control;
mod opening;
mod repair;
mod sending;
mod stream;
mod world;
