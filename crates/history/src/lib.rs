//! Reads the transcripts that the Claude Code CLI keeps.
