//! Limits unfinished messages and bodies, which are held in memory while they arrive. It counts bytes and time and does
//! not look at the content.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use tokio::time::Instant;

use crate::app::MAX_MESSAGE;
use crate::arrival::Pace;

/// How many unfinished bytes one credential may have, over all of its connections.
const BUDGET: usize = 4 * MAX_MESSAGE;

/// The unfinished bytes of one credential.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    used: AtomicUsize,
}

/// The budgets of all connected credentials.
#[derive(Debug)]
pub(crate) struct Budgets<Credential>(Mutex<HashMap<Credential, Weak<Budget>>>);

impl<Credential> Default for Budgets<Credential> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<Credential: Eq + Hash> Budgets<Credential> {
    pub(crate) fn of(&self, credential: Credential) -> Arc<Budget> {
        let mut budgets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        budgets.retain(|_, budget| budget.strong_count() > 0);
        let known = budgets.get(&credential).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let budget = Arc::<Budget>::default();
            budgets.insert(credential, Arc::downgrade(&budget));
            budget
        })
    }
}

/// The unfinished bytes of one connection. Counted once the connection's credential is known.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    budget: OnceLock<Arc<Budget>>,
    unfinished: AtomicUsize,
    began: Mutex<Option<Instant>>,
}

impl Meter {
    pub(crate) fn belongs_to(&self, budget: impl FnOnce() -> Arc<Budget>) {
        self.budget.get_or_init(budget);
    }

    /// Counts received bytes. False if the budget is exceeded.
    pub(super) fn read(&self, bytes: usize) -> bool {
        let Some(budget) = self.budget.get() else {
            return true;
        };
        self.began
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_with(Instant::now);
        self.unfinished.fetch_add(bytes, Ordering::Relaxed);
        budget.used.fetch_add(bytes, Ordering::Relaxed) + bytes <= BUDGET
    }

    /// The message or request is complete.
    pub(crate) fn finished(&self) {
        if let Some(budget) = self.budget.get() {
            let bytes = self.unfinished.swap(0, Ordering::Relaxed);
            budget.used.fetch_sub(bytes, Ordering::Relaxed);
            *self.began.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    /// Until when the next bytes of an unfinished message must arrive.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let began = (*self.began.lock().unwrap_or_else(PoisonError::into_inner))?;
        let received = self.unfinished.load(Ordering::Relaxed) as u64;
        Some(Pace::LEAST.deadline(began, Instant::now(), received))
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.finished();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_connections_of_a_credential_share_a_budget() {
        let budgets = Budgets::default();
        let meter = |credential| {
            let meter = Meter::default();
            meter.belongs_to(|| budgets.of(credential));
            meter
        };
        let (one, same, other) = (meter("key"), meter("key"), meter("other"));
        assert!(one.read(BUDGET / 2) && same.read(BUDGET / 2));
        assert!(other.read(BUDGET), "someone else's");
        assert!(!same.read(1));
        one.finished();
        assert!(same.read(1));
        assert!(one.deadline().is_none() && same.deadline().is_some());
        drop(same);
        assert!(one.read(BUDGET));
    }

    #[test]
    fn a_connection_is_counted_once_its_credential_is_known() {
        let meter = Meter::default();
        assert!(meter.read(usize::MAX / 2) && meter.read(usize::MAX / 2));
        assert!(meter.deadline().is_none());
    }
}
