// SPDX-License-Identifier: GPL-2.0

//! Namespaces, which are disks here.

use crate::{
    controller::Controller,
    identify::Namespace,
    queue::{
        Owner, //
        RequestRefusal,
    }, //
};
use block::{
    Busy,
    Disk,
    Driver,
    Limits,
    Request,
    Status, //
};
use kernel::{
    prelude::*,
    str::CString,
    sync::{
        Arc,
        ArcBorrow, //
    }, //
};
use kfabric::consumer::Errno;

/// The driver of the disks.
pub(crate) struct Host;

/// The driver's part of a disk.
pub(crate) struct Target {
    controller: Arc<Controller>,
    number: u32,
    format: Namespace,
}

impl Driver for Host {
    const MAY_SLEEP: bool = true;
    // That is for the target to do, which knows its disk.
    const SCHEDULED: bool = false;
    type Disk = Target;

    fn queue(disk: ArcBorrow<'_, Target>, request: Request, _last: bool) -> Result<(), Busy> {
        let controller = &disk.controller;
        let Some(queue) = controller.queue(request.queue()) else {
            if controller.is_dead() {
                request.end(Status::Transport);
                return Ok(());
            }
            return Err(Busy(request));
        };
        match queue.submit(disk.number, &disk.format, request) {
            Ok(()) => Ok(()),
            Err(RequestRefusal(request, errno)) => {
                if errno != Errno::EAGAIN {
                    controller.broken(queue.link(), errno);
                }
                Err(Busy(request))
            }
        }
    }

    fn timed_out(disk: ArcBorrow<'_, Target>, queue: u32, tag: u32) {
        let controller = &disk.controller;
        pr_warn!(
            "{}: queue {}: command {tag} takes too long\n",
            controller.instance,
            queue + 1
        );
        // If it isn't there any more somebody has noticed.
        if let Some(queue) = controller.queue(queue) {
            controller.broken(queue.link(), Errno::ETIMEDOUT);
        }
    }
}

/// The disks of a controller.
#[derive(Default)]
pub(crate) struct Disks {
    disks: KVec<(u32, Namespace, Disk<Host>)>,
    /// There will be no more.
    ended: bool,
}

impl Disks {
    /// Returns all that there are, and lets no more be made. Any context.
    pub(crate) fn end(&mut self) -> impl Sized {
        self.ended = true;
        core::mem::take(&mut self.disks)
    }

    /// Makes disks of namespaces that are new. Sleeps.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`, and others of [`Disk::add`].
    pub(crate) fn update(
        &mut self,
        controller: &Arc<Controller>,
        found: &[(u32, Namespace)],
    ) -> Result {
        if self.ended {
            return Ok(());
        }
        for (number, format) in found {
            match self.disks.iter_mut().find(|(known, ..)| known == number) {
                None => {
                    let disk = add(controller, *number, *format)?;
                    self.disks.push((*number, *format, disk), GFP_KERNEL)?;
                }
                Some((_, known, disk)) if known.block_shift == format.block_shift => {
                    if known.blocks != format.blocks {
                        disk.set_sectors(format.sectors());
                        *known = *format;
                    }
                }
                Some((_, _, disk)) => {
                    pr_err!("namespace {number} has other blocks now\n");
                    disk.mark_dead();
                }
            }
        }
        for (number, _, disk) in self.disks.iter() {
            if !found.iter().any(|(there, _)| there == number) {
                pr_err!("namespace {number} is gone\n");
                disk.mark_dead();
            }
        }
        Ok(())
    }
}

fn add(controller: &Arc<Controller>, number: u32, format: Namespace) -> Result<Disk<Host>> {
    let name = CString::try_from_fmt(fmt!("kfi_nvme{}n{number}", controller.instance))?;
    let target = Target {
        controller: controller.clone(),
        number,
        format,
    };
    let sectors = format.sectors();
    let disk = Disk::add(
        &controller.tags,
        &name,
        &limits(controller, &format),
        sectors,
        Arc::new(target, GFP_KERNEL)?,
    )?;
    let mib = sectors >> 11;
    pr_info!("{}: namespace {number}: {mib} MiB\n", controller.instance);
    Ok(disk)
}

/// Returns the limits of target and regions.
fn limits(controller: &Controller, format: &Namespace) -> Limits {
    let info = &controller.info;
    let pieces = u32::try_from(controller.max_pieces).unwrap_or(1).max(1);
    let by_target = info.max_data.map_or(u32::MAX, |bytes| bytes >> 9);
    let block = 1 << format.block_shift;
    // The number of blocks is one of 16 bits.
    let blocks = 0xffff << (format.block_shift - 9);
    let if_can = |can, most| if can { most } else { 0 };
    Limits {
        logical_block_size: block,
        physical_block_size: block,
        max_sectors: (pieces * 8).min(by_target).min(blocks),
        max_segments: u16::try_from(pieces).unwrap_or(u16::MAX),
        virt_boundary: Some(4096),
        max_discard_sectors: if_can(info.can_discard, u32::MAX >> 9),
        discard_granularity: if_can(info.can_discard, block),
        max_write_zeroes_sectors: if_can(info.can_write_zeroes, blocks),
        write_cache: info.write_cache,
        fua: info.write_cache,
    }
}
