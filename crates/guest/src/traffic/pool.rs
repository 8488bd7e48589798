//! A thread pool: starting a thread takes ten system calls, waking one takes one.

use crate::channel;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

type Task = Box<dyn FnOnce() + Send>;

/// The stack size. A thousand threads take 64 MiB of address space, and a tenth of that in memory.
const STACK: usize = 64 << 10;

static IDLE: Mutex<Vec<SyncSender<Task>>> = Mutex::new(Vec::new());

/// Runs the task at once, in a thread that is reused afterwards. The task may leave the thread in
/// any network namespace: sockets stay where they were created.
pub(super) fn in_thread(task: impl FnOnce() + Send + 'static) {
    let mut task: Task = Box::new(task);
    let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
    if let Some(thread) = idle {
        thread.send(task).expect("an idle thread waits for a task");
        return;
    }
    let (sender, tasks) = sync_channel::<Task>(1);
    in_new_thread(move || {
        loop {
            task();
            IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(sender.clone());
            task = tasks.recv().expect("this thread has a sender itself");
        }
    });
}

/// Runs the task at once, in a thread that is not reused.
pub(super) fn in_new_thread(task: impl FnOnce() + Send + 'static) {
    if let Err(error) = Builder::new().stack_size(STACK).spawn(task) {
        channel::fail(&format!("a new thread: {error}"));
    }
}
