// SPDX-License-Identifier: GPL-2.0

//! The second half of a registration: the device registers a batch of device regions.
//!
//! A request that fails takes down all requests on the same queue pair. So a device region whose request was flushed
//! is registered again, by itself.

use super::spec::MrSpec;
use crate::{
    lists,
    prelude::*, //
};
use core::ops::DerefMut;
use kernel::alloc::AllocError;
use kfabric::ListVec;
use rdma::{
    mr::RegisterError,
    sg::DmaList, //
};

/// How often a device region is registered when failures of others flush its request. The failures are those of
/// their devices or drivers. So a failure of each attempt means that something is wrong with all of them.
const ATTEMPTS: u32 = 8;

/// Registers device regions with these attributes. `done` gets the result of each, in order. Sleeps until the device
/// is done with all of them.
///
/// # Errors
///
/// No peer reaches the device region then. The errors of a result are:
///
/// - `ENOTRECOVERABLE`: the device won't let go of the memory.
/// - `ENODEV`: the device is gone.
/// - `ENETDOWN`, `ENOMEM`, `EIO`: the queue or the request failed.
#[inline(always)]
pub(crate) fn register<L: DmaList>(
    resources: &Resources,
    specs: &[MrSpec],
    prepared: impl DerefMut<Target = [PreparedMr<L>]> + IntoIterator<Item = PreparedMr<L>>,
    mut done: impl FnMut(Result<ValidMr, Refusal>),
) {
    let queue = match resources.queue_pair() {
        Ok(queue) => queue,
        Err(error) => {
            // The caller may close the regions next.
            drop(prepared);
            let refusal = driver_errors::no_queue(error);
            return specs.iter().for_each(|_| done(Err(refusal)));
        }
    };
    if let Err(failed) = queue.register_all(prepared, |valid| done(Ok(valid))) {
        drop(queue);
        register_again(resources, specs, failed, &mut done);
    }
}

/// Registers the memory of a request that takes one device region. Sleeps until the device is done.
///
/// One segment that is contiguous needs no list but one on the stack, on a device that takes kernel addresses.
///
/// # Errors
///
/// The errors of the memory, of [`MrSpec::prepare`] and of [`register`].
#[inline]
pub(crate) fn register_request(
    resources: &Resources,
    spec: &MrSpec,
    request: &MrRequest<'_>,
) -> Result<ValidMr, Refusal> {
    match lists::of_run(resources.pd.device(), request)? {
        Some(list) => register_one(resources, spec, spec.prepare(resources, list)?),
        None => register_list(resources, spec, request),
    }
}

/// Registers memory in several segments, or not contiguous, as [`register_request`].
#[inline(never)]
fn register_list(
    resources: &Resources,
    spec: &MrSpec,
    request: &MrRequest<'_>,
) -> Result<ValidMr, Refusal> {
    if let Some(list) = lists::own(resources, request) {
        let prepared = spec.prepare(resources, list);
        // If the device does not take the list, an entry is no page.
        let prepared = prepared.inspect_err(|_| request.set_mistaken())?;
        return register_one(resources, spec, prepared);
    }
    let list = lists::map_no_run(resources, request, &spec.piece)?;
    register_one(resources, spec, spec.prepare(resources, list)?)
}

/// Registers one device region, as [`register`].
#[inline(always)]
fn register_one<L: DmaList>(
    resources: &Resources,
    spec: &MrSpec,
    prepared: PreparedMr<L>,
) -> Result<ValidMr, Refusal> {
    let mut done = Err(Errno::EIO.into());
    let specs = slice::from_ref(spec);
    register(resources, specs, SmallVec::one(prepared), |one| done = one);
    done
}

/// Registers device regions by themselves after the failure of their batch, unless the failure is their own.
#[cold]
fn register_again<L: DmaList>(
    resources: &Resources,
    specs: &[MrSpec],
    failed: RegisterError<L>,
    done: &mut impl FnMut(Result<ValidMr, Refusal>),
) {
    let lists = match failed.lists {
        Ok(lists) => lists,
        Err(error) => {
            let refusal = driver_errors::not_undone(error);
            return specs.iter().for_each(|_| done(Err(refusal)));
        }
    };
    let is_own = match failed.error {
        // Once is enough to find out that the device does not answer.
        WrError::TimedOut => true,
        WrError::Flushed => false,
        _ => specs.len() == 1,
    };
    if is_own {
        let refusal = driver_errors::not_registered(resources.pd.device(), failed.error);
        return specs.iter().for_each(|_| done(Err(refusal)));
    }
    for (spec, list) in specs.iter().zip(lists) {
        done(register_alone(resources, spec, list));
    }
}

/// Registers a device region, by another one for each attempt, as long as its request is flushed.
fn register_alone<L: DmaList>(
    resources: &Resources,
    spec: &MrSpec,
    mut list: L,
) -> Result<ValidMr, Refusal> {
    let mut error = WrError::Flushed;
    for _ in 1..ATTEMPTS {
        let prepared = spec.prepare(resources, list)?;
        let queue = resources.queue_pair().map_err(driver_errors::no_queue)?;
        let mut valid = None;
        let Err(failed) = queue.register_all(SmallVec::one(prepared), |one| valid = Some(one))
        else {
            return valid.ok_or(Errno::EIO.into());
        };
        let mut lists = failed.lists.map_err(driver_errors::not_undone)?;
        error = failed.error;
        list = match (error, lists.take_only()) {
            (WrError::Flushed, Some(list)) => list,
            _ => break,
        };
    }
    Err(driver_errors::not_registered(resources.pd.device(), error))
}

/// Device regions of several regions, one of each.
pub(crate) struct Batch {
    specs: ListVec<MrSpec>,
    prepared: ListVec<PreparedMr<Memory>>,
}

impl Batch {
    /// Allocates an empty batch for up to `count` device regions. May sleep.
    pub(crate) fn with_capacity(count: usize) -> Result<Self, AllocError> {
        Ok(Self {
            specs: ListVec::with_capacity(count, GFP_KERNEL)?,
            prepared: ListVec::with_capacity(count, GFP_KERNEL)?,
        })
    }

    /// Adds a device region, for which there must be room.
    #[inline]
    pub(crate) fn push(&mut self, spec: MrSpec, prepared: PreparedMr<Memory>) {
        self.specs.push_reserved(spec);
        self.prepared.push_reserved(prepared);
    }

    /// Registers all of them, as [`register`].
    pub(crate) fn register(
        self,
        resources: &Resources,
        done: impl FnMut(Result<ValidMr, Refusal>),
    ) {
        if !self.specs.is_empty() {
            register(resources, &self.specs, self.prepared, done);
        }
    }
}
