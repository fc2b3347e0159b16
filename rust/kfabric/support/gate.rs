// SPDX-License-Identifier: GPL-2.0

//! The gate in front of what is taken away while others use it.
//!
//! Whoever uses it goes in first, and who takes it away shuts the gate and waits for those inside.
//! Going in and out is for any context, also out in another than in: a work request can be inside
//! for as long as the device has it, and be out with its completion in softirq. GateGuard one may
//! sleep.
//!
//! A gate counts those inside in one of two ways: [`PerCpu`], where they are many and the gate is
//! seldom shut; [`Shared`], where gates are many, or shut as often as they are gone through.
//!
//! # Why not what the kernel has
//!
//! - `kernel::revocable::Revocable` is entered under `rcu_read_lock()`. Who is inside can't sleep
//!   there, as everybody does who waits for a device, nor keep the right for a work request. What
//!   it guards is gone as soon as it was revoked: nobody can look at it first, put something
//!   else there, or leave it to another to go on with.
//! - `Srcu` lets readers sleep, but has a full memory barrier on each way in and out, and a few
//!   hundred bytes for each CPU. It waits for all who came before, not for all who are inside: that
//!   nobody comes afterwards is a flag of one's own, which each reader looks at.
//! - `percpu_ref` is what [`PerCpu`] is made of.
//!
//! Lockdep knows of a gate's lock, but not that who drains it waits for those inside: they may leave
//! in another context than they came in, which no lock of lockdep's can. So nobody may drain a gate
//! while inside of it, or with a lock that is taken inside.

mod keepers;
mod kunit;
mod kunit_races;
mod percpu;
mod shared;
mod users;

pub use self::{
    keepers::{
        BusyGuard,
        Drained,
        GateGuard,
        Shut, //
    },
    percpu::PerCpu,
    shared::Shared,
    users::Users, //
};
use core::{
    cell::UnsafeCell,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    static_lock_class,
    str::CStr,
    sync::{
        CondVar,
        Mutex, //
    }, //
};

/// The locks' name in lockdep. Gates of other types are made in other modules, where a literal
/// would be at another address, which lockdep takes to be another name of the same class.
static NAME: &CStr = c"kfabric_gate";

/// Guards something that is taken away while others may want to use it.
///
/// Whoever uses it [enters](Gate::enter) first. Once the gate is [shut](Gate::shut) nobody enters
/// any more, and the one who shut it can wait for those inside and have the thing to itself.
///
/// Lock order: the gate's lock is a leaf, but for what [`Gate::take_over`] asks under it, and for
/// the locks of the count. Entering and leaving doesn't take it.
///
/// Dropping a gate sleeps until nobody is inside; for ever, if an [`GateGuard`] was forgotten.
///
/// # Invariants
///
/// - The count is open in the phase `Phase::Open` only.
/// - `inside` is there in all phases but `Phase::Empty` and `Phase::Gone`. It is changed by who
///   has the lock in the phase `Phase::Empty`, and by who has a [`Drained`].
#[pin_data]
pub struct Gate<T, U: Users> {
    // First: dropping it waits for those inside.
    #[pin]
    users: U,
    #[pin]
    phase: Mutex<Phase>,
    #[pin]
    changed: CondVar,
    inside: UnsafeCell<Option<T>>,
}

// SAFETY: Nothing in it knows where it is used but what is behind it.
unsafe impl<T: Send, U: Users + Send> Send for Gate<T, U> {}
// SAFETY: What is behind it is shared with those inside, and dropped by whoever takes it away.
unsafe impl<T: Send + Sync, U: Users + Sync> Sync for Gate<T, U> {}

/// Where a gate is in its life.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// There is nothing behind it yet.
    Empty,
    /// Everybody may enter.
    Open,
    /// Someone shut the gate and is taking the thing away.
    Closing,
    /// Someone shut the gate and left it like that for now.
    Left,
    /// It is gone.
    Gone,
}

impl<T, U: Users> Gate<T, U> {
    /// An initialiser of a gate that is open. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(inside: T) -> impl PinInit<Self, Error> {
        Self::in_phase(Phase::Open, Some(inside))
    }

    /// An initialiser of a gate that nobody enters before it is [opened](Gate::open). May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn empty() -> impl PinInit<Self, Error> {
        Self::in_phase(Phase::Empty, None)
    }

    fn in_phase(phase: Phase, inside: Option<T>) -> impl PinInit<Self, Error> {
        // INVARIANT: Open, and with something behind it, or neither.
        try_pin_init!(Self {
            users <- U::new(phase == Phase::Open),
            phase <- Mutex::new(phase, NAME, static_lock_class!()),
            changed <- CondVar::new(NAME, static_lock_class!()),
            inside: UnsafeCell::new(inside),
        }? Error)
    }

    /// Lets everybody in, for the first time. Returns `false` if that was done before, or if the gate
    /// was shut without. May sleep, but not for long.
    pub fn open(&self, inside: T) -> bool {
        let mut phase = self.phase.lock();
        let first = *phase == Phase::Empty;
        if first {
            // SAFETY: By the invariant, nobody else has a reference in this phase, which the lock
            // keeps.
            unsafe { *self.inside.get() = Some(inside) };
            *phase = Phase::Open;
            // SAFETY: By the invariant it never was open; under the lock.
            unsafe { self.users.open() };
        }
        first
    }

    /// Sleeps until the one who shut the gate is done.
    pub fn wait_gone(&self) {
        let mut phase = self.phase.lock();
        while *phase != Phase::Gone {
            self.changed.wait(&mut phase);
        }
    }

    /// What is behind it.
    ///
    /// # Safety
    ///
    /// Nobody changes it meanwhile.
    #[inline]
    unsafe fn content(&self) -> Option<NonNull<T>> {
        // SAFETY: By the requirements of this function.
        unsafe { &*self.inside.get() }.as_ref().map(NonNull::from)
    }

    /// Gives a gate out of one's hands. May sleep, but not for long.
    fn end(&self, phase: Phase) {
        *self.phase.lock() = phase;
        self.changed.notify_all();
    }
}
