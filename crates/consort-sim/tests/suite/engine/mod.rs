//! The engine with the chips and programs that ship: every program comes to its end on unlike
//! machines, its work is its work, and big cores are filled first by whom they should be.

mod build;
mod observer;
mod presets;
