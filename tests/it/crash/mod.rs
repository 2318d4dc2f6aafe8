//! Killing a command at each of its named points, and losing the answer of a commit: what is found afterwards is one of
//! the states that are allowed there, the job completes after healing, and nothing ran twice without a decision.

mod commits;
mod gc;
mod points;
