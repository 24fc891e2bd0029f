//! Coalescing: how neighbours within a window of requests become one read.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::queue::request::Request;
use crate::queue::run::Run;
use crate::queue::settings::Settings;

/// Makes runs of requests: device by device in the order of positions, joining what overlaps,
/// touches, or lies no further apart than the gap.
pub(super) fn runs(mut requests: Vec<Request>, settings: &Settings, into: &mut VecDeque<Run>) {
    let device = |request: &Request| Arc::as_ptr(&request.device).cast::<()>() as usize;
    requests.sort_by_key(|request| (device(request), request.offset));
    let mut group: Vec<Request> = Vec::new();
    let mut end = 0;
    for request in requests {
        let joins = group.first().is_some_and(|first| {
            let length = request.end().max(end) - first.offset;
            device(first) == device(&request)
                && request.offset <= end.saturating_add(settings.gap)
                && length <= settings.longest
        });
        if joins {
            end = request.end().max(end);
        } else {
            end = request.end();
            into.extend(Run::new(std::mem::take(&mut group)));
        }
        group.push(request);
    }
    into.extend(Run::new(group));
}

/// Runs of one request each, for those whose run failed.
pub(super) fn singles(requests: Vec<Request>, into: &mut VecDeque<Run>) {
    for request in requests.into_iter().rev() {
        if let Some(run) = Run::new(vec![request]) {
            into.push_front(run);
        }
    }
}
