// SPDX-License-Identifier: GPL-2.0

//! Completion of transfers.

use super::{
    conn::Conn,
    sharers::Sharers,
    spare::Spare, //
};
use crate::prelude::*;
use kfabric::provider::ticket::Received;
use rdma::{
    endpoint_mr::Registering,
    request::{
        CompletedRequest,
        Request,
        RequestMemory, //
    },
    reusable_mr::RegistrationHandler,
    wc::Arrival,
    wr::Receive,
    Buffer, //
};

/// Ends a transfer when its work request has.
pub(super) struct TransferHandler {
    pub(super) ticket: Ticket,
    pub(super) conn: Arc<Conn>,
    pub(super) spares: Arc<Spares>,
}

/// Memory for the requests of an endpoint's transfers.
#[pin_data]
pub(super) struct Spares {
    #[pin]
    pub(super) sends: Spare<Request<WorkRequest<Buffer>, TransferHandler>>,
    #[pin]
    pub(super) receives: Spare<Request<Receive<Buffer>, TransferHandler>>,
}

impl Spares {
    /// Makes an empty one for this many transfers under way. May sleep.
    pub(super) fn new(sends: usize, receives: usize) -> Result<Arc<Self>> {
        let (sends, receives) = (Spare::new(sends)?, Spare::new(receives)?);
        let spares = pin_init!(Self {
            sends <- sends,
            receives <- receives,
        });
        Arc::pin_init(spares, GFP_KERNEL)
    }
}

/// The completion target of a request about a region on an endpoint's queue. It reports the end to
/// the region's owner, and a failure to the connection, because nobody waits for a registration.
pub(super) struct RegionCompletion {
    pub(super) registering: Registering,
    pub(super) conn: Arc<Conn>,
}

impl<K: Send + 'static> CompletionHandler<WorkRequest<K>> for RegionCompletion {
    fn ended(self, ended: CompletedRequest<'_>) {
        let error = ended.result.as_ref().err().copied();
        CompletionHandler::<WorkRequest<K>>::ended(self.registering, ended);
        if let Some(error) = error {
            note_region(&self.conn, error);
        }
    }
}

/// Reports failed requests about a region to its connection.
pub(super) struct RegionFailure(pub(super) Arc<Conn>);

impl RegistrationHandler for RegionFailure {
    fn failed(&self, error: WrError) {
        note_region(&self.0, error);
    }
}

/// Reports a failed request about a region to the connection, because nobody waits for it. Any context.
fn note_region(conn: &Arc<Conn>, error: WrError) {
    match error {
        WrError::Flushed => conn.fail_by_region(),
        error => {
            note(conn, QueueKind::Sends, error);
        }
    }
}

/// Ends a receive that endpoints share when its work request has ended.
pub(super) struct SharedReceiveHandler {
    pub(super) ticket: Ticket,
    pub(super) sharers: Arc<Sharers>,
}

impl<K: Send + 'static> CompletionHandler<Receive<K>> for SharedReceiveHandler {
    fn ended(self, ended: CompletedRequest<'_>) {
        let conn = ended.at.and_then(|at| self.sharers.find(at));
        match (ended.result, conn) {
            (Ok(arrival), conn) => {
                if let (Some(key), Some(conn)) = (ended.invalidated, conn) {
                    conn.reg_states.see(key);
                }
                arrived(self.ticket, arrival);
            }
            // No endpoint has taken it, or its device has forgotten it with the endpoint.
            (Err(WrError::TimedOut), _) => self
                .ticket
                .fail(failed(QueueKind::Receives, WrError::Flushed)),
            (Err(error), Some(conn)) => self.ticket.fail(note(&conn, QueueKind::Receives, error)),
            (Err(error), None) => self.ticket.fail(failed(QueueKind::Receives, error)),
        }
    }
}

/// The queue of the request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueKind {
    Sends,
    Receives,
}

/// Reports a failed request to the connection. Returns the error for the consumer. Any context.
pub(super) fn note(conn: &Arc<Conn>, queue: QueueKind, error: WrError) -> Failed {
    match (queue, error) {
        // The connection goes on, or waits for nothing more.
        (_, WrError::Post(_)) => (),
        // No later request reports the end of the connection.
        (QueueKind::Sends, WrError::Failed(_) | WrError::TimedOut | WrError::Lost) => conn.fail(),
        // Mostly, somebody has told already. But if rxe can't get rid of a packet, for example
        // while a link goes down, it flushes everything and says no more.
        (_, WrError::Flushed) => conn.fail_later(),
        // The peer finds out.
        (QueueKind::Receives, _) => conn.fail_by_receive(),
    }
    failed(queue, error)
}

impl CompletionHandler<WorkRequest<Buffer>> for TransferHandler {
    fn keep(&self, memory: RequestMemory<WorkRequest<Buffer>, Self>) {
        self.spares.sends.put(memory);
    }

    fn ended(self, ended: CompletedRequest<'_>) {
        match ended.result {
            Ok(_) => self.ticket.complete(),
            Err(error) => self.ticket.fail(note(&self.conn, QueueKind::Sends, error)),
        }
    }
}

impl CompletionHandler<Receive<Buffer>> for TransferHandler {
    fn keep(&self, memory: RequestMemory<Receive<Buffer>, Self>) {
        self.spares.receives.put(memory);
    }

    fn ended(self, ended: CompletedRequest<'_>) {
        match ended.result {
            Ok(arrival) => {
                if let Some(key) = ended.invalidated {
                    self.conn.reg_states.see(key);
                }
                arrived(self.ticket, arrival);
            }
            Err(error) => self
                .ticket
                .fail(note(&self.conn, QueueKind::Receives, error)),
        }
    }
}

/// Completes a receive.
fn arrived(ticket: Ticket, arrival: Arrival) {
    let len = num::index(arrival.bytes);
    let data = arrival.imm.map(u64::from);
    match data {
        Some(data) if arrival.written => ticket.written(len, data),
        data => ticket.received(Received {
            len,
            data,
            invalidated: arrival.invalidated.map(u64::from),
        }),
    }
}

/// Returns the error for the consumer, with the status of the completion (`enum ib_wc_status`).
fn failed(queue: QueueKind, error: WrError) -> Failed {
    let with_status = |errno, status: WcStatus| Failed {
        errno,
        prov_errno: num::signed(status.as_raw()),
        excess: 0,
    };
    match error {
        // It waited for more to come, when the end came.
        WrError::Post(error) if error.to_errno() == Errno::ECANCELED.to_c() => {
            Errno::ECANCELED.into()
        }
        WrError::Post(error) => Failed {
            errno: Errno::EIO,
            prov_errno: error.to_errno(),
            excess: 0,
        },
        WrError::Flushed => with_status(Errno::ECANCELED, WcStatus::FLUSHED),
        WrError::Failed(status) => with_status(errno(queue, status), status),
        WrError::TimedOut => Errno::ETIMEDOUT.into(),
        WrError::Lost => Errno::ENOTRECOVERABLE.into(),
    }
}

/// Returns the errno for a status.
fn errno(queue: QueueKind, status: WcStatus) -> Errno {
    match (queue, status) {
        (QueueKind::Receives, status) if rxe::is_truncation(status) => Errno::ETRUNC,
        (QueueKind::Receives, status) if rxe::is_refused_write(status) => Errno::ECANCELED,
        (_, WcStatus::LOCAL_LENGTH) => Errno::EMSGSIZE,
        (_, WcStatus::LOCAL_PROTECTION | WcStatus::REMOTE_ACCESS) => Errno::EACCES,
        (_, WcStatus::REMOTE_INVALID | WcStatus::REMOTE_OPERATION) => Errno::EREMOTEIO,
        (_, WcStatus::NO_ANSWER | WcStatus::NO_RECEIVE) => Errno::ETIMEDOUT,
        _ => Errno::EIO,
    }
}

#[kernel::macros::kunit_tests(kfi_verbs_done)]
mod tests {
    use super::*;

    #[test]
    fn what_the_consumer_is_told() {
        let told = |queue, status| failed(queue, WrError::Failed(status)).errno;
        let (sends, receives) = (QueueKind::Sends, QueueKind::Receives);
        assert_eq!(told(sends, WcStatus::REMOTE_ACCESS), Errno::EACCES);
        assert_eq!(told(sends, WcStatus::REMOTE_INVALID), Errno::EREMOTEIO);
        assert_eq!(told(receives, WcStatus::REMOTE_INVALID), Errno::ETRUNC);
        assert_eq!(told(receives, WcStatus::LOCAL_LENGTH), Errno::ETRUNC);
        assert_eq!(told(receives, WcStatus::REMOTE_ACCESS), Errno::ECANCELED);
        assert_eq!(told(sends, WcStatus::NO_ANSWER), Errno::ETIMEDOUT);
        let flushed = failed(sends, WrError::Flushed);
        assert_eq!((flushed.errno, flushed.prov_errno), (Errno::ECANCELED, 5));
        let lost = failed(sends, WrError::Lost);
        assert_eq!(lost.errno, Errno::ENOTRECOVERABLE);
    }
}
