//! The parts of a request that pages take. One that cannot be read is answered with a page, not with the words of the library.

use axum::Form;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use chorus_daemon_client::Failure;
use chorus_proto::ErrorKind;
use serde::de::DeserializeOwned;

use crate::failure_page::{action_failure, plain_page};

/// The parameters in the path of an address.
#[derive(Debug)]
pub(crate) struct PathParams<T>(pub(crate) T);

/// The parameters behind the question mark of an address.
#[derive(Debug)]
pub(crate) struct QueryParams<T>(pub(crate) T);

/// The fields of a form that was sent.
#[derive(Debug)]
pub(crate) struct FormFields<T>(pub(crate) T);

fn bad_address() -> Response {
    let text = "A part of the address cannot be read: it may be cut off or misspelled.";
    plain_page(StatusCode::BAD_REQUEST, "Not an address of these pages", text)
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParams<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(params)) => Ok(Self(params)),
            Err(_) => Err(bad_address()),
        }
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for QueryParams<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(params)) => Ok(Self(params)),
            Err(_) => Err(bad_address()),
        }
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for FormFields<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let headers = request.headers().clone();
        match Form::from_request(request, state).await {
            Ok(Form(fields)) => Ok(Self(fields)),
            Err(_) => {
                let message = "the form is incomplete or cannot be read".to_owned();
                let failure = Failure { message, hint: None, kind: Some(ErrorKind::InvalidParams) };
                Err(action_failure(&headers, failure))
            }
        }
    }
}
