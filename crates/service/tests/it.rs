//! The tests of the memory tool, in one binary.

#[path = "it/tool.rs"]
mod tool;
#[path = "it/tool_golden.rs"]
mod tool_golden;
