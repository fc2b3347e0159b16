// SPDX-License-Identifier: GPL-2.0

//! Keeps an event queue for another module, and uses it on its own way out, when that module may be
//! gone: whatever was that module's must not be called any more.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use kfabric::consumer::{
    Entry,
    Event,
    EventQueue,
    InfoList, //
};

module! {
    type: Keeper,
    name: "kfi_keeper",
    authors: ["kfabric developers"],
    description: "kfabric selftest: keeps the event queues of modules that go",
    license: "GPL",
}

kernel::sync::global_lock! {
    // SAFETY: Initialized first of all, by the module.
    unsafe(uninit) static KEPT: Mutex<Option<Arc<EventQueue>>> = None;
}

/// Keeps a queue until this module goes. May sleep.
pub fn keep(queue: Arc<EventQueue>) {
    let before = KEPT.lock().replace(queue);
    drop(before);
}

/// The module.
struct Keeper;

impl kernel::Module for Keeper {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        // SAFETY: First of all, and once.
        unsafe { KEPT.init() };
        Ok(Self)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let kept = KEPT.lock().take();
        if let Some(queue) = kept {
            let written = queue.events().write(&Event::Notify(Entry {
                object: 1,
                context: 0,
                data: 0,
            }));
            // This waits for the handler, if there is one.
            let closed = EventQueue::close(queue).map_err(|error| error.errno());
            pr_info!("written {written:?}, closed {closed:?}\n");
        }
        let forgotten = InfoList::all().map_or(0, |offers| {
            let names = offers.iter().map(|info| info.prov_name());
            names.filter(|name| *name == c"forgotten").count()
        });
        pr_info!("{forgotten} offers of a provider that is gone\n");
    }
}
