// SPDX-License-Identifier: GPL-2.0

//! A controller: its queues and its disks, as long as it is connected, and when it isn't.
//!
//! One task looks after it ([`Controller::keep`]): it tells the target that the host is there, and when
//! a connection is broken takes down what is left, and connects again. I/O waits meanwhile, or fails once
//! that has been tried for too long.
//!
//! Lock order: `disks`, `admin`, `control`; `queues` is a leaf.

use crate::{
    link::{
        Admin,
        Link,
        Shape, //
    },
    namespace::{
        Disks,
        Host, //
    },
    options::Options,
    queue::{
        IoQueue,
        Owner, //
    }, //
};
use block::TagSet;
use kernel::{
    impl_has_work,
    new_condvar,
    new_mutex,
    new_spinlock,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Completion,
        CondVar,
        CondVarTimeoutResult,
        Mutex,
        SpinLock, //
    },
    time::{
        msecs_to_jiffies,
        Instant,
        Monotonic, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};
use kfabric::{
    consumer::Errno,
    workqueue::OwnedQueue,
    NoIo, //
};

/// Memory of a command is in no more pieces than this.
const MAX_PIECES: usize = 256;

/// What there is to be done by who looks after a controller.
#[derive(Default)]
struct Control {
    /// A connection is broken, and nobody has cared yet.
    broken: bool,
    /// Connecting again is of no use: the controller is to go.
    leaving: bool,
    /// The disks are gone, so there is nothing more to look after.
    over: bool,
}

/// What is to be done next.
enum Next {
    KeepAlive,
    Recover,
    End,
}

/// A controller.
#[pin_data]
pub(crate) struct Controller {
    pub(crate) instance: u32,
    options: Options,
    pub(crate) info: crate::identify::Controller,
    pub(crate) shape: Shape,
    pub(crate) max_pieces: usize,
    pub(crate) tags: Arc<TagSet<Host>>,
    /// Those for I/O; none while it isn't connected.
    #[pin]
    queues: SpinLock<KVec<Arc<IoQueue>>>,
    /// It won't be connected any more.
    dead: Atomic<bool>,
    #[pin]
    admin: Mutex<Option<Admin>>,
    #[pin]
    disks: Mutex<Disks>,
    #[pin]
    control: Mutex<Control>,
    #[pin]
    changed: CondVar,
    #[pin]
    gone: Completion,
    /// Who looks after it, and who takes what comes on its queues.
    tasks: OwnedQueue,
    #[pin]
    keeper: Work<Controller, KEEPER>,
    #[pin]
    scanner: Work<Controller, SCANNER>,
}

/// Looks after it.
const KEEPER: u64 = 0;
/// Looks for namespaces.
const SCANNER: u64 = 1;

impl_has_work! {
    impl HasWork<Self, KEEPER> for Controller { self.keeper }
    impl HasWork<Self, SCANNER> for Controller { self.scanner }
}

impl Controller {
    /// Connects to a target, and makes a disk of each namespace. Sleeps.
    ///
    /// # Errors
    ///
    /// The log says what has failed.
    pub(crate) fn connect(instance: u32, options: Options) -> Result<Arc<Self>> {
        let link = Link::up(&options)?;
        let tags = TagSet::new(block::Shape {
            queues: link.shape.queues.into(),
            depth: link.shape.depth.into(),
            timeout: options.timeout,
        })?;
        // A task for each queue, one for the controller, and one that looks for namespaces.
        let at_once = u8::try_from(link.shape.queues)?.saturating_add(2);
        let tasks = OwnedQueue::new(c"kfi_nvme", at_once)?;
        let controller = pin_init!(Self {
            instance,
            info: link.info,
            shape: link.shape,
            max_pieces: link.max_pieces.saturating_sub(1).min(MAX_PIECES),
            options,
            tags,
            queues <- new_spinlock!(KVec::new()),
            dead: Atomic::new(false),
            admin <- new_mutex!(None),
            disks <- new_mutex!(Disks::default()),
            control <- new_mutex!(Control::default()),
            changed <- new_condvar!(),
            gone <- Completion::new(),
            tasks,
            keeper <- new_work!("kfi_nvme_keeper"),
            scanner <- new_work!("kfi_nvme_scanner"),
        });
        let controller = Arc::pin_init(controller, GFP_KERNEL)?;
        controller
            .take(link)
            .inspect_err(|_| controller.tasks.flush())?;
        // It isn't queued yet.
        let _ = controller.tasks.enqueue::<_, KEEPER>(controller.clone());
        if let Err(error) = controller.scan() {
            controller.leave();
            return Err(error);
        }
        pr_info!(
            "{instance}: connected to {:?}, {} queues of {}\n",
            controller.options.address,
            controller.shape.queues,
            controller.shape.depth
        );
        Ok(controller)
    }

    /// Starts the queues of a link. Sleeps if it fails.
    fn take(self: &Arc<Self>, link: Link) -> Result {
        let mut queues = KVec::new();
        let started = (1..)
            .zip(link.transports)
            .try_for_each(|(number, transport)| {
                queues.reserve(1, GFP_KERNEL)?;
                let (owner, depth) = (self.clone(), link.shape.depth);
                let queue = IoQueue::new(number, transport, owner, depth, self.max_pieces)?;
                // In the list only if it runs, for who stops it waits for that.
                queue.start(&self.tasks);
                Ok(queues.push(queue, GFP_KERNEL)?)
            });
        *self.queues.lock() = queues;
        *self.admin.lock() = Some(link.admin);
        started.inspect_err(|_: &Error| self.let_go(drop))
    }

    /// Takes down what there is of a link; requests that have not ended go to `left`. Sleeps.
    fn let_go(&self, mut left: impl FnMut(block::Request)) {
        let queues = core::mem::take(&mut *self.queues.lock());
        for queue in queues {
            queue.stop(&mut left);
        }
        let admin = self.admin.lock().take();
        drop(admin);
    }

    /// Finds the namespaces, and makes disks of those that are new. Sleeps.
    fn scan(self: &Arc<Self>) -> Result {
        let mut found = KVec::new();
        {
            let mut guard = self.admin.lock();
            let admin = (*guard).as_mut().ok_or(EIO)?;
            admin.namespaces(|number, format| match format {
                Ok(format) => Ok(found.push((number, format), GFP_KERNEL)?),
                Err(_) => {
                    pr_warn!("{}: namespace {number} can't be a disk\n", self.instance);
                    Ok(())
                }
            })?;
        }
        // Without the admin queue: disks are read when they are added, which may take a while.
        self.disks.lock().update(self, &found)
    }

    /// The queue that a request is for.
    pub(crate) fn queue(&self, number: u32) -> Option<Arc<IoQueue>> {
        let queues = self.queues.lock();
        queues.get(usize::try_from(number).ok()?).cloned()
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Relaxed)
    }

    /// Looks after the controller until it is over. Sleeps.
    fn keep(self: &Arc<Self>) {
        // What it allocates may not wait for the disks that wait for it.
        let _noio = NoIo::enter();
        loop {
            match self.next() {
                Next::KeepAlive => {
                    let kept = match &mut *self.admin.lock() {
                        Some(admin) => admin.keep_alive(),
                        None => Ok(()),
                    };
                    if kept.is_err() {
                        self.broken(Errno::ENOTCONN);
                    }
                }
                Next::Recover => self.recover(),
                Next::End => break,
            }
        }
        if let Some(admin) = &mut *self.admin.lock() {
            // If not, the target finds out.
            let _ = admin.shut_down();
        }
        // There are no disks any more, and so no requests.
        self.let_go(drop);
        self.gone.complete_all();
    }

    /// Waits for what is to be done next.
    fn next(&self) -> Next {
        let interval = match self.options.keep_alive {
            0 => u32::MAX,
            keep_alive => keep_alive / 2,
        };
        let interval = msecs_to_jiffies(interval);
        let mut control = self.control.lock();
        loop {
            if control.over {
                return Next::End;
            }
            if control.broken && !self.is_dead() {
                return Next::Recover;
            }
            let waited = self
                .changed
                .wait_interruptible_timeout(&mut control, interval);
            if let CondVarTimeoutResult::Timeout = waited {
                return Next::KeepAlive;
            }
        }
    }

    /// Connects again. I/O waits meanwhile. Sleeps.
    fn recover(self: &Arc<Self>) {
        pr_warn!("{}: the connection is broken\n", self.instance);
        self.tags.quiesce();
        self.let_go(block::Request::requeue);
        let since = Instant::<Monotonic>::now();
        let limit = i64::from(self.options.ctrl_loss);
        let connected = loop {
            {
                let mut control = self.control.lock();
                // Of what was let go nothing is told any more.
                control.broken = false;
                if control.leaving {
                    break false;
                }
            }
            if since.elapsed().as_millis() >= limit {
                break false;
            }
            match self.reconnect() {
                Ok(()) => break true,
                Err(error) => pr_warn!("{}: not connected again: {error:?}\n", self.instance),
            }
            let mut control = self.control.lock();
            if !control.leaving {
                let delay = msecs_to_jiffies(self.options.reconnect_delay);
                // Not exactly as long: no harm in trying earlier.
                let _ = self.changed.wait_interruptible_timeout(&mut control, delay);
            }
        };
        if connected {
            pr_info!("{}: connected again\n", self.instance);
        } else {
            pr_err!("{}: given up, I/O fails from here on\n", self.instance);
            self.dead.store(true, Relaxed);
        }
        self.tags.unquiesce();
        if connected {
            // Not by this task: adding a disk takes I/O, and that may need this task again. Where somebody
            // looks already, nobody else has to.
            let _ = self.tasks.enqueue::<_, SCANNER>(self.clone());
        }
    }

    fn reconnect(self: &Arc<Self>) -> Result {
        let link = Link::up(&self.options)?;
        if link.shape != self.shape {
            pr_err!("{}: the target is another one now\n", self.instance);
            return Err(EINVAL);
        }
        self.take(link)
    }

    /// Takes the disks away and leaves the target. Sleeps until what was written is there, or has failed;
    /// if there is no connection, it fails at once.
    pub(crate) fn leave(&self) {
        self.control.lock().leaving = true;
        self.changed.notify_all();
        let disks = self.disks.lock().end();
        drop(disks);
        self.control.lock().over = true;
        self.changed.notify_all();
        self.gone.wait_for_completion();
        // So that no task is the last to have a reference, of those that the queue waits for when it goes.
        self.tasks.flush();
        pr_info!("{}: left\n", self.instance);
    }
}

impl WorkItem<KEEPER> for Controller {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.keep();
    }
}

impl WorkItem<SCANNER> for Controller {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        if let Err(error) = this.scan() {
            pr_warn!("{}: no look for namespaces: {error:?}\n", this.instance);
        }
    }
}

impl Owner for Controller {
    fn broken(&self, errno: Errno) {
        let mut control = self.control.lock();
        if !control.broken {
            pr_debug!("{}: broken: {errno}\n", self.instance);
        }
        control.broken = true;
        self.changed.notify_all();
    }
}
