//! A Rust SDK for the Claude Code CLI.
