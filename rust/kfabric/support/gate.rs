// SPDX-License-Identifier: GPL-2.0

//! A gate in front of an object that is taken away while others use it.
//!
//! A user enters the gate first. The task that takes the object away shuts the gate and waits until
//! all users have left. Users enter and leave in any context, also in different ones: a work
//! request is inside while the device has it, and leaves with its completion in softirq. A user
//! inside may sleep.
//!
//! A gate counts its users in one of two ways. [`PerCpu`] is for gates that many tasks enter and
//! that are rarely shut. [`Shared`] is for objects with many gates, and for gates that are entered
//! only a few times before they are shut.
//!
//! # Why not the primitives of the kernel
//!
//! - `kernel::revocable::Revocable` is entered under `rcu_read_lock()`. A user inside can't sleep
//!   there, as a task does that waits for a device, and a work request can't keep the right. The
//!   object is gone as soon as it was revoked: nobody can read it first, replace it, or leave it to
//!   another task.
//! - `Srcu` lets readers sleep, but has a full memory barrier on each entry and exit, and a few
//!   hundred bytes for each CPU. It waits for all readers that came before. It doesn't keep new
//!   readers out: each reader has to check a flag for that.
//! - `percpu_ref` is the base of [`PerCpu`].
//!
//! Lockdep knows the lock of a gate, but not that draining waits for the users: they may leave in
//! another context than they entered, which lockdep can't express. So no task may drain a gate
//! while it is inside, or with a lock that users take inside.

mod kunit;
mod users;

use self::users::NAME;
pub use self::users::{
    PerCpu,
    Shared,
    Users, //
};
use crate::prelude::*;
use core::cell::UnsafeCell;
use kernel::static_lock_class;

/// Guards an object that is taken away while others may want to use it.
///
/// A user [enters](Gate::enter) first. Once the gate is [shut](Gate::shut), no user enters any
/// more. The task that shut it can wait for the users and then owns the object alone.
///
/// Lock order: the gate's lock is a leaf, but for the callback of [`Gate::take_over`] and for the
/// locks of the count. Entering and leaving doesn't take it.
///
/// Dropping a gate sleeps until all users have left. It sleeps for ever if a [`GateGuard`] was
/// forgotten.
///
/// # Invariants
///
/// - The count is open in the phase `Phase::Open` only.
/// - `inside` is set in all phases but `Phase::Empty` and `Phase::Gone`. Only the holder of the
///   lock in the phase `Phase::Empty` changes it, and the holder of a [`Drained`].
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

// SAFETY: All fields but `inside` may be moved to another thread, and `T` is `Send`.
unsafe impl<T: Send, U: Users + Send> Send for Gate<T, U> {}
// SAFETY: Users share the object, so `T` is `Sync`. The task that takes it away drops it, so `T` is
// `Send`.
unsafe impl<T: Send + Sync, U: Users + Sync> Sync for Gate<T, U> {}

/// The phase in the life of a gate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// There is no object yet.
    Empty,
    /// Users may enter.
    Open,
    /// A task has shut the gate and is taking the object away.
    Closing,
    /// A task has shut the gate and left it so for now.
    Left,
    /// The object is gone.
    Gone,
}

impl<T, U: Users> Gate<T, U> {
    /// Returns an initialiser of an open gate. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`.
    pub fn new(inside: T) -> impl PinInit<Self, Error> {
        Self::in_phase(Phase::Open, Some(inside))
    }

    /// Returns an initialiser of a gate that no user enters before it is [opened](Gate::open). May
    /// sleep.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`.
    pub fn empty() -> impl PinInit<Self, Error> {
        Self::in_phase(Phase::Empty, None)
    }

    fn in_phase(phase: Phase, inside: Option<T>) -> impl PinInit<Self, Error> {
        // INVARIANT: The gate is open and has an object, or neither.
        try_pin_init!(Self {
            users <- U::new(phase == Phase::Open),
            phase <- Mutex::new(phase, NAME, static_lock_class!()),
            changed <- CondVar::new(NAME, static_lock_class!()),
            inside: UnsafeCell::new(inside),
        }? Error)
    }

    /// Opens the gate, which is new or was [reset](Drained::reset). Returns `false` if it was opened
    /// before, or shut without that. May sleep, but not for long.
    pub fn open(&self, inside: T) -> bool {
        let mut phase = self.phase.lock();
        let first = *phase == Phase::Empty;
        if first {
            // SAFETY: By the invariant, no reference to `inside` exists in the phase `Empty`, and
            // the lock keeps the phase.
            unsafe { *self.inside.get() = Some(inside) };
            *phase = Phase::Open;
            // SAFETY: The count was never open, or `reset` has seen it drained. The lock keeps other
            // tasks from opening or shutting it.
            unsafe { self.users.open() };
        }
        first
    }

    /// Sleeps until the task that shut the gate has taken the object away.
    pub fn wait_gone(&self) {
        let mut phase = self.phase.lock();
        while *phase != Phase::Gone {
            self.changed.wait(&mut phase);
        }
    }

    /// Returns the object behind the gate.
    ///
    /// # Safety
    ///
    /// Nobody changes `inside` during the call.
    #[inline]
    unsafe fn content(&self) -> Option<NonNull<T>> {
        // SAFETY: The caller promises that nobody changes `inside` during the call.
        unsafe { &*self.inside.get() }.as_ref().map(NonNull::from)
    }

    /// Sets the phase in which the keeper leaves the gate. May sleep, but not for long.
    fn end(&self, phase: Phase) {
        *self.phase.lock() = phase;
        self.changed.notify_all();
    }
}

impl<T, U: Users> Gate<T, U> {
    /// Enters, unless the gate is shut. Any context.
    #[inline]
    pub fn enter(&self) -> Option<GateGuard<'_, T, U>> {
        Some(GateGuard(self.hold()?, PhantomData))
    }

    /// Enters for longer than the caller has a reference to the gate: for a work request that the
    /// device has. The task that takes the object away waits for it. The contexts are those of
    /// [`enter`](Self::enter).
    #[inline]
    pub fn hold(&self) -> Option<BusyGuard<T, U>> {
        if !self.users.enter() {
            return None;
        }
        // SAFETY: The user was counted in the phase `Open`. A `Drained` exists only after all
        // counted users have left, or have promised `give_up` not to use the object. So nobody changes
        // `inside` under this user.
        let inside = unsafe { self.content() }?;
        // SAFETY: `users` has just counted this user, and `inside` is the object of this gate.
        Some(unsafe { BusyGuard::new(inside, &self.users) })
    }

    /// Shuts the gate. Returns `None` if another task did, or if there was never an object, which
    /// then counts as gone. May sleep, but not for long.
    pub fn shut(&self) -> Option<Shut<'_, T, U>> {
        let mut phase = self.phase.lock();
        match *phase {
            Phase::Open => {
                *phase = Phase::Closing;
                // SAFETY: The count is open by the invariant. The lock keeps other tasks from
                // opening or shutting it.
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

    /// Takes up a gate that was shut and [left](Shut::leave). Returns `None` if it wasn't. May
    /// sleep, but not for long.
    pub fn resume(&self) -> Option<Shut<'_, T, U>> {
        let mut phase = self.phase.lock();
        if *phase != Phase::Left {
            return None;
        }
        *phase = Phase::Closing;
        // SAFETY: No task keeps a gate in the phase `Left`, which it was in. The phase is `Closing`
        // now.
        unsafe { self.keeper() }
    }

    /// Takes the place of the task that shut the gate, as soon as that task has left it and `may`
    /// agrees. Returns `None` if that task has taken the object away. Sleeps.
    ///
    /// # Errors
    ///
    /// - The error of `may`. The gate stays as it is then. `may` runs under the gate's lock.
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
        // SAFETY: No task keeps a gate in the phase `Left`. The lock keeps the phase until it is
        // `Closing` or `keeper` is dropped.
        let keeper = unsafe { self.keeper() };
        if let Some(shut) = &keeper {
            may(shut.get())?;
        }
        *phase = Phase::Closing;
        Ok(keeper)
    }

    /// Returns the gate to its keeper.
    ///
    /// # Safety
    ///
    /// The caller holds the lock. It is the only keeper of the gate: in the phase `Closing`, or, if
    /// it uses the result under the lock only, in the phase `Left`.
    unsafe fn keeper(&self) -> Option<Shut<'_, T, U>> {
        // SAFETY: In these phases only a `Drained` changes `inside`, and the caller is the only
        // keeper.
        let inside = unsafe { self.content() }?;
        // INVARIANT: The caller promises that the phase is `Closing`, or `Left` under the lock, and
        // that there is no other keeper.
        Some(Shut { gate: self, inside })
    }
}

/// The right to use the object behind a gate, for any time. Dropped in any context.
///
/// # Invariants
///
/// `users` has counted this. So neither `users` nor `inside`, which is behind the same gate, is
/// changed or dropped.
pub struct BusyGuard<T, U: Users> {
    // Pointers, since references would claim to be valid until `drop` has returned.
    inside: NonNull<T>,
    users: NonNull<U>,
}

// SAFETY: It gives shared references only, and may be given up anywhere.
unsafe impl<T: Sync, U: Users + Sync> Send for BusyGuard<T, U> {}
// SAFETY: It gives shared references only.
unsafe impl<T: Sync, U: Users + Sync> Sync for BusyGuard<T, U> {}

impl<T, U: Users> BusyGuard<T, U> {
    /// Takes over the count of a user.
    ///
    /// # Safety
    ///
    /// `users` has counted the caller, which no longer relies on it. `inside` is behind the same
    /// gate.
    #[inline]
    unsafe fn new(inside: NonNull<T>, users: &U) -> Self {
        // INVARIANT: The caller promises that `users` has counted it and that `inside` is behind
        // the same gate. The gate is pinned, since it has initialisers only, and its `drop` waits
        // for users.
        Self {
            inside,
            users: NonNull::from(users),
        }
    }

    /// Returns the object behind the gate. Any context.
    #[inline]
    pub fn get(&self) -> &T {
        // SAFETY: `inside` exists and isn't changed while `self` exists, by the invariant.
        unsafe { self.inside.as_ref() }
    }
}

impl<T, U: Users> Drop for BusyGuard<T, U> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `users` exists by the invariant, and has counted this, which ends here.
        unsafe { self.users.as_ref().leave() };
    }
}

/// The right to use the object behind a gate for no longer than a reference to the gate: so nobody
/// drops a gate while inside.
pub struct GateGuard<'a, T, U: Users>(BusyGuard<T, U>, PhantomData<&'a Gate<T, U>>);

impl<T, U: Users> GateGuard<'_, T, U> {
    /// Returns the object behind the gate. Any context.
    #[inline]
    pub fn get(&self) -> &T {
        self.0.get()
    }
}

/// A shut gate, and its keeper.
///
/// # Invariants
///
/// The gate is in the phase `Phase::Closing`, and there is no other `Shut` or [`Drained`] of it. A
/// `Shut` that is used under the gate's lock only may exist in the phase `Phase::Left`. `inside` is
/// behind the gate.
#[must_use = "the gate stays shut, and nobody can go on with it"]
pub struct Shut<'a, T, U: Users> {
    gate: &'a Gate<T, U>,
    inside: NonNull<T>,
}

impl<'a, T, U: Users> Shut<'a, T, U> {
    /// Returns the object behind the gate. Other users may still be inside. Any context.
    pub fn get(&self) -> &T {
        // SAFETY: `inside` exists by the invariant. Only a `Drained` takes it away, and there is
        // none.
        unsafe { self.inside.as_ref() }
    }

    /// Leaves the gate shut; [`Gate::resume`] takes it up. May sleep, but not for long.
    pub fn leave(self) {
        self.gate.end(Phase::Left);
    }

    /// Sleeps until all users have left.
    pub fn drain(self) -> Drained<'a, T, U> {
        self.gate.users.drain();
        // INVARIANT: The gate was shut, and only the returned value opens it.
        Drained(self)
    }
}

impl<'a, T> Shut<'a, T, Shared> {
    /// Returns the number of users inside. Any context.
    pub fn users(&self) -> usize {
        self.gate.users.count()
    }

    /// Treats the gate as drained. Any context.
    ///
    /// # Safety
    ///
    /// Users that are inside must not use the object any more. They may leave at any time.
    pub unsafe fn give_up(self) -> Drained<'a, T, Shared> {
        // INVARIANT: The caller promises that no user that is inside uses the object.
        Drained(self)
    }
}

/// A shut gate that no user is inside of.
///
/// # Invariants
///
/// All users of the gate have left, or do not use the object any more.
#[must_use = "the gate stays shut, and nobody can go on with it"]
pub struct Drained<'a, T, U: Users>(Shut<'a, T, U>);

impl<T, U: Users> Drained<'_, T, U> {
    /// Returns the object behind the gate, which no other task uses. Any context.
    pub fn get(&self) -> &T {
        self.0.get()
    }

    /// Leaves the gate shut; [`Gate::resume`] takes it up. May sleep, but not for long.
    pub fn leave(self) {
        self.0.leave();
    }

    /// Replaces the object and opens the gate again. Sleeps as long as dropping the old object
    /// does.
    pub fn replace(self, inside: T) {
        let gate = self.0.gate;
        // SAFETY: By the invariants, no user uses the object, none enters, and this is the only keeper.
        unsafe { *gate.inside.get() = Some(inside) };
        let mut phase = gate.phase.lock();
        *phase = Phase::Open;
        // SAFETY: The count was shut and drained by the invariants. The lock keeps other tasks from
        // opening or shutting it.
        unsafe { gate.users.open() };
    }

    /// Takes the object away, so that the gate can be [opened](Gate::open) again. May sleep, but not
    /// for long.
    pub fn reset(self) -> Option<T> {
        let gate = self.0.gate;
        // SAFETY: By the invariants, no user uses the object, none enters, and this is the only keeper.
        let inside = unsafe { (*gate.inside.get()).take() };
        gate.end(Phase::Empty);
        inside
    }

    /// Takes the object away and wakes the tasks that wait for that. Sleeps as long as dropping the
    /// object does.
    pub fn take_away(self) {
        let gate = self.0.gate;
        // SAFETY: By the invariants, no user uses the object, none enters, and this is the only keeper.
        unsafe { *gate.inside.get() = None };
        gate.end(Phase::Gone);
    }
}
