//! The schema from outside: messages about invalid input, resolved plans, ids of runs.

#[cfg(test)]
mod changes;
#[cfg(test)]
mod common;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod ids;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod mutated;
#[cfg(test)]
mod plans;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod spellings;
#[cfg(test)]
mod studies;
#[cfg(test)]
mod traffic;
#[cfg(test)]
mod varying;
