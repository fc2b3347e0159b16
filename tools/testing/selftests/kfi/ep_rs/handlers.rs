// SPDX-License-Identifier: GPL-2.0

//! Handlers of listeners, connections and requests.

use crate::pair::{
    check,
    filled,
    Place,
    Side,
    Tag,
    PATIENCE, //
};
use kernel::{
    new_condvar,
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc,
        CondVar,
        Mutex, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};
use kfabric::consumer::{
    CompletionQueueOptions,
    ConnectionEvent,
    ConnectionHandler,
    Domain,
    Ended,
    Errno,
    Fabric,
    Incoming,
    Kind,
    ListenHandler,
    Listener,
    ListenerOptions,
    MsgEndpoint,
    RequestHandler,
    RequestQueue, //
};

/// Something that a handler leaves for a thread.
#[pin_data]
struct Left<T> {
    #[pin]
    all: Mutex<KVec<T>>,
    #[pin]
    more: CondVar,
}

impl<T> Left<T> {
    fn new() -> Result<Arc<Self>> {
        let left = pin_init!(Self {
            all <- new_mutex!(KVec::new()),
            more <- new_condvar!(),
        });
        Arc::pin_init(left, GFP_KERNEL)
    }

    fn leave(&self, one: T) {
        if self.all.lock().push(one, GFP_KERNEL).is_err() {
            pr_err!("no memory\n");
        }
        self.more.notify_all();
    }

    fn take(&self) -> T {
        let mut all = self.all.lock();
        loop {
            match all.pop() {
                Some(one) => return one,
                None => self.more.wait(&mut all),
            }
        }
    }
}

struct Asked(Arc<Left<Incoming>>);

impl ListenHandler for Asked {
    fn request(&self, request: Incoming) {
        if request.data().starts_with(b"go away") {
            // Rejected here.
            let _ = request.reject(b"gone");
            return;
        }
        self.0.leave(request);
    }
}

struct Happened(Arc<Left<ConnectionEvent>>);

impl ConnectionHandler for Happened {
    fn connection(&self, event: ConnectionEvent) {
        self.0.leave(event);
    }
}

/// Looks at what it gets in whichever context, and drops it there.
struct Sum {
    lens: Arc<Atomic<usize>>,
}

impl RequestHandler<KVec<u8>, Tag> for Sum {
    fn ended(&self, ended: Ended<KVec<u8>, Tag>) {
        let add = match ended {
            Ended::Done(request, done) if done.kind == Kind::Recv => {
                let right = request
                    .memory()
                    .iter()
                    .zip((1..=250).cycle())
                    .all(|(a, b)| *a == b);
                usize::from(right) * done.len
            }
            Ended::Done(..) => 0,
            Ended::Failed(..) => 1 << 20,
            Ended::Lost(_) | Ended::InjectFailed(_) => 1 << 30,
        };
        self.lens.fetch_add(add, Release);
    }
}

fn soon(is: impl Fn() -> bool) -> bool {
    for _ in 0..60_000 {
        if is() {
            return true;
        }
        fsleep(Delta::from_millis(1));
    }
    false
}

/// Checks that each handler is told, and goes with its object.
pub(crate) fn handlers_are_told(place: &Place) -> Result {
    let requests = Left::new()?;
    let source = place.source()?;
    let handler = KBox::new(Asked(requests.clone()), GFP_KERNEL)?;
    let options = ListenerOptions::default().handler(handler);
    let fabric = Fabric::open(source.first())?;
    let listener = Listener::open(&fabric, source.first(), options)?;
    check(
        "nobody can wait",
        listener.wait(Some(0)).err() == Some(Errno::ENOSYS),
    )?;

    let info = place.peer(listener.address()?)?;
    let a = Side::<KVec<u8>>::open(info.first())?;
    let active = |events: &Arc<Left<_>>, say: &[u8]| -> Result<_> {
        let handler = KBox::new(Happened(events.clone()), GFP_KERNEL)?;
        let endpoint = MsgEndpoint::open(&a.domain, info.first(), &a.tx, &a.rx)?;
        Ok(endpoint.handler(handler)?.enable()?.connect(say)?)
    };
    let events = Left::new()?;
    let turned_away = active(&events, b"go away")?;
    match events.take() {
        ConnectionEvent::Failed(Errno::ECONNREFUSED, data) => {
            check("why", data.starts_with(b"gone"))?;
        }
        _ => return Err(EIO),
    }
    let refused = turned_away.established().err().ok_or(EIO)?;
    check("not connected", refused.errno() == Errno::ENOTCONN)?;
    drop(refused);

    let connecting = active(&events, b"hello")?;
    let request = requests.take();
    let lens = Arc::new(Atomic::new(0), GFP_KERNEL)?;
    let domain = Domain::open(&Fabric::open(request.info())?, request.info())?;
    let sum = KBox::new(Sum { lens: lens.clone() }, GFP_KERNEL)?;
    let options = CompletionQueueOptions::default();
    let queue = RequestQueue::open_with(&domain, options, sum)?;
    let passive = request.endpoint(&domain, &queue, &queue)?.enable()?;
    for tag in 0..4 {
        passive.recv(filled(0, 1000, tag)?)?;
    }
    let passive = passive.accept(b"welcome")?.wait(PATIENCE)?;
    match events.take() {
        ConnectionEvent::Connected(data) => check("its data", data.starts_with(b"welcome"))?,
        _ => return Err(EIO),
    }
    let early = connecting.wait(Some(0)).err().ok_or(EIO)?;
    check("its handler is told", early.errno() == Errno::ENOSYS)?;
    let active = early.into_inner().ok_or(EIO)?.established()?;
    for tag in 0..3 {
        active.send(filled(1, 1000, tag)?)?;
    }
    check("the sum", soon(|| lens.load(Acquire) == 3000))?;
    // The one that is left fails.
    drop(active);
    check("the last", soon(|| lens.load(Acquire) == 3000 + (1 << 20)))?;
    passive.wait_shutdown(PATIENCE)?;
    drop(passive);
    drop(queue);
    let gone = Arc::into_unique_or_drop(lens).is_some();
    check("the queue's handler is gone", gone)?;
    let gone = Arc::into_unique_or_drop(events).is_some();
    check("the endpoint's, too", gone)?;
    listener.close()?;
    let gone = Arc::into_unique_or_drop(requests).is_some();
    check("the listener's, too", gone)
}
