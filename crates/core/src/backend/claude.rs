//! The Claude Code CLI as a backend.
