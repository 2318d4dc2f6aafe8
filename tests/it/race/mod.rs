//! Many processes at one store: nothing is claimed twice, nobody starves, nothing that was told is lost.

mod claims;
mod decisions;
mod gc;
mod submits;
