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
//!
//! Going through a gate, and shutting it: what those who do have in their hands.

mod kunit;
mod users;

use self::users::NAME;
pub use self::users::{
    PerCpu,
    Shared,
    Users, //
};
use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    static_lock_class,
    sync::{
        CondVar,
        Mutex, //
    }, //
};

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

impl<T, U: Users> Gate<T, U> {
    /// Goes in, unless the gate is shut. Any context; with `Shared` one in which a spinlock may be
    /// taken.
    #[inline]
    pub fn enter(&self) -> Option<GateGuard<'_, T, U>> {
        Some(GateGuard(self.hold()?, PhantomData))
    }

    /// As [`enter`](Self::enter), for longer than the caller knows the gate: for a work request that
    /// the device has. Whoever takes the gate away waits for it. The same contexts.
    #[inline]
    pub fn hold(&self) -> Option<BusyGuard<T, U>> {
        if !self.users.enter() {
            return None;
        }
        // SAFETY: Who is counted came in the phase `Open`, and there is no `Drained` meanwhile.
        let inside = unsafe { self.content() }?;
        // SAFETY: Just counted; it is what is behind this gate.
        Some(unsafe { BusyGuard::new(inside, &self.users) })
    }

    /// Shuts the gate. Returns `None` if someone else did, or if there was never anything behind it,
    /// which then counts as gone. May sleep, but not for long.
    pub fn shut(&self) -> Option<Shut<'_, T, U>> {
        let mut phase = self.phase.lock();
        match *phase {
            Phase::Open => {
                *phase = Phase::Closing;
                // SAFETY: Open by the invariant; under the lock.
                unsafe { self.users.shut() };
                // SAFETY: The phase was neither `Closing` nor `Left`, and is `Closing` now.
                unsafe { self.keeper() }
            }
            Phase::Empty => {
                *phase = Phase::Gone;
                None
            }
            _ => None,
        }
    }

    /// Goes on with a gate that was shut and [left](Shut::leave). Returns `None` if it wasn't. May
    /// sleep, but not for long.
    pub fn resume(&self) -> Option<Shut<'_, T, U>> {
        let mut phase = self.phase.lock();
        if *phase != Phase::Left {
            return None;
        }
        *phase = Phase::Closing;
        // SAFETY: Nobody goes on with it in the phase `Left`, which it was in; it is `Closing` now.
        unsafe { self.keeper() }
    }

    /// Goes on in the place of the one who shut the gate, as soon as that one has left it, and if
    /// `may` agrees, which is asked then. Returns `None` if that one is done. Sleeps.
    ///
    /// # Errors
    ///
    /// What `may` says; the gate is left as it is then. It is called under the gate's lock.
    pub fn take_over<E>(
        &self,
        may: impl FnOnce(&T) -> Result<(), E>,
    ) -> Result<Option<Shut<'_, T, U>>, E> {
        let mut phase = self.phase.lock();
        loop {
            match *phase {
                Phase::Left => break,
                Phase::Gone => return Ok(None),
                _ => self.changed.wait(&mut phase),
            }
        }
        // SAFETY: Nobody goes on with it in the phase `Left`, which the lock keeps it in for as long
        // as this is only lent.
        let keeper = unsafe { self.keeper() };
        if let Some(shut) = &keeper {
            may(shut.get())?;
        }
        *phase = Phase::Closing;
        Ok(keeper)
    }

    /// The gate in the hands of one.
    ///
    /// # Safety
    ///
    /// Called under the lock, by the only one who goes on with the gate: in the phase `Closing`, or, if
    /// it is used under the lock only, in the phase `Left`.
    unsafe fn keeper(&self) -> Option<Shut<'_, T, U>> {
        // SAFETY: In these phases only a `Drained` changes it, which nobody else has.
        let inside = unsafe { self.content() }?;
        // INVARIANT: By the requirements of this function.
        Some(Shut { gate: self, inside })
    }
}

/// The right to use what is behind the gate, for as long as one likes. Given up when dropped, in
/// any context.
///
/// # Invariants
///
/// Counted by `users`, and so neither that nor `inside`, which is behind the same gate, is changed
/// or dropped.
pub struct BusyGuard<T, U: Users> {
    // Not references, which would claim to be good until a drop of this has returned.
    inside: NonNull<T>,
    users: NonNull<U>,
}

// SAFETY: It gives shared references only, and may be given up anywhere.
unsafe impl<T: Sync, U: Users + Sync> Send for BusyGuard<T, U> {}
// SAFETY: It gives shared references only.
unsafe impl<T: Sync, U: Users + Sync> Sync for BusyGuard<T, U> {}

impl<T, U: Users> BusyGuard<T, U> {
    /// Takes over somebody who was counted.
    ///
    /// # Safety
    ///
    /// The caller was counted by `users`, and is no more. `inside` is behind the same gate.
    #[inline]
    unsafe fn new(inside: NonNull<T>, users: &U) -> Self {
        // INVARIANT: By the requirements of this function. A gate changes nothing while somebody
        // is inside; it is pinned, since there are only initialisers of it, and its drop waits.
        Self {
            inside,
            users: NonNull::from(users),
        }
    }

    /// What is behind the gate. Any context.
    #[inline]
    pub fn get(&self) -> &T {
        // SAFETY: `inside` is there and isn't changed for as long as `self`, by the invariant.
        unsafe { self.inside.as_ref() }
    }
}

impl<T, U: Users> Drop for BusyGuard<T, U> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `users` is there by the invariant, and has counted this, which ends here.
        unsafe { self.users.as_ref().leave() };
    }
}

/// The same, but for no longer than a reference to the gate lives: so nobody drops a gate while
/// inside of it.
pub struct GateGuard<'a, T, U: Users>(BusyGuard<T, U>, PhantomData<&'a Gate<T, U>>);

impl<T, U: Users> GateGuard<'_, T, U> {
    /// What is behind the gate. Any context.
    #[inline]
    pub fn get(&self) -> &T {
        self.0.get()
    }
}

/// A shut gate, in the hands of the one who shut it.
///
/// # Invariants
///
/// The gate is in the phase `Phase::Closing`, and there is no other `Shut` or [`Drained`] of it;
/// but for one that is only lent, under the gate's lock in the phase `Phase::Left`. `inside` is
/// behind it.
#[must_use = "the gate stays shut, and nobody can go on with it"]
pub struct Shut<'a, T, U: Users> {
    gate: &'a Gate<T, U>,
    inside: NonNull<T>,
}

impl<'a, T, U: Users> Shut<'a, T, U> {
    /// What is behind the gate; others may still be using it. Any context.
    pub fn get(&self) -> &T {
        // SAFETY: By the invariant, it is there; only a `Drained` would take it away.
        unsafe { self.inside.as_ref() }
    }

    /// Leaves it shut; [`Gate::resume`] goes on. May sleep, but not for long.
    pub fn leave(self) {
        self.gate.end(Phase::Left);
    }

    /// Sleeps until nobody is inside.
    pub fn drain(self) -> Drained<'a, T, U> {
        self.gate.users.drain();
        // INVARIANT: The gate was shut, and nobody opens it but by what is returned.
        Drained(self)
    }
}

/// Nobody is behind the gate any more, and nobody gets in.
///
/// # Invariants
///
/// All who were inside the gate have left.
#[must_use = "the gate stays shut, and nobody can go on with it"]
pub struct Drained<'a, T, U: Users>(Shut<'a, T, U>);

impl<T, U: Users> Drained<'_, T, U> {
    /// What is behind the gate, and used by nobody else. Any context.
    pub fn get(&self) -> &T {
        self.0.get()
    }

    /// Leaves it shut; [`Gate::resume`] goes on. May sleep, but not for long.
    pub fn leave(self) {
        self.0.leave();
    }

    /// Puts something else in its place, and lets everybody in again. Sleeps as dropping what was
    /// there does.
    pub fn replace(self, inside: T) {
        let gate = self.0.gate;
        // SAFETY: By the invariants, nobody else uses it, or gets to it.
        unsafe { *gate.inside.get() = Some(inside) };
        let mut phase = gate.phase.lock();
        *phase = Phase::Open;
        // SAFETY: Shut and drained by the invariants; under the gate's lock.
        unsafe { gate.users.open() };
    }

    /// Takes it away, and lets those go on who wait for that. Sleeps as dropping it does.
    pub fn take_away(self) {
        let gate = self.0.gate;
        // SAFETY: By the invariants, nobody else uses it, or gets to it.
        unsafe { *gate.inside.get() = None };
        gate.end(Phase::Gone);
    }
}
