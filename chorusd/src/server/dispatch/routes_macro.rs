//! The macro `routes!`, which makes the dispatch function from a table of methods: each has one operation with the services that it
//! uses, and one of five ways to run it.

/// Makes `ROUTED_NAMES` and `route` of a table of methods.
///
/// An operation is followed by the fields of `Ops` that it takes; without any it takes the whole, which `inline`, `spawned` and `spawned_with_progress` allow.
///
/// - `inline` runs the operation in the connection's task, and `spawned` in one of its own;
/// - `…_of_connection` passes the connection on;
/// - `spawned_…` of these passes what reports progress to the client, too, and `spawned_with_progress` only that.
macro_rules! routes {
    ($($kind:ident $group:ident :: $method:ident => $($op:ident)::+ $(($($($service:ident).+),+))?;)*) => {
        /// The names of these methods.
        const ROUTED_NAMES: &[&str] = &[$($group::$method::NAME),*];

        /// Runs a request whose method is in the table.
        async fn route(
            (name, params): (&str, Option<&RawValue>),
            answer: Responder<'_>,
            ops: Arc<Ops>,
            caller: ClientHandle,
        ) -> Option<Frame> {
            match name {
                $($group::$method::NAME => {
                    // On the heap, so that a request takes no more room than its own operation needs.
                    let reply: BoxFuture<'_, Option<Frame>> = routes!(
                        @$kind $group::$method, ops::$($op)::+, answer, params, ops, caller $(, $($($service).+),+)?
                    );
                    reply.await
                })*
                other => answer.reply_error(&unknown_method_error(other)),
            }
        }
    };
    (@inline $method:ty, $op:expr, $answer:ident, $params:ident, $ops:ident, $caller:ident, $($($service:ident).+),+) => {
        Box::pin($answer.run_inline::<$method, _, _>($params, |p| $op($(&$ops.$($service).+),+, p)))
    };
    (@inline $method:ty, $op:expr, $answer:ident, $params:ident, $ops:ident, $caller:ident) => {
        Box::pin($answer.run_inline::<$method, _, _>($params, |p| $op(&$ops, p)))
    };
    (@inline_of_connection $method:ty, $op:expr, $answer:ident, $params:ident, $ops:ident, $caller:ident, $($($service:ident).+),+) => {
        Box::pin($answer.run_inline::<$method, _, _>($params, |p| $op($(&$ops.$($service).+),+, $caller.connection, p)))
    };
    (@spawned $method:ty, $op:expr, $answer:ident, $params:ident, $ops:ident, $caller:ident, $($($service:ident).+),+) => {
        $answer.run_spawned::<$method, _, _>($params, move |p| async move {
            $ops.store.escalate_fatal($op($(&$ops.$($service).+),+, p).await)
        })
    };
    (@spawned $method:ty, $op:expr, $answer:ident, $params:ident, $ops:ident, $caller:ident) => {
        $answer.run_spawned::<$method, _, _>($params, move |p| async move {
            $ops.store.escalate_fatal($op(&$ops, p).await)
        })
    };
    (@spawned_with_progress $method:ty, $op:expr, $answer:ident, $params:ident, $ops:ident, $caller:ident, $($($service:ident).+),+) => {{
        let progress = progress_callback(progress_unit(<$method>::NAME), $answer.id, $caller.to_client);
        $answer.run_spawned::<$method, _, _>($params, move |p| async move {
            $ops.store.escalate_fatal($op($(&$ops.$($service).+),+, p, progress).await)
        })
    }};
    (@spawned_with_progress $method:ty, $op:expr, $answer:ident, $params:ident, $ops:ident, $caller:ident) => {{
        let progress = progress_callback(progress_unit(<$method>::NAME), $answer.id, $caller.to_client);
        $answer.run_spawned::<$method, _, _>($params, move |p| async move {
            $ops.store.escalate_fatal($op(&$ops, p, progress).await)
        })
    }};
    (@spawned_of_connection $method:ty, $op:expr, $answer:ident, $params:ident, $ops:ident, $caller:ident, $($($service:ident).+),+) => {{
        let progress = progress_callback(progress_unit(<$method>::NAME), $answer.id, $caller.to_client);
        $answer.run_spawned::<$method, _, _>($params, move |p| async move {
            $ops.store.escalate_fatal($op($(&$ops.$($service).+),+, $caller.connection, p, progress).await)
        })
    }};
}

pub(super) use routes;
