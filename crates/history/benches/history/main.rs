//! How fast the history is, on a corpus of the size that heavy users have.

fn main() {}
