//! The methods of `FlightService`.

use std::net::SocketAddr;

use crate::errors;
use crate::flight::call::{self, Call};
use crate::flight::caller::Caller;
use crate::flight::login;
use crate::flight::messages::{FlightDescriptor, Handshake, PollInfo, SchemaResult, Ticket};
use crate::flight::shelf::Shelf;
use crate::flight::status::{Code, Ended, Status};
use crate::flight::{actions, queries, updates};

const SERVICE: &str = "/arrow.flight.protocol.FlightService/";

/// How long a client may take to end what it says when it logs in.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(15);

/// Most bytes of a message of a client that is not let in yet.
const MOST: usize = 16 << 10;

/// Answers a call.
pub(crate) fn answer(shelf: &Shelf, mut call: Call, address: SocketAddr) {
    let done = route(shelf, &mut call, address);
    if let Err(Ended::Told(status)) = &done {
        shelf.shared.counts.errors.add(1);
        if status.report.code == errors::CANCELLED {
            shelf.shared.counts.cancelled.add(1);
        }
    }
    call.end(done);
}

fn route(shelf: &Shelf, call: &mut Call, address: SocketAddr) -> Result<(), Ended> {
    let kind = call.headers.get("content-type").unwrap_or_default();
    if call.headers.get(":method") != Some("POST") || !kind.starts_with("application/grpc") {
        let message = "this is a server of Arrow Flight SQL: call it by gRPC";
        return Err(Status::invalid(message).into());
    }
    let who = login::admit(&shelf.shared, &shelf.tokens, &call.headers)?;
    let method = call
        .path()
        .strip_prefix(SERVICE)
        .unwrap_or_default()
        .to_string();
    let caller = Caller {
        who,
        address,
        agent: call
            .headers
            .get("user-agent")
            .unwrap_or("flight")
            .to_string(),
        timeout: call.headers.timeout(),
        watch: call.watch(),
    };
    let session = shelf.shared.database.session();
    let account = session.of_role(&caller.who.user, caller.who.role).account();
    call.count(account.map_err(|e| errors::report(&e, ""))?);
    match method.as_str() {
        "Handshake" => handshake(shelf, call, &caller),
        "GetFlightInfo" => {
            let descriptor = call.request::<FlightDescriptor>()?;
            let info = queries::info(shelf, &caller, descriptor, queries::Wanted::Rows)?;
            call.conclude(&info)
        }
        "PollFlightInfo" => {
            let descriptor = call.request::<FlightDescriptor>()?;
            let info = Some(queries::info(
                shelf,
                &caller,
                descriptor,
                queries::Wanted::Rows,
            )?);
            let progress = Some(1.0);
            call.conclude(&PollInfo { info, progress })
        }
        "GetSchema" => {
            let descriptor = call.request::<FlightDescriptor>()?;
            let schema = queries::info(shelf, &caller, descriptor, queries::Wanted::Schema)?.schema;
            call.conclude(&SchemaResult { schema })
        }
        "DoGet" => {
            let ticket = call.request::<Ticket>()?;
            queries::get(shelf, call, &caller, ticket)
        }
        "DoPut" => updates::put(shelf, call, &caller),
        "DoAction" => actions::act(shelf, call, &caller),
        "ListActions" => actions::list(call),
        // There is nothing but what statements ask for.
        "ListFlights" => Ok(()),
        _ => {
            let message = format!("there is no method {:?}", call.path());
            Err(Status {
                code: Code::Unimplemented,
                ..Status::unsupported(message)
            }
            .into())
        }
    }
}

/// Gives who has logged in a token, which calls may have in the place of the password.
fn handshake(shelf: &Shelf, call: &mut Call, caller: &Caller) -> Result<(), Ended> {
    call.extra.push(login::welcome(&shelf.tokens, &caller.who)?);
    // The token goes with the first headers, which some clients wait for before they end what they say.
    call.begin();
    let until = std::time::Instant::now() + PATIENCE;
    while call
        .incoming
        .next(MOST, &mut || call::in_time(until))?
        .is_some()
    {
        call.answer(&Handshake::default())?;
    }
    Ok(())
}
