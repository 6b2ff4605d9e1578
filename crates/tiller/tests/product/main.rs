//! The whole product: the real executable, the real Claude Code CLI with a scripted model, real SQLite.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on says where, and ends"
)]

mod acceptance;
mod access;
mod acp;
mod arrangement;
mod bubblewrap;
mod canary;
mod chat;
mod chat_faults;
mod client;
mod commands;
mod damaged;
mod demo;
mod event_table;
mod examples;
mod findings;
mod history;
mod history_live;
mod http;
mod identity;
mod insiders;
mod key_page;
mod keys;
mod lagging;
mod matrix;
mod odd_lines;
mod openapi;
mod opencode;
mod operators;
mod oversize;
mod review;
mod rewinding;
mod run;
mod sandbox;
mod sdk_url;
mod server;
mod shield;
mod side_by_side;
mod spine;
mod steering;
mod survival;
mod task;
mod task_client;
mod task_hang_up;
mod task_load;
mod task_refusals;
mod task_restart;
mod totals;
mod turns;
#[cfg(target_os = "linux")]
mod two_servers;
mod waiting;
