// SPDX-License-Identifier: GPL-2.0

//! `/dev/kfi_nvme`, to which is written what to connect to.

use crate::{
    controller::Controller,
    options::{
        HostId,
        Options, //
    }, //
};
use kernel::{
    fs::{
        File,
        Kiocb, //
    },
    iov::IovIterSource,
    miscdevice::{
        MiscDevice,
        MiscDeviceOptions,
        MiscDeviceRegistration, //
    },
    prelude::*,
    sync::{
        Arc,
        SetOnce, //
    }, //
};

kernel::sync::global_lock! {
    // SAFETY: Initialized by `Control::new`, before there is a device.
    unsafe(uninit) static CONTROLLERS: Mutex<KVec<(u32, Option<Arc<Controller>>)>> = KVec::new();
}

/// This host, unless it is told to be another one.
static HOST: SetOnce<HostId> = SetOnce::new();

/// The device, and what was connected by it.
pub(crate) struct Control {
    // Dropped in this order.
    _device: Pin<KBox<MiscDeviceRegistration<Device>>>,
    _controllers: LeaveAll,
}

impl Control {
    /// Registers the device. May sleep.
    ///
    /// # Safety
    ///
    /// To be called once.
    pub(crate) unsafe fn new() -> Result<Self> {
        // SAFETY: First of all, and once, as the caller promises.
        unsafe { CONTROLLERS.init() };
        HOST.populate(HostId::new());
        let options = MiscDeviceOptions { name: c"kfi_nvme" };
        Ok(Self {
            _device: KBox::pin_init(MiscDeviceRegistration::register(options), GFP_KERNEL)?,
            _controllers: LeaveAll,
        })
    }

    /// Connects as [`Options`] say, and returns the controller's number. Sleeps.
    pub(crate) fn connect(text: &str) -> Result<u32> {
        let host = HOST.copy().ok_or(EIO)?;
        let options = Options::parse(text, host)?;
        let instance = reserve()?;
        match Controller::connect(instance, options) {
            Ok(controller) => {
                let mut controllers = CONTROLLERS.lock();
                let found = controllers.iter_mut().find(|(i, _)| *i == instance);
                if let Some((_, place)) = found {
                    *place = Some(controller);
                }
                Ok(instance)
            }
            Err(error) => {
                CONTROLLERS.lock().retain(|(i, _)| *i != instance);
                Err(error)
            }
        }
    }

    /// Leaves a controller. Sleeps.
    ///
    /// # Errors
    ///
    /// - `ENODEV`: there is none of this number.
    fn disconnect(instance: u32) -> Result {
        let controller = {
            let mut controllers = CONTROLLERS.lock();
            let found = controllers.iter_mut().find(|(i, _)| *i == instance);
            found.and_then(|(_, place)| place.take()).ok_or(ENODEV)?
        };
        controller.leave();
        // Its number isn't given to another one before.
        CONTROLLERS.lock().retain(|(i, _)| *i != instance);
        Ok(())
    }
}

/// Takes a number that no controller has. May sleep.
fn reserve() -> Result<u32> {
    let mut controllers = CONTROLLERS.lock();
    let free = |i: &u32| controllers.iter().all(|(taken, _)| taken != i);
    let instance = (0..u32::MAX).find(free).ok_or(EBUSY)?;
    controllers.push((instance, None), GFP_KERNEL)?;
    Ok(instance)
}

/// Leaves all controllers when dropped, which sleeps.
struct LeaveAll;

impl Drop for LeaveAll {
    fn drop(&mut self) {
        let controllers = core::mem::take(&mut *CONTROLLERS.lock());
        for controller in controllers.into_iter().filter_map(|(_, there)| there) {
            controller.leave();
        }
    }
}

/// The device.
pub(crate) struct Device;

#[vtable]
impl MiscDevice for Device {
    type Ptr = KBox<Device>;

    fn open(_file: &File, _misc: &MiscDeviceRegistration<Self>) -> Result<KBox<Device>> {
        Ok(KBox::new(Device, GFP_KERNEL)?)
    }

    /// Carries out a line: `NAME=VALUE,...` connects, see [`Options::parse`]; `disconnect=NUMBER`
    /// leaves a controller.
    fn write_iter(_kiocb: Kiocb<'_, KBox<Device>>, iov: &mut IovIterSource<'_>) -> Result<usize> {
        if iov.len() > 2048 {
            return Err(E2BIG);
        }
        let mut text = KVec::new();
        let len = iov.copy_from_iter_vec(&mut text, GFP_KERNEL)?;
        let text = core::str::from_utf8(&text).map_err(|_| EINVAL)?.trim();
        match text.strip_prefix("disconnect=") {
            Some(number) => Control::disconnect(number.parse().map_err(|_| EINVAL)?)?,
            None => Control::connect(text).map(|_| ())?,
        }
        Ok(len)
    }
}
