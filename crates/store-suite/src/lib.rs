//! What every store must do. A store implements [`Harness`] and runs all contracts with one line in its tests,
//! [`conformance!`]. [`MemoryStore`] is the store for tests that need no disk.
//!
//! The suite knows the core's traits and types only: no SQL, no files, no HTTP. How a store stores is not checked here;
//! a store has tests of its own for that.

mod contracts_list;

pub mod contracts;
pub mod fixtures;
mod memory;

use tiller_core::Store;
use tiller_core::credentials::CredentialStore;

pub use memory::{Damage, HeldWrites, MemoryStore};

/// A place in which a store keeps its data, and how to open it.
pub trait Harness: Sized {
    type Store: Store + CredentialStore + Clone;

    /// Whether copying or removing a long session takes long, so that the store must let others write meanwhile.
    const COPIES_IN_STEPS: bool;

    /// A place without data.
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
