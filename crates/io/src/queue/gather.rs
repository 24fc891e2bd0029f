//! Requests of a thread that are handed over together.

use std::cell::RefCell;
use std::sync::Arc;

use crate::queue::lane::Lane;
use crate::queue::request::Request;

/// Requests by the lane they go to.
type Gathered = Vec<(Arc<Lane>, Vec<Request>)>;

thread_local! {
    /// What this thread has asked for; `None` while it does not gather.
    static GATHERED: RefCell<Option<Gathered>> = const { RefCell::new(None) };
}

/// Adds a request to a lane, now or when this thread has gathered all.
pub(super) fn add(lane: &Arc<Lane>, request: Request) {
    let left = GATHERED.with_borrow_mut(|gathered| {
        let Some(lanes) = gathered else {
            return Some(request);
        };
        match lanes.iter_mut().find(|(other, _)| Arc::ptr_eq(other, lane)) {
            Some((_, requests)) => requests.push(request),
            None => lanes.push((lane.clone(), vec![request])),
        }
        None
    });
    if let Some(request) = left {
        lane.add([request]);
    }
}

/// Hands over what was gathered, also if there was a panic.
struct HandsOver;

impl Drop for HandsOver {
    fn drop(&mut self) {
        let gathered = GATHERED.take().unwrap_or_default();
        for (lane, requests) in gathered {
            lane.add(requests);
        }
    }
}

/// Gathers the requests that `ask` makes; within another call, that one hands them over.
pub(super) fn together<T>(ask: impl FnOnce() -> T) -> T {
    let outermost = GATHERED.with_borrow_mut(|gathered| {
        let outermost = gathered.is_none();
        gathered.get_or_insert_default();
        outermost
    });
    let _hands_over = outermost.then_some(HandsOver);
    ask()
}
