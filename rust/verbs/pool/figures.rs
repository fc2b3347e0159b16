// SPDX-License-Identifier: GPL-2.0

//! The counters of a pool for people: a file in debugfs.

use super::Pool;
use crate::prelude::*;
use kernel::{
    debugfs::{
        Dir,
        File, //
    },
    fmt,
    str::CString, //
};

impl Pool {
    /// Writes the lines of the file: a name and a number each.
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        let lines = &state.lines;
        writeln!(f, "budget {}", lines.budget)?;
        writeln!(f, "pages {}", lines.pages)?;
        writeln!(f, "kept {}", lines.len())?;
        for (size, pages, len) in lines.sizes() {
            match size.kind() {
                Kind::LargePages => writeln!(f, "kept_large_{pages} {len}")?,
                _ => writeln!(f, "kept_{pages} {len}")?,
            }
        }
        let reserved = state.reserve.as_ref().map_or(0, |it| it.mrs.len());
        writeln!(f, "reserved {reserved}")?;
        writeln!(f, "taken {}", self.count.taken.load(Relaxed))?;
        writeln!(f, "missed {}", self.count.missed.load(Relaxed))?;
        writeln!(f, "given_back {}", self.count.given_back.load(Relaxed))?;
        writeln!(f, "of_reserve {}", self.count.of_reserve.load(Relaxed))?;
        let not_invalidated = self.count.not_invalidated.load(Relaxed);
        writeln!(f, "not_invalidated {not_invalidated}")
    }
}

kernel::sync::global_lock! {
    // SAFETY: Initialized by `Root::new`, which the module calls first.
    unsafe(uninit) static ROOT: Mutex<Option<Dir>> = None;
}

/// The module's directory, there from module init to exit.
pub(crate) struct Root;

impl Root {
    /// Makes the module's directory. May sleep.
    ///
    /// # Safety
    ///
    /// Called once, before anything else of this file.
    pub(crate) unsafe fn new() -> Self {
        // SAFETY: The caller promises that this is the only call, and the first use of the lock.
        unsafe { ROOT.init() };
        *ROOT.lock() = Some(Dir::new(c"kfi_verbs"));
        Self
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        // A static is never dropped.
        let dir = ROOT.lock().take();
        drop(dir);
    }
}

/// The file `kfi_verbs/DEVICE-pdID/pool`, which is gone when this is dropped. Nothing depends on it.
pub(crate) struct Shown {
    _file: Option<Pin<KBox<File<Arc<Pool>>>>>,
}

impl Shown {
    /// Shows a pool. May sleep.
    pub(crate) fn new(pool: &Arc<Pool>) -> Self {
        Self {
            _file: Self::file(pool).ok(),
        }
    }

    fn file(pool: &Arc<Pool>) -> Result<Pin<KBox<File<Arc<Pool>>>>> {
        let parent = ROOT.lock().clone().ok_or(ENODEV)?;
        let pd = &pool.pd;
        let name = CString::try_from_fmt(fmt!("{}-pd{}", pd.device().name(), pd.id()))?;
        let dir = parent.subdir(&name);
        KBox::pin_init(
            dir.read_callback_file(c"pool", pool.clone(), &|pool: &Arc<Pool>, f| pool.show(f)),
            GFP_KERNEL,
        )
    }
}
