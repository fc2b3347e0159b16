// SPDX-License-Identifier: GPL-2.0

//! States of connected endpoints.

use core::marker::PhantomData;
use kernel::prelude::*;

/// An endpoint that asks for a connection.
pub enum Active {}
/// An endpoint that answers a request for one.
pub enum Passive {}

/// A new endpoint: things can be bound to it.
pub struct Created<R>(pub(super) PhantomData<R>);
/// An endpoint that can be connected.
pub struct Enabled<R>(pub(super) PhantomData<R>);
/// An endpoint that waits for its peer.
pub struct Connecting(pub(super) ());
/// An endpoint that had a connection at least once.
pub struct Connected {
    pub(super) data: KVec<u8>,
}

/// States in which receives may be posted.
pub trait Receives: sealed::Sealed {}

mod sealed {
    /// Of the states here only.
    pub trait Sealed {}
}

impl<R> sealed::Sealed for Enabled<R> {}
impl sealed::Sealed for Connecting {}
impl sealed::Sealed for Connected {}
impl<R> Receives for Enabled<R> {}
impl Receives for Connecting {}
impl Receives for Connected {}
