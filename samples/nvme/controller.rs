// SPDX-License-Identifier: GPL-2.0

//! A controller: its queues and its disks, as long as it is connected, and when it isn't.
//!
//! One task looks after it ([recovery.rs](recovery)): it tells the target that the host is there, and when
//! a connection is broken takes down what is left, and connects again. I/O waits meanwhile, or fails once
//! that has been tried for too long.
//!
//! Lock order: `disks`, `admin`, `control`; `queues` is a leaf.

mod recovery;
mod work;

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
        LinkNumber,
        Memory,
        Owner, //
    },
    transport::MAX_PIECES, //
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
        Mutex,
        SpinLock, //
    },
    workqueue::{
        Queue,
        Work,
        WorkItem, //
    }, //
};
use kfabric::{
    consumer::Errno,
    workqueue::OwnedQueue, //
};
use work::ControllerWork;

/// A controller.
#[pin_data]
pub(crate) struct Controller {
    pub(crate) instance: u32,
    options: Options,
    pub(crate) info: crate::identify::IdCtrl,
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
    control: Mutex<ControllerWork>,
    #[pin]
    changed: CondVar,
    #[pin]
    gone: Completion,
    /// The workqueue of the task that looks after the controller, and of work that takes time on
    /// its queues.
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
        // One for each queue, one for the controller, and one that looks for namespaces.
        let at_once = u8::try_from(link.shape.queues)?.saturating_add(2);
        let tasks = OwnedQueue::new(c"kfi_nvme", at_once)?;
        let most = link.max_pieces.saturating_sub(1).min(MAX_PIECES);
        let controller = pin_init!(Self {
            instance,
            info: link.info,
            shape: link.shape,
            max_pieces: options.register.pieces(most),
            options,
            tags,
            queues <- new_spinlock!(KVec::new()),
            dead: Atomic::new(false),
            admin <- new_mutex!(None),
            disks <- new_mutex!(Disks::default()),
            control <- new_mutex!(ControllerWork::default()),
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
        let memory = Memory {
            call: self.options.register,
            pieces: self.max_pieces,
            in_capsule: link.info.in_capsule.min(self.options.in_capsule.into()),
        };
        let number = self.control.lock().link();
        let mut queues = KVec::new();
        let started = (1..)
            .zip(link.transports)
            .try_for_each(|(queue, transport)| {
                queues.reserve(1, GFP_KERNEL)?;
                let place = (number, queue);
                let queue = IoQueue::new(place, transport, self.clone(), link.shape.depth, memory)?;
                // In the list only if it runs, for it is to be stopped then.
                queue.start();
                Ok(queues.push(queue, GFP_KERNEL)?)
            });
        *self.queues.lock() = queues;
        *self.admin.lock() = Some(link.admin);
        started.inspect_err(|_: &Error| self.let_go(drop))
    }

    /// Takes down the link. No event of it is reported any more. Requests that have not ended go to
    /// `left`. Sleeps.
    fn let_go(&self, mut left: impl FnMut(block::Request)) {
        let queues = core::mem::take(&mut *self.queues.lock());
        for queue in queues {
            queue.stop(&mut left);
        }
        let admin = self.admin.lock().take();
        drop(admin);
        self.control.lock().let_go();
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

    /// Returns the queue for a request.
    pub(crate) fn queue(&self, number: u32) -> Option<Arc<IoQueue>> {
        let queues = self.queues.lock();
        queues.get(usize::try_from(number).ok()?).cloned()
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Relaxed)
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
    fn tasks(&self) -> &Queue {
        &self.tasks
    }

    fn broken(&self, link: LinkNumber, errno: Errno) {
        if self.control.lock().broken(link) {
            pr_debug!("{}: broken: {errno}\n", self.instance);
            self.changed.notify_all();
        }
    }
}
