// SPDX-License-Identifier: GPL-2.0

//! Block devices with several queues.
//!
//! C headers: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h),
//! [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h)
//!
//! The kernel's own abstraction (`kernel::block::mq`) doesn't tell a driver what a request does,
//! nor where. Its queues mustn't sleep, and no request can fail. This one is for drivers of devices
//! that hold data.
//!
//! - [`Driver`] is what a driver implements: it is given requests, and told when one takes too long.
//! - A [`TagSet`] says how many requests there can be, and in how many queues.
//! - A [`Disk`] is there for programs as long as the value is, with its [`Limits`].
//! - A [`Request`] is the driver's from when it is queued until it is [ended](Request::end), which
//!   happens once: it is a value that ending consumes, and one that is dropped has failed.
//!
//! # Context
//!
//! Process context, unless a function says something else.

mod disk;
mod driver;
mod request;
mod tag_set;

pub use self::{
    disk::Disk,
    driver::{
        Busy,
        Driver, //
    },
    request::{
        Op,
        Pieces,
        Request, //
    },
    tag_set::{
        Shape,
        TagSet, //
    }, //
};
pub use crate::disk::Limits;
pub use crate::request::Status;

/// The prefix of this crate's log lines.
const __LOG_PREFIX: &[u8] = b"block\0";
