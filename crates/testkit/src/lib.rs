//! A scripted model and a scripted CLI, for tests, benchmarks and demos.
