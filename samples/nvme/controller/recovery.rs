// SPDX-License-Identifier: GPL-2.0

//! Looking after a controller: it is kept alive, and connected again.

use super::{
    Controller,
    SCANNER, //
};
use crate::{
    link::Link,
    queue::Owner, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc,
        CondVarTimeoutResult, //
    },
    time::{
        msecs_to_jiffies,
        Instant,
        Monotonic, //
    }, //
};
use kfabric::{
    consumer::Errno,
    NoIo, //
};

/// The next step.
enum Next {
    KeepAlive,
    Recover,
    End,
}

impl Controller {
    /// Looks after the controller until it is over. Sleeps.
    pub(super) fn keep(self: &Arc<Self>) {
        // An allocation may not wait for the disks that wait for this task.
        let _noio = NoIo::enter();
        loop {
            match self.next() {
                Next::KeepAlive => {
                    let kept = match &mut *self.admin.lock() {
                        Some(admin) => admin.keep_alive(),
                        None => Ok(()),
                    };
                    if kept.is_err() {
                        let link = self.control.lock().link();
                        self.broken(link, Errno::ENOTCONN);
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
            if control.is_broken() && !self.is_dead() {
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
            if self.control.lock().leaving || since.elapsed().as_millis() >= limit {
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
}
