//! The contract of stores. A store implements [`Harness`] and runs all contracts with one line in its tests,
//! [`conformance!`]. [`MemoryStore`] is the store for tests that need no disk.
//!
//! The suite knows only the core's traits and types: no SQL, no files, no HTTP. How a store stores data is not checked
//! here; a store has its own tests for that.

mod contracts_list;

pub mod contracts;
pub mod fixtures;
mod memory;

use tiller_core::Store;
use tiller_core::credentials::CredentialStore;

pub use memory::{Damage, HeldWrites, MemoryStore};

/// The place of a store's data, and how to open it.
pub trait Harness: Sized {
    type Store: Store + CredentialStore + Clone;

    /// Whether copying or deleting a long session takes long, so that the store must let others write meanwhile.
    const COPIES_IN_STEPS: bool;

    /// An empty place.
    fn new() -> Self;

    /// Opens the store. It has everything that was committed at this place, whether the stores that committed it are
    /// still open or not.
    fn open(&self) -> Self::Store;

    /// The place as the next process finds it if this process is killed now: nothing is closed or flushed first.
    fn after_crash(&self) -> Self;
}

/// Runs a contract to its end.
pub fn run<F: Future>(contract: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(contract),
        Err(error) => panic!("no runtime for a test: {error}"),
    }
}
