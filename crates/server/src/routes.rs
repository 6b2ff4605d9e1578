//! The registration of HTTP routes: one entry gives the handler to the router and its description to the reference.
//!
//! A description takes far longer to build than a route and is asked for rarely, so a route carries a function that
//! describes it. The server starts without calling any of them.

use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter};
use utoipa::openapi::path::{HttpMethod, Operation};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use crate::app::App;

/// One handler with its path and methods.
pub(crate) struct Route {
    path: String,
    methods: Vec<HttpMethod>,
    handler: MethodRouter<App>,
    operation: fn() -> Operation,
    description: fn() -> UtoipaMethodRouter<App>,
}

impl Route {
    /// `P` is what `#[utoipa::path]` has made of the handler. Called by [`routes!`].
    pub(crate) fn new<P, H, T>(handler: H, description: fn() -> UtoipaMethodRouter<App>) -> Self
    where
        P: utoipa::Path,
        H: Handler<T, App>,
        T: 'static,
    {
        let methods = P::methods();
        Self {
            path: P::path(),
            handler: methods.iter().fold(MethodRouter::new(), |router, method| {
                router.on(filter(method), handler.clone())
            }),
            methods,
            operation: P::operation,
            description,
        }
    }
}

/// Some routes of the server.
#[derive(Default)]
pub(crate) struct Routes(Vec<Route>);

impl Routes {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds what [`routes!`] made.
    pub(crate) fn routes<const N: usize>(mut self, routes: [Route; N]) -> Self {
        self.0.extend(routes);
        self
    }

    pub(crate) fn merge(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    pub(crate) fn into_router(self) -> Router<App> {
        self.0.into_iter().fold(Router::new(), |router, route| {
            router.route(&route.path, route.handler)
        })
    }

    /// The description of all routes.
    pub(crate) fn describe(self) -> utoipa::openapi::OpenApi {
        let described = self
            .0
            .into_iter()
            .fold(OpenApiRouter::<App>::new(), |router, route| {
                router.routes((route.description)())
            });
        described.into_openapi()
    }

    /// Every path with its methods and what is said of it, without the forms of bodies.
    pub(crate) fn operations(self) -> impl Iterator<Item = (Method, String, Operation)> {
        self.0.into_iter().flat_map(|route| {
            let (path, operation) = (route.path, route.operation);
            let methods = route.methods.into_iter();
            methods.map(move |method| (method_of(&method), path.clone(), operation()))
        })
    }
}

fn method_of(method: &HttpMethod) -> Method {
    match method {
        HttpMethod::Get => Method::GET,
        HttpMethod::Post => Method::POST,
        HttpMethod::Put => Method::PUT,
        HttpMethod::Delete => Method::DELETE,
        HttpMethod::Options => Method::OPTIONS,
        HttpMethod::Head => Method::HEAD,
        HttpMethod::Patch => Method::PATCH,
        HttpMethod::Trace => Method::TRACE,
    }
}

fn filter(method: &HttpMethod) -> MethodFilter {
    utoipa_axum::PathItemExt::to_method_filter(method)
}

/// Makes [`Route`]s of handlers that have `#[utoipa::path]`: `routes!(handler)` or `routes!(module::handler, module::other)`.
macro_rules! routes {
    (@route $handler:ident) => {
        utoipa_axum::paste! {
            $crate::routes::Route::new::<[<__path_ $handler>], _, _>($handler, || utoipa_axum::routes!($handler))
        }
    };
    (@route $module:ident :: $handler:ident) => {
        utoipa_axum::paste! {
            $crate::routes::Route::new::<$module::[<__path_ $handler>], _, _>(
                $module::$handler,
                || utoipa_axum::routes!($module::$handler),
            )
        }
    };
    ($($first:ident $(:: $second:ident)?),+ $(,)?) => {
        [$($crate::routes::routes!(@route $first $(:: $second)?)),+]
    };
}

pub(crate) use routes;
