//! The only thread that writes. All waiting writes share one transaction and one sync.

use std::thread;

use rusqlite::{Connection, TransactionBehavior};
use tiller_core::StoreError;
use tokio::sync::{mpsc, oneshot};

use super::store_error;

/// How many writes may wait. Beyond it writers wait themselves, which only slows the agents down.
const QUEUE: usize = 1024;

/// The maximum number of writes per transaction: bounds how long the first of them waits.
const GROUP: usize = 256;

type Work = Box<dyn FnMut(&Connection) -> rusqlite::Result<()> + Send>;

struct Job {
    /// May be run again if its group failed.
    work: Work,
    done: oneshot::Sender<Result<(), StoreError>>,
}

#[derive(Clone)]
pub(super) struct Writer {
    jobs: mpsc::Sender<Job>,
}

impl Writer {
    pub(super) fn start(connection: Connection) -> Result<Self, StoreError> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || run(connection, queue))
            .map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(Self { jobs })
    }

    /// Returns when the work is on disk. The order of calls is the order of writes.
    pub(super) async fn write(
        &self,
        work: impl FnMut(&Connection) -> rusqlite::Result<()> + Send + 'static,
    ) -> Result<(), StoreError> {
        let gone = || StoreError::Unavailable("the writer has ended".to_owned());
        let (done, outcome) = oneshot::channel();
        self.jobs
            .send(Job {
                work: Box::new(work),
                done,
            })
            .await
            .map_err(|_| gone())?;
        outcome.await.map_err(|_| gone())?
    }
}

fn run(mut connection: Connection, mut queue: mpsc::Receiver<Job>) {
    let mut group = Vec::with_capacity(GROUP);
    while queue.blocking_recv_many(&mut group, GROUP) > 0 {
        let whole = transact(&mut connection, &mut group);
        let alone = group.len() == 1;
        for mut job in group.drain(..) {
            let outcome = match &whole {
                Ok(()) => Ok(()),
                // One bad write must not fail the others.
                Err(_) if !alone => transact(&mut connection, std::slice::from_mut(&mut job)),
                Err(error) => Err(error.clone()),
            };
            // If the caller is gone, it is written all the same.
            drop(job.done.send(outcome));
        }
    }
}

fn transact(connection: &mut Connection, jobs: &mut [Job]) -> Result<(), StoreError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(store_error)?;
    for job in jobs {
        (job.work)(&transaction).map_err(store_error)?;
    }
    transaction.commit().map_err(store_error)
}
