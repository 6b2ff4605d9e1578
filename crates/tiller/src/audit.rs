//! `tiller audit`: checks the audit log and writes it out.

use std::io::Write as _;

use tiller_core::audit::{AuditLog, AuditRecord, Chain, Head};
use tiller_store::SqliteStore;

use crate::data_dir::DataDir;

/// How many entries are read at once.
const PAGE: u32 = 1000;

/// Every entry, in order.
async fn each(
    store: &SqliteStore,
    mut work: impl FnMut(AuditRecord) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut after = 0;
    loop {
        let page = store.audit_page(after, PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = last.seq;
        for record in page {
            work(record)?;
        }
    }
}

/// Fails if an entry was changed or removed, or if the entry that was noted as the last one is not there any more.
pub(crate) async fn verify(data_dir: &DataDir, noted: Option<Head>) -> anyhow::Result<()> {
    let store = existing(data_dir)?;
    let mut chain = Chain::default().expect(noted);
    let broken = |error| anyhow::anyhow!("the audit log is not what was written: {error}");
    each(&store, |record| chain.check(&record).map_err(broken)).await?;
    let head = chain.finish().map_err(broken)?;
    println!("The audit log is whole: {} entries.", head.seq);
    if head.seq > 0 {
        println!("Keep the last entry elsewhere, and check it later with `tiller audit verify --head`:");
        println!("{head}");
    }
    Ok(())
}

/// Writes every entry as a line of JSON.
pub(crate) async fn export(data_dir: &DataDir) -> anyhow::Result<()> {
    let store = existing(data_dir)?;
    let mut output = std::io::stdout().lock();
    each(&store, |record| Ok(writeln!(output, "{}", record.to_json())?)).await?;
    output.flush()?;
    Ok(())
}

/// A log that is not there is not made: it would look like one in which nothing has happened.
fn existing(data_dir: &DataDir) -> anyhow::Result<SqliteStore> {
    anyhow::ensure!(
        data_dir.path().join("sessions.db").exists(),
        "there is no database in {}: name the data folder with --data-dir",
        data_dir.path().display()
    );
    data_dir.open_store()
}
