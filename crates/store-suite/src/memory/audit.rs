//! The audit log of the store in memory.

use tiller_core::StoreFuture;
use tiller_core::audit::{AuditEntry, AuditLog, AuditRecord, Head};

use super::{Data, MemoryStore};

impl Data {
    pub(super) fn append(&mut self, entry: &AuditEntry) {
        let last = self.audit.last().map_or_else(Head::default, |last| Head {
            seq: last.seq,
            hash: last.hash.clone(),
        });
        self.audit.push(AuditRecord::after(&last, entry));
    }
}

impl AuditLog for MemoryStore {
    fn audit(&self, entry: AuditEntry) -> StoreFuture<'_, ()> {
        self.write(move |data| {
            data.append(&entry);
            Ok(())
        })
    }

    fn audit_page(&self, after: u64, limit: u32) -> StoreFuture<'_, Vec<AuditRecord>> {
        self.read(move |data| {
            let later = data.audit.iter().filter(|record| record.seq > after);
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            Ok(later.take(limit).cloned().collect())
        })
    }
}
