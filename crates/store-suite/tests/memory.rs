//! The store in memory keeps every contract.

use tiller_store_suite::MemoryStore;

tiller_store_suite::conformance!(MemoryStore);
