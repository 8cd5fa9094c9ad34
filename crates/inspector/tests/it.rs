//! The pages of the inspector as a visitor gets them, over an engine in memory.

mod it {
    mod admin;
    mod graph;
    mod search;
    mod start;
    mod support;
}
