//! Properties of the source itself.

mod codes;
mod commands;
mod generated;
mod layers;
mod manual;
mod pages;
mod roff;
mod tidy;
