// SPDX-License-Identifier: GPL-2.0

//! Setup of a controller: queues, tag sets, and the requirements on the target.
//!
//! 1. The admin queue connects, and nvme-core identifies the controller.
//! 2. The transport's requirements are checked.
//! 3. The I/O queues connect. Their number may differ from that of the last connection.
//! 4. The controller is live.
//!
//! A failure of any step is undone by [teardown](crate::teardown).

use crate::{
    controller::{
        Controller,
        MAPS, //
    },
    ctrl::Work,
    failure::{
        check,
        Failure, //
    },
    mq_ops::MqOps,
    pdu::Pdu,
    prelude::*,
    transport::{
        QueueConfig,
        Transport,
        TransportQueue, //
    }, //
};

/// Number of entries of an admin queue (`NVME_AQ_DEPTH`).
const ADMIN_ENTRIES: u16 = 32;
/// Maximum number of entries of an I/O queue.
const MAX_ENTRIES: u16 = 256;
/// The target takes keyed descriptors (`NVME_CTRL_SGLS_KSDBDS`).
const KEYED_DESCRIPTORS: u32 = 1 << 2;
/// The target takes data in capsules (`NVME_CTRL_SGLS_SAOS`).
const OFFSETS_IN_CAPSULE: u32 = 1 << 20;

impl<T: Transport> Controller<T> {
    /// Connects a controller, which is new or was disconnected. On failure it is disconnected.
    /// Sleeps.
    pub(crate) fn setup(&self, is_new: bool) -> Result<(), Failure> {
        self.set_creator(is_new);
        self.queue(Work::Watch);
        let done = self
            .setup_admin(is_new)
            .and_then(|()| Ok(self.check_target()?))
            .and_then(|()| self.setup_io(is_new));
        // Before the controller is live: the watch ends requests.
        self.cancel(Work::Watch);
        // After the watch, which reads the creator.
        self.set_creator(false);
        let done = done.and_then(|()| self.go_live());
        match done {
            // A connection that broke meanwhile did not find a live controller.
            Ok(()) => self.stop_broken(),
            Err(_) => {
                // SAFETY: The controller is initialised.
                unsafe { b::nvme_stop_keep_alive(self.raw()) };
                self.disconnect(is_new);
            }
        }
        done
    }

    /// Connects the admin queue, and has nvme-core identify the controller.
    fn setup_admin(&self, is_new: bool) -> Result<(), Failure> {
        let ctrl = self.raw();
        let admin = self.admin()?;
        self.connect(0, ADMIN_ENTRIES, 0)?;
        let inside = admin.gate.enter().ok_or(ENODEV)?;
        let max_segments = inside.get().max_segments();
        drop(inside);
        // SAFETY: Only setup writes these, and the controller is initialised.
        unsafe {
            (*ctrl).max_segments = max_segments;
            // Of 512 bytes, where a segment has 4096.
            (*ctrl).max_hw_sectors = max_segments << 3;
            (*ctrl).max_integrity_segments = 0;
        }
        if is_new {
            let (set, _) = self.tags_of(0);
            // SAFETY: The controller is initialised, and the set is its own.
            check(unsafe {
                b::nvme_alloc_admin_tag_set(ctrl, set, MqOps::<T>::ADMIN, Pdu::<T>::SIZE)
            })?;
            self.has_admin_tags.store(true, Relaxed);
        }
        // SAFETY: The admin queue is connected, and there are tags.
        check(unsafe { b::nvmf_connect_admin_queue(ctrl) })?;
        admin.set_live()?;
        // SAFETY: The controller is connected.
        check(unsafe { b::nvme_enable_ctrl(ctrl) })?;
        // SAFETY: The controller is connected.
        unsafe { b::nvme_unquiesce_admin_queue(ctrl) };
        // SAFETY: The controller is enabled.
        check(unsafe { b::nvme_init_ctrl_finish(ctrl, false) })
    }

    /// Checks whether the target meets the requirements of this host, and limits the queue size.
    fn check_target(&self) -> Result {
        // SAFETY: Only setup writes these fields, which nvme-core has read from the target.
        let ctrl = unsafe { &mut *self.raw() };
        if ctrl.icdoff != 0 {
            dev_err!(
                self.device(),
                "the target wants data at an offset in capsules\n"
            );
            return Err(Errno::EOPNOTSUPP.into());
        }
        if ctrl.sgls & KEYED_DESCRIPTORS == 0 {
            dev_err!(self.device(), "the target does not accept keys of memory\n");
            return Err(Errno::EOPNOTSUPP.into());
        }
        let most = MAX_ENTRIES.min(ctrl.maxcmd).max(2) - 1;
        if ctrl.sqsize > most {
            dev_warn!(self.device(), "queue size limited to {}\n", most + 1);
            ctrl.sqsize = most;
        }
        Ok(())
    }

    /// Connects the I/O queues, if the controller has any.
    fn setup_io(&self, is_new: bool) -> Result<(), Failure> {
        let ctrl = self.raw();
        // SAFETY: The controller is initialised. Only setup changes the number.
        let (options, count) = unsafe { ((*ctrl).opts, (*ctrl).queue_count) };
        if count <= 1 {
            return Ok(());
        }
        // SAFETY: The options are the controller's.
        let mut wanted = c_int::try_from(unsafe { b::nvme_helper_nr_io_queues(options) })
            .map_err(Error::from)?;
        // SAFETY: The admin queue is live.
        check(unsafe { b::nvme_set_queue_count(ctrl, &mut wanted) })?;
        let count = u32::try_from(wanted).map_err(Error::from)?;
        if count == 0 {
            dev_err!(self.device(), "the target grants no I/O queue\n");
            return Err(ENOMEM.into());
        }
        let maps = self.io_queues.get();
        // SAFETY: Only setup uses these, while no I/O queue is connected.
        let are_maps_same = unsafe {
            (*ctrl).queue_count = count + 1;
            // nvme-core does not write the maps that are not used.
            let before = maps.replace([0; MAPS]);
            b::nvmf_set_io_queues(options, count, maps.cast());
            before == *maps
        };
        let (set, _) = self.tags_of(1);
        if is_new {
            // SAFETY: The controller is initialised, and the set is its own.
            check(unsafe {
                let maps = bindings::hctx_type_HCTX_MAX_TYPES;
                b::nvme_alloc_io_tag_set(ctrl, set, MqOps::<T>::IO, maps, Pdu::<T>::SIZE)
            })?;
            self.has_io_tags.store(true, Relaxed);
        }
        // A queue needs a hardware context. The number of contexts may differ from that of queues.
        // SAFETY: The set is allocated. Only setup changes the number.
        let contexts = || unsafe { (*set).nr_hw_queues };
        let first = contexts().min(count);
        self.connect_io(1, first)?;
        // A request that breaks each connection would keep the others from freezing, so that is only
        // done if it must be.
        let is_same = are_maps_same && contexts() == count;
        if !is_new && !is_same {
            self.update_contexts(count)?;
            self.connect_io(first + 1, contexts())?;
        }
        Ok(())
    }

    /// Waits until no request is queued, and changes the number of hardware contexts.
    fn update_contexts(&self, count: u32) -> Result<(), Failure> {
        let ctrl = self.raw();
        let (set, _) = self.tags_of(1);
        // SAFETY: The controller has an I/O tag set. Its queues that have a context are connected.
        let is_frozen = unsafe {
            b::nvme_start_freeze(ctrl);
            b::nvme_unquiesce_io_queues(ctrl);
            b::nvme_wait_freeze_timeout(ctrl) != 0
        };
        if is_frozen {
            let works = self.works.get();
            // SAFETY: The works are initialised.
            unsafe { b::nvme_helper_set_updating(works, true) };
            self.cancel(Work::Watch);
            self.cancel(Work::Broken);
            let contexts = count.try_into().unwrap_or(c_int::MAX);
            // SAFETY: The queues of the set are frozen. After the calls above nobody looks for requests
            // of the set. The works are initialised.
            unsafe {
                bindings::blk_mq_update_nr_hw_queues(set, contexts);
                b::nvme_helper_set_updating(works, false);
            }
            self.queue(Work::Broken);
            self.queue(Work::Watch);
        }
        // SAFETY: The queues were frozen above, if only in part.
        unsafe { b::nvme_unfreeze(ctrl) };
        is_frozen.then_some(()).ok_or(ENODEV.into())
    }

    /// Connects I/O queues.
    fn connect_io(&self, first: u32, last: u32) -> Result<(), Failure> {
        for qid in first..=last {
            let qid = u16::try_from(qid).map_err(Error::from)?;
            // SAFETY: nvme-core has read both from the target.
            let (sqsize, cntlid) = unsafe { ((*self.raw()).sqsize, (*self.raw()).cntlid) };
            self.connect(qid, sqsize.saturating_add(1), cntlid)?;
            let queue = self.queues.get(usize::from(qid)).ok_or(EINVAL)?;
            let inside = queue.gate.enter().ok_or(ENODEV)?;
            let max_segments = inside.get().max_segments();
            drop(inside);
            // SAFETY: Only setup writes the limit.
            if max_segments < unsafe { (*self.raw()).max_segments } {
                dev_err!(
                    self.device(),
                    "queue {qid} has a device that takes smaller requests than the admin queue's\n"
                );
                return Err(ENODEV.into());
            }
            // SAFETY: The queue is connected.
            check(unsafe { b::nvmf_connect_io_queue(self.raw(), qid) })?;
            queue.set_live()?;
        }
        Ok(())
    }

    /// Connects a queue.
    fn connect(&self, qid: u16, entries: u16, cntlid: u16) -> Result {
        let queue = self.queues.get(usize::from(qid)).ok_or(EINVAL)?;
        let (_, index) = self.tags_of(qid);
        // SAFETY: Only setup writes the numbers of queues.
        let numbers @ [writing, reading, _] = unsafe { *self.io_queues.get() };
        let is_polled = qid != 0 && index >= writing + reading;
        // SAFETY: The array has `HCTX_MAX_TYPES` numbers, one for each kind of queue.
        let cpu = (qid != 0).then(|| unsafe { b::nvme_helper_cpu_of(numbers.as_ptr(), index) });
        let config = QueueConfig {
            cpu: cpu.and_then(|cpu| u32::try_from(cpu).ok()),
            is_polled,
            qid,
            entries,
            sqsize: entries.saturating_sub(1),
            cntlid,
            in_capsule: if qid == 0 { 0 } else { self.in_capsule() },
        };
        queue.open(&config, |events| {
            let is_cancelled = || self.is_cancelled();
            if is_cancelled() {
                return Err(EINTR);
            }
            T::connect(&self.target, config, events, &is_cancelled)
        })
    }

    /// Returns the number of bytes that an I/O capsule may have behind its command.
    fn in_capsule(&self) -> u32 {
        // SAFETY: nvme-core has read both from the target.
        let (sgls, size) = unsafe { ((*self.raw()).sgls, (*self.raw()).ioccsz) };
        match sgls & OFFSETS_IN_CAPSULE {
            0 => 0,
            // In units of 16 bytes, with the command of 64.
            _ => size.saturating_mul(16).saturating_sub(64),
        }
    }

    /// Makes the controller live.
    fn go_live(&self) -> Result<(), Failure> {
        if !self.change_state(b::nvme_ctrl_state_NVME_CTRL_LIVE) {
            // Somebody deletes it.
            return Err(EINVAL.into());
        }
        // SAFETY: The controller is live.
        unsafe { b::nvme_start_ctrl(self.raw()) };
        Ok(())
    }
}
