// SPDX-License-Identifier: GPL-2.0

//! Receive contexts that endpoints share.

use crate::{
    pool::Pool,
    side::Side,
    taken::taken, //
};
use core::any::Any;
use kernel::sync::Arc;
use kfabric::{
    provider::{
        self,
        cq::Context,
        msg_ep::{
            Post,
            Refused, //
        }, //
    },
    Errno,
    Refusal, //
};

/// A receive context.
pub(crate) struct Srx(Arc<Pool<Side>>);

impl Srx {
    /// One with room for so many receives. May sleep.
    pub(crate) fn new(size: usize) -> Result<Self, Refusal> {
        Ok(Self(Pool::new(size)?))
    }

    /// The receives.
    pub(crate) fn pool(&self) -> &Arc<Pool<Side>> {
        &self.0
    }
}

impl provider::msg_ep::Srx for Srx {
    fn post(&self, post: Post<'_>) -> Result<(), Refused> {
        let posted = self.0.post(taken(post)?, Side::receive_came);
        posted.map_err(|kept| {
            let why = Refusal::new(Errno::EAGAIN, c"the receive context is full");
            Refused::new(why, kept.into_ticket())
        })
    }

    fn room(&self) -> usize {
        self.0.room()
    }

    fn cancel(&self, context: Context) -> Result<(), Refusal> {
        match self.0.cancel(context) {
            true => Ok(()),
            false => Err(Refusal::new(
                Errno::ENOENT,
                c"no such receive, or it has begun",
            )),
        }
    }

    fn end(&self) {
        self.0.end();
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
